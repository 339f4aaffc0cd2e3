"""Responses of a served collection are those of docs/http-binding.md §5, by http.json."""

from __future__ import annotations

import httpx

from collect_parts import Databases
from secagg import Registry
from secagg.collect import batches
from secagg.collect.service import serve_collection
from secagg.oneshot import OneShotParams
from vectors_reader import Vector, b, load

VECTORS = load("http")["collection"]


async def test_responses_are_those_of_the_vectors(databases: Databases) -> None:
    database = databases.open()
    registry = Registry({one["id"]: b(one["identity_key"]) for one in VECTORS["registry"]})
    params = OneShotParams.from_bytes(b(VECTORS["parameters"]))
    assert params.digest == b(VECTORS["digest"])
    with database.transaction() as tx:
        batches.begin(tx, params, map(b, VECTORS["endorsements"]))
    serving = serve_collection(database, registry=registry, port=0)
    async with serving as served, httpx.AsyncClient(base_url=served.url) as http:
        for case in VECTORS["open"]:
            await check(http, case)
        with database.transaction() as tx:
            assert batches.close(tx, 0)
        for case in VECTORS["closed"]:
            await check(http, case)


async def check(http: httpx.AsyncClient, case: Vector) -> None:
    """Compare the response to a request with a vector."""
    content = b(case["body"]) if case["method"] == "POST" else None
    found = await http.request(case["method"], case["target"], content=content)
    assert found.status_code == case["status"], case["name"]
    assert {"retry-after", "link"} & set(found.headers) == set(case["headers"]), case["name"]
    if case["check"] is not None:
        assert found.headers["content-type"] == "application/problem+json"
        assert found.json()["status"] == case["status"]
        assert found.json()["check"] == case["check"], case["name"]
    elif case["content"] is None:
        assert found.content == b""
    else:
        assert found.headers["content-type"] == "application/json"
        assert found.json() == case["content"]
