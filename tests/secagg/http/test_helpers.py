"""Helpers over HTTP: sums though one is dead or lies, and no call of a stranger."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest

from http_party import MEMBERS, REGISTRY, one_shot_params, party_of, vector_of
from secagg import LinkError, ParameterError, Registry, RemoteProtocolError
from secagg.http import HttpHelper, reach_helper, serve_helper
from secagg.http.connection import Connection
from secagg.http.helper import AGGREGATOR
from secagg.http.helper_link import reach_helpers
from secagg.http.signatures import sign
from secagg.oneshot import HelperJournal, OneShotParams, OneShotPolicy
from secagg.oneshot.helper_files import HelperEntry
from secagg.session import HelperFailed, Session
from secagg.simulate import temporary_journals
from secagg.testing import make_identity

OPERATOR = make_identity(77)


@pytest.fixture
def journals() -> Iterator[list[HelperJournal]]:
    with temporary_journals(4, "x25519") as made:
        yield made


def params_of(journals: list[HelperJournal], security: str = "semi-honest") -> OneShotParams:
    return one_shot_params(journals, security=security)


def options_of(params: OneShotParams) -> dict[str, Any]:
    return {"registry": REGISTRY} if params.active else {}


@asynccontextmanager
async def helpers_of(
    params: OneShotParams, journals: list[HelperJournal], **options: Any
) -> AsyncIterator[list[HttpHelper]]:
    """Yield links to helpers that are served on loopback."""
    async with AsyncExitStack() as stack:
        links = []
        for journal in journals:
            known = options_of(params)
            service = serve_helper(journal, OPERATOR.public, port=0, **known)
            url = await stack.enter_async_context(service)
            reached = reach_helper(url, params, identity=OPERATOR, **options)
            links.append(await stack.enter_async_context(reached))
        yield links


async def sum_of(params: OneShotParams, links: list[HttpHelper], **session: Any) -> Any:
    served = Session(REGISTRY, **session, registry=REGISTRY if params.active else None)
    async with party_of(served) as party:
        policy = OneShotPolicy(helpers=frozenset(key for _, key in params.helpers))
        members = party.join_all(one_shot_policy=policy, **options_of(params))
        endorsements = [link.endorsement for link in links]
        result = await party.session.one_shot(params, links, endorsements=endorsements)
        await party.session.close()
        assert await asyncio.gather(*members) == [1] * MEMBERS
    assert (result.sum == sum(vector_of(u, 6) for u in range(MEMBERS))).all()
    return result


async def test_sum_with_one_of_three_helpers_dead(journals):
    params = params_of(journals[:3])
    events: list[Any] = []

    async with helpers_of(params, journals[:3]) as links:
        links[1]._connection = dead()  # after it endorsed the parameters
        await sum_of(params, links, on_event=[events.append])
    assert {event.helper for event in events if isinstance(event, HelperFailed)} == {2}


def dead() -> Any:
    class Dead:
        async def request(self, *_: object, **__: object) -> Any:
            raise LinkError("gone", check="patience")

    return Dead()


async def test_sum_with_one_of_four_active_helpers_lying(journals, monkeypatch):
    params = params_of(journals, "active")
    events: list[Any] = []

    class Liar(HttpHelper):
        async def open(self, request: bytes) -> bytes:
            answer = bytearray(await super().open(request))
            answer[-1] ^= 1
            return bytes(answer)

    async with helpers_of(params, journals) as links:
        links[2].__class__ = Liar
        await sum_of(params, links, on_event=[events.append])
    assert {event.helper for event in events if isinstance(event, HelperFailed)} == {3}


async def test_restarted_helper_gets_parameters_and_boxes_again(journals):
    params = params_of(journals[:2])

    async with AsyncExitStack() as stack:
        links = await stack.enter_async_context(helpers_of(params, journals[:2]))
        open_first = links[0].open

        async def restarted(request: bytes) -> bytes:
            links[0].open = open_first  # type: ignore[method-assign]
            service = serve_helper(journals[0], OPERATOR.public, port=0)
            url = await stack.enter_async_context(service)
            old = links[0]._connection
            old.url = url
            old._http.base_url = url
            return await open_first(request)

        links[0].open = restarted  # type: ignore[method-assign]
        await sum_of(params, links)


NO_LISTS = (
    b"[]",
    b"{}",
    b'{"rejected": 3}',
    b'{"rejected": ["x"]}',
    b'{"rejected": [Infinity]}',
    b"[" * (1 << 15),
    b"\xff",
)
STRANGERS = {
    "unsigned": (None, None, 401, "unsigned"),
    "another key": (make_identity(5), AGGREGATOR, 401, "signature"),
    "another id": (OPERATOR, 1, 401, "signature"),
}


@pytest.mark.parametrize(
    ("identity", "u", "status", "check"), STRANGERS.values(), ids=STRANGERS
)
@pytest.mark.parametrize("step", ["", "/check", "/reserve", "/open"])
async def test_only_the_aggregator_is_served(journals, step, identity, u, status, check):
    """A stranger could spend clients."""
    params = params_of(journals[:2])

    async with helpers_of(params, journals[:2]) as links:
        path = "/v1/sums" + (f"/{params.digest.hex()}{step}" if step else "")
        headers = {} if identity is None else sign(identity, u, "POST", path, b"x")
        async with httpx.AsyncClient(base_url=links[0]._connection.url) as http:
            response = await http.post(path, content=b"x", headers=headers)
        assert (response.status_code, response.json()["check"]) == (status, check)


async def test_malformed_calls_have_a_check(journals):
    params, other = params_of(journals[:2]), params_of(journals[2:])

    async with helpers_of(params, journals[:2]) as links:
        for step in ("check", "reserve", "open"):
            with pytest.raises(RemoteProtocolError) as caught:
                await getattr(links[0], step)(b"garbage")
            assert caught.value.check == "length"
        unknown = HttpHelper(links[0]._connection, other)
        with pytest.raises(RemoteProtocolError) as caught:
            await unknown.begin()
        assert caught.value.check == "parameters"
        for path, body, status in [
            ("/v1/sums", b"garbage", 422),
            ("/v1/sums", bytes(1 << 17), 413),
            (f"{links[0]._path}/check", bytes(1 << 20), 413),
            (f"/v1/sums/{'0' * 64}/check", b"x", 404),
        ]:
            found = await links[0]._connection.request("POST", path, body)
            assert found.status_code == status


async def test_helper_that_signs_with_another_key_is_rejected(journals, monkeypatch):
    params = params_of(journals[:2])

    async with helpers_of(params, journals[:2]) as links:
        answer = httpx.Response(200, content=bytes(64))

        async def forged(*_: object, **__: object) -> httpx.Response:
            return answer

        monkeypatch.setattr(links[0]._connection, "request", forged)
        with pytest.raises(RemoteProtocolError) as caught:
            await links[0].begin()
        assert caught.value.check == "signature"
        for content in NO_LISTS:
            answer = httpx.Response(200, content=content)
            with pytest.raises(RemoteProtocolError) as caught:
                await links[0].check(b"")
            assert caught.value.check == "encoding"


async def test_helper_refuses_another_aggregator(journals):
    async with serve_helper(journals[0], OPERATOR.public, port=0) as url:
        with pytest.raises(LinkError) as caught:
            async with reach_helper(url, params_of(journals), identity=make_identity(1)):
                pass
        assert caught.value.check == "signature"


async def test_helper_that_answers_for_another_is_left_out(journals):
    """It passes the aggregator's signed requests on, and counts once with the other."""
    params = params_of(journals[:2])
    async with serve_helper(journals[1], OPERATOR.public, port=0) as url:
        entries = [HelperEntry(url, "x25519", *journal.public) for journal in journals[:2]]
        reached = reach_helpers(
            entries, params, identity=OPERATOR, authority=None, patience=9.0, needed=False
        )
        async with reached as links:
            assert [link.number for link in links] == [2]


async def test_old_sums_leave_memory_and_begin_again(journals):
    params = [replace(params_of(journals[:2]), session=bytes([n])) for n in range(6)]

    async with (
        serve_helper(journals[0], OPERATOR.public, port=0) as url,
        AsyncExitStack() as all_,
    ):
        reached = [reach_helper(url, one, identity=OPERATOR) for one in params]
        links = [await all_.enter_async_context(one) for one in reached]
        begun = links[0].endorsement
        links[0].endorsement = b""
        with pytest.raises(RemoteProtocolError) as caught:
            await links[0].reserve(b"")
        assert caught.value.check == "length"
        assert links[0].endorsement == begun  # it was asked for again


WITH = {"registry": REGISTRY}
SIX = {"registry": Registry({u: make_identity(u).public for u in range(6)})}
REJECTED = {
    "semi-honest, with a registry": ("semi-honest", WITH, {}),
    "active, without": ("active", {}, {}),
    "colluders": ("active", WITH | {"policy": OneShotPolicy(colluders=2)}, {}),
    "larger registry": ("active", SIX, {"n_clients": 3}),
    "length": ("semi-honest", {}, {"length": 1 << 25}),
    "clients": ("semi-honest", {"policy": OneShotPolicy(max_clients=2)}, {}),
}


@pytest.mark.parametrize(("security", "service", "changes"), REJECTED.values(), ids=REJECTED)
async def test_check53_helper_endorses_what_it_would_open(journals, security, service, changes):
    """Nor does it check boxes for such a sum."""
    params = replace(params_of(journals[:2], security), **changes)

    async with serve_helper(journals[0], OPERATOR.public, port=0, **service) as url:
        for _ in range(2):
            with pytest.raises(RemoteProtocolError) as caught:
                async with reach_helper(url, params, identity=OPERATOR):
                    pass
            assert caught.value.check == "parameters"
        options = {"tls": None, "allow_plain_http": False, "patience": 5.0}
        async with Connection(url, AGGREGATOR, OPERATOR, **options) as connection:
            path = f"/v1/sums/{params.digest.hex()}/check"
            response = await connection.request("POST", path, b"")
        assert response.status_code == 404


WRONG = [{"journal": 3}, {"aggregator": b"x"}, {"min_clients": 1}, {"policy": 3}]
WRONG += [{"policy": OneShotPolicy(helpers=frozenset([bytes(32)]))}, {"host": "192.0.2.1"}]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
async def test_arguments_are_validated(journals, wrong):
    given = {"journal": journals[0], "aggregator": OPERATOR.public, "port": 0} | wrong
    with pytest.raises(ParameterError):
        async with serve_helper(**given):
            pass
