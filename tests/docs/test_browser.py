"""examples/browser: reports in Node and Chromium, by vectors and with Python's parties."""

from __future__ import annotations

import asyncio
import json
import math
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from browser import BROWSER, browser
from collect_parts import Collected, Databases
from collect_site import served
from oneshot_parties import LENIENT, Parties, one_shot_params, parties
from oneshot_vectors import SESSIONS
from report_page import FOLDER, NODE, Site, run_node, seed_of, site
from secagg import Bounds, DatabaseError, FixedPoint, Registry
from secagg.collect.close import result
from secagg.http import asgi, send_report
from secagg.http.problems import Problem
from secagg.http.server import listening
from secagg.oneshot import Helper, Noise, OneShotParams, OneShotResult, report
from secagg.protocol.client_ids import identify
from secagg.testing import make_identity
from vectors_reader import Fed, Vector, b, load

needs_node = pytest.mark.skipif(NODE is None, reason="needs node")
LENIENT_IN_JS = {"minThreshold": 1, "minClients": 2, "corrupt": 0}
CLASSIC = [name for name in SESSIONS if SESSIONS[name]["parameters"]["suite"] == "x25519"]


def job_of(session: Vector, client: Vector, **changes: object) -> dict[str, Any]:
    """Return the job that makes a client's report, with the draws of the vectors."""
    return {
        "params": session["bytes"],
        "id": str(client["id"]),
        "vector": client["vector"],
        "weight": client["weight"],
        "identity": client["identity_seed"],
        "draws": client["draws"],
        "ephemerals": client["ephemerals"],
        "rounding": "nearest",
        "policy": LENIENT_IN_JS,
        "helpers": [ed25519 for _, ed25519 in session["parameters"]["helpers"]],
        "endorsements": session["endorsements"],
    } | changes


def test_the_module_is_small_and_depends_on_nothing() -> None:
    source = (FOLDER / "report.js").read_text()
    assert len(source.splitlines()) <= 300
    assert "import " not in source
    draws = source.count("crypto.getRandomValues(") + source.count("crypto.subtle.generateKey(")
    assert draws == 3
    assert source.count("Math.random") == 1  # the pause before a repeated request


@needs_node
@pytest.mark.parametrize("name", CLASSIC)
def test_node_makes_the_reports_of_the_vectors(name: str) -> None:
    session = SESSIONS[name]
    jobs = [job_of(session, client) for client in session["clients"]]
    found = [one.get("value", one) for one in run_node(*jobs)]
    assert found == [client["report"] for client in session["clients"]]


@needs_node
def test_node_reads_parameters_by_the_vectors() -> None:
    malformed = load("oneshot_malformed")["parameters"]
    right = [SESSIONS[name] for name in CLASSIC]
    cases = [(s["bytes"], "value", s["digest"]) for s in right]
    cases += [(case["bytes"], "check", case["check"]) for case in malformed]
    cases.append((SESSIONS["hybrid"]["bytes"], "check", "parameters"))
    found = run_node(*({"params": data} for data, _, _ in cases))
    for (_, key, expected), answer in zip(cases, found, strict=True):
        assert answer[key] == expected


@needs_node
@pytest.mark.parametrize("p", [1, 640, 4097, 2**40 + 1, 2**48])
def test_node_knows_the_headroom_of_noise(p: int) -> None:
    """R = 2X + 2ν + 1 is enough, and R − 1 is not (docs/oneshot.md, §8.1)."""
    with parties(3, 2) as made:
        squared = 100 * made.params.seeds * p * p
        nu = math.isqrt(squared - 1) // 256 + 1
        assert (256 * nu) ** 2 >= squared > (256 * (nu - 1)) ** 2
        modulus = 2 * 10 * 16 + 2 * nu + 1
        changes = {"encoding": FixedPoint(1.0, 4), "noise": Noise(Fraction(p, 256))}
        enough = one_shot_params(made.journals, modulus=modulus, **changes).to_bytes()
    less = enough[:29] + (modulus - 2).to_bytes(8, "little") + enough[37:]
    found = run_node({"params": enough.hex()}, {"params": less.hex()})
    assert [one.get("check") for one in found] == [None, "parameters"]


@needs_node
def test_node_derives_ids_from_names() -> None:
    names = load("client_ids")["names"]
    found = run_node(*({"name": case["name"]} for case in names))
    assert [one["value"] for one in found] == [str(case["id"]) for case in names]


EXAMPLE = SESSIONS["example"]
KEYS = [ed25519 for _, ed25519 in EXAMPLE["parameters"]["helpers"]]
ENCODING = FixedPoint(1.0, 8).canonical().hex()
WIDER = FixedPoint(1.0, 9).canonical().hex()
SEMI_HONEST = SESSIONS["two-of-two"]


@needs_node
@pytest.mark.parametrize(
    ("check", "changes"),
    [
        (None, {"bounds": {"encoding": ENCODING, "maxWeight": 10}}),
        (None, {"policy": {}}),
        ("policy", {"bounds": {"encoding": WIDER, "maxWeight": 10}}),
        ("policy", {"bounds": {"encoding": ENCODING, "maxWeight": 11}}),
        ("policy", {"bounds": {"encoding": ENCODING}}),
        ("policy", {"policy": {"minThreshold": 3}}),
        ("policy", {"policy": {"minClients": 4}}),
        ("policy", {"policy": {"corrupt": 0.26}}),
        ("policy", {"policy": {"colluders": 2}}),
        ("policy", {"policy": {"corrupt": None}}),
        ("policy", {"policy": {"maxLength": 2}}),
        ("policy", {"policy": {"minClient": 2}}),
        ("policy", {"unset": "helpers", "endorsements": None}),
        ("policy", {"unset": "bounds"}),
        ("policy", {"helpers": KEYS[:2]}),
        ("policy", {"helpers": None}),
        ("policy", {"endorsements": None}),
        ("policy", {"endorsements": EXAMPLE["endorsements"][:2]}),
        ("policy", {"endorsements": EXAMPLE["endorsements"][::-1]}),
        ("input", {"identity": None}),
        ("input", {"array": "none"}),
        ("input", {"id": str(2**64)}),
        ("input", {"rounding": "down"}),
    ],
    ids=str,
)
def test_node_rejects_what_the_policy_or_the_sum_does_not_allow(
    check: str | None, changes: dict[str, object]
) -> None:
    (found,) = run_node(job_of(EXAMPLE, EXAMPLE["clients"][0], **changes))
    assert found.get("check") == check


@needs_node
def test_node_reports_with_an_identity_in_active_sums_only() -> None:
    job = job_of(SEMI_HONEST, SEMI_HONEST["clients"][0])
    active = {"policy": LENIENT_IN_JS | {"requireActive": True}}
    signed = {"identity": EXAMPLE["clients"][0]["identity_seed"]}
    found = run_node(job | active, job | signed)
    assert [one["check"] for one in found] == ["policy", "input"]
    assert not any("value" in one for one in found)


@needs_node
@pytest.mark.parametrize(
    ("name", "zeros", "changes"),
    [
        *(
            ("example", {"vector": [0, 0, 0], "weight": 0}, changes)
            for changes in (
                {"weight": None},
                {"weight": 1.5},
                {"weight": -1},
                {"vector": [0.5, 0.5]},
                {"vector": [0.5, 0.5, None]},
                {"vector": [0.5, 0.5, "1"]},
            )
        ),
        *(
            ("two-of-two", {"vector": [0] * 4}, {"vector": vector})
            for vector in ([101, 0, 0, 0], [1, 2, 3, -1], [1, 2, 3, 1.5], ["101", 0, 0, 0])
        ),
        ("two-of-two", {"vector": [0] * 4}, {"weight": 1}),
    ],
    ids=str,
)
def test_check52_node_reports_whatever_its_numbers_are(
    name: str, zeros: dict[str, object], changes: dict[str, object]
) -> None:
    session = SESSIONS[name]
    client = session["clients"][0]
    told, wanted = run_node(*(job_of(session, client, **one) for one in (changes, zeros)))
    assert told["value"] == wanted["value"]
    assert (told.get("check"), wanted.get("check")) == ("input", None)


@needs_node
def test_node_lowers_a_weight_to_the_largest() -> None:
    client, most = EXAMPLE["clients"][0], EXAMPLE["parameters"]["max_weight"]
    weights = most, most + 1, 1e300
    found = run_node(*(job_of(EXAMPLE, client, weight=weight) for weight in weights))
    assert found == [found[0]] * 3
    assert found[0].keys() == {"value"}


@needs_node
@pytest.mark.parametrize("array", ["f32", "f64"])
def test_node_rounds_at_random_as_python_does(array: str) -> None:
    """Commitments and masked vector are equal, since they follow from the draws."""
    rng = np.random.default_rng(3)
    with parties(
        n_clients=5, length=300, encoding=FixedPoint(2.0, 20), modulus=2**40 - 87
    ) as made:
        vector = rng.uniform(-2, 2, 300)
        vector[:3] = 1e-40, -1e-40, 5e-324
        vector = vector.astype(array.replace("f", "float"))
        identity, draws = make_identity(7), [f"{3:064x}", f"{4:032x}"]
        theirs = report(vector, made.params, 7, identity=identity, entropy=Fed(draws))
        job = {"params": made.params.to_bytes().hex(), "id": "7", "vector": vector.tolist()}
        job |= {"identity": seed_of(7), "draws": draws, "ephemerals": ["11" * 32, "22" * 32]}
        ours = b(run_node(job | {"array": array})[0]["value"])
        layout = made.params.layout
        boxes = 42 + 32 * made.params.seeds
        assert len(ours) == len(theirs) == layout.report
        assert ours[:boxes] == theirs[:boxes]
        packed = -(-300 * 40 // 8)
        assert ours[-packed:] == theirs[-packed:]


@needs_node
@pytest.mark.parametrize("modulus", [2**40, 2**45 - 55, 2**64], ids=["2^40", "odd", "2^64"])
def test_reports_of_node_and_python_have_the_exact_sum(modulus: int) -> None:
    encoding = FixedPoint(4.0, 16, rounding="nearest")
    changes = {
        "n_clients": 5,
        "length": 100,
        "encoding": encoding,
        "modulus": modulus,
        "max_weight": 50,
    }
    with parties(3, 2, **changes) as made:
        accumulator = made.accumulator(range(2))
        rng = np.random.default_rng(1)
        jobs = []
        for client in (5, 6, 29):
            made.vectors[client] = rng.uniform(-5, 5, 100)
            made.weights[client] = client % 51
            jobs.append(
                {
                    "params": made.params.to_bytes().hex(),
                    "id": str(client),
                    "vector": made.vectors[client].tolist(),
                    "weight": made.weights[client],
                    "identity": seed_of(client),
                    "rounding": "nearest",
                    "helpers": [key.hex() for _, key in made.params.helpers],
                    "endorsements": [one.endorse().hex() for one in made.helpers],
                }
            )
        for found in run_node(*jobs):
            assert accumulator.add(b(found["value"]))
        made.check(accumulator)
        result = made.open(accumulator)
        assert list(result.integers) == made.expected([0, 1, 5, 6, 29])
        assert result.weight == sum(made.weights.values())


def settings_of(params: OneShotParams) -> dict[str, object]:
    return {
        "helpers": [key.hex() for _, key in params.helpers],
        "encoding": params.encoding.canonical().hex(),
        "maxWeight": params.max_weight,
    }


needs_browser = pytest.mark.skipif(BROWSER is None, reason="needs chromium")


@pytest.fixture
def databases(ram_path: Path) -> Iterator[Databases]:
    made = Databases(str(ram_path / "reports"))
    yield made
    made.close()


@needs_browser
def test_report_of_a_web_page_is_in_the_exact_sum(
    tmp_path: Path, databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secagg.collect.offers.RETRY", 0)
    asyncio.run(report_by_a_page(tmp_path, databases))


async def report_by_a_page(folder: Path, databases: Databases) -> None:
    """A page of one origin reports 10,000 numbers to a collection of another, twice."""
    length, failures, inserted = 10_000, iter([True]), list[str]()
    vector = np.random.default_rng(2).integers(-(1 << 16), 1 << 16, length) / (1 << 16)

    def before(statement: str) -> None:
        if statement == "INSERT INTO secagg_clients":
            inserted.append(statement)
            if next(failures, False):
                raise DatabaseError("gone")

    with page_of(n_clients=5, length=length) as (made, page):
        async with browser(folder / "profile") as chromium:
            await chromium.open(f"{page.url}/index.html", width=800)
            key = await chromium.value("document.querySelector('#key').textContent || null")
            collected = collection(databases, made, {identify("ward 3")[0]: bytes.fromhex(key)})
            async with served(collected, before, origins=[page.url]) as at:
                url = str(at.http.base_url)
                await chromium.value(filled(url, "ward 3", vector.tolist()))
                said = await chromium.value(SAID)
                # the key of the page outlives the page, and a second report is refused
                await chromium.open(f"{page.url}/index.html", width=800)
                await chromium.value(f"document.querySelector('#key').textContent === '{key}'")
                await chromium.value(filled(url, "ward 3", vector.tolist()))
                assert (await chromium.value(SAID)).startswith("id: ")
        print(said)
        assert len(inserted) == 3
        collected.report(1, 2)
        found = await closed(collected)
        expected = vector + sum(made.vectors[client] for client in (1, 2))
        assert np.array_equal(found.sum, expected)


@needs_browser
@pytest.mark.parametrize("status", [410, 422])
def test_page_keeps_a_report_that_a_liar_may_have_stored(tmp_path: Path, status: int) -> None:
    asyncio.run(report_to_a_liar(tmp_path, status))


async def report_to_a_liar(folder: Path, status: int) -> None:
    """A collection stores a report, answers with an error, and then offers other parameters."""
    posted = list[tuple[str, bytes]]()
    arrived, answered = asyncio.Event(), asyncio.Event()
    with page_of(n_clients=5, length=3) as (made, page):
        offers = list[dict[str, object]]()
        for params in (made.params, replace(made.params, session=b"other")):
            made.restart(params)
            signed = [b64encode(one.endorse()).decode() for one in made.helpers]
            data = b64encode(params.to_bytes()).decode()
            offers.append({"parameters": data, "endorsements": signed})

        async def offer(_: Request) -> Response:
            return JSONResponse(offers[min(len(posted), 1)])

        async def report(request: Request) -> Response:
            posted.append((request.path_params["digest"], await request.body()))
            arrived.set()
            await answered.wait()
            if len(posted) < 3:
                raise Problem(status, "closed", "send it under the next parameters")
            return Response(status_code=204)

        routes = [
            Route("/v1/parameters", offer),
            Route("/v1/parameters/{digest}/reports", report, methods=["POST"]),
        ]
        allowed = Middleware(CORSMiddleware, allow_origins=[page.url])  # type: ignore[arg-type]
        app = asgi.build(routes, [allowed])
        async with (
            listening(app, "127.0.0.1", 0, None) as url,
            browser(folder / "profile") as chromium,
        ):
            said = list[str]()
            for at in range(4):
                if at in (0, 2):  # the report outlives the page
                    await chromium.open(f"{page.url}/index.html", width=800)
                    await chromium.value(SECOND_TAB)
                await chromium.value(filled(url, "ward 3", [0.5, math.nan, 1.0]))
                await arrived.wait()
                if at > 0:
                    said.append(await chromium.value(SAID))
                if at < 3:  # a tab of before the report was under way, kept, or accepted
                    other = filled(url, "ward 3", [0.5, 0.5, 0.5])
                    await chromium.value(f"frames[0].eval({json.dumps(other)})")
                    told = await chromium.value(SAID.replace("document", "frames[0].document"))
                    assert ("under way", "kept", "Another tab")[at] in told
                    assert len(posted) == at + 1
                answered.set()
                if at == 0:
                    said.append(await chromium.value(SAID))
    kept = made.params.digest.hex(), posted[0][1]
    assert posted[:3] == [kept] * 3
    assert posted[3][0] != kept[0]
    assert ["kept" in one for one in said] == [True, True, False, False]
    # what is wrong with the numbers is told after the report
    assert ["zeros" in one for one in said] == [False, False, True, True]


@needs_browser
def test_reports_of_a_hundred_browsers_and_of_python_have_the_exact_sum(
    tmp_path: Path, databases: Databases
) -> None:
    asyncio.run(report_by_a_hundred(tmp_path, databases))


async def report_by_a_hundred(folder: Path, databases: Databases) -> None:
    """One Chromium has a hundred identities, which report at the same time."""
    length, first, count = 1000, 1000, 100
    with page_of(n_clients=count + 10, length=length) as (made, page):
        async with browser(folder / "profile") as chromium:
            await chromium.open(f"{page.url}/index.html", width=800)
            pairs = PAIRS % {"page": page.url, "n": count}
            keys = await chromium.value(promised("keys", pairs))
            known = {u: bytes.fromhex(key) for u, key in enumerate(keys, first)}
            collected = collection(databases, made, known)
            async with served(collected, origins=[page.url]) as at:
                url = str(at.http.base_url)
                job = {"page": page.url, "url": url, "first": first, "length": length}
                pages = asyncio.ensure_future(chromium.value(promised("ms", REPORTS % job)))
                policy = replace(LENIENT, helpers=frozenset(k for _, k in made.params.helpers))
                policy = replace(policy, bounds=Bounds(made.params.encoding))
                rng = np.random.default_rng(1)
                sent = {u: rng.integers(-200, 200, length) / 128 for u in range(10)}
                for u, vector in sent.items():
                    given = {"policy": policy, "identity": make_identity(u)}
                    await send_report(url, vector, u, **given)  # type: ignore[arg-type]
                print(f"{await pages:.0f} ms for {count} reports")
        found = await closed(collected)
        assert set(found.survivors) == {*sent, *known}
        at = np.arange(length)
        numbers = ((np.arange(count)[:, None] * 31 + at) % 101 - 50) / 64
        assert np.array_equal(found.sum, numbers.sum(0) + sum(sent.values()))


@contextmanager
def page_of(**changes: object) -> Iterator[tuple[Parties, Site]]:
    """Yield the parties of a sum, and the site with the page."""
    more = {"encoding": FixedPoint(2.0, 16), "modulus": 2**40} | changes
    with parties(**more) as made, site() as page:
        page.show_page(settings_of(made.params))
        yield made, page


def collection(databases: Databases, made: Parties, keys: dict[int, bytes]) -> Collected:
    """Return a collection of the clients with these keys, and of Python's."""
    python = {client: make_identity(client).public for client in range(10)}
    registry = Registry(python | keys)
    made.helpers = [
        Helper(made.params, one, registry=registry, policy=LENIENT) for one in made.journals
    ]
    return Collected(databases.open(), made, endorsed=True, registry=registry)


async def closed(collected: Collected) -> OneShotResult:
    """Close the batch, and return the sum."""
    collected.close()
    await collected.finish()
    found = result(collected.database, 0)
    assert found is not None
    return found


def promised(name: str, body: str) -> str:
    """Return the expression of a promise's value, which is made once."""
    return f"""(window.{name} ??= ((async () => {{ {body} }})()
        .then((value) => window.{name}Done = value,
              (error) => window.{name}Done = String(error))),
        window.{name}Done ?? null)"""


PAIRS = """
    const { hex } = await import("%(page)s/report.js");
    const pair = () => crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]);
    window.pairs = await Promise.all(Array.from({ length: %(n)d }, pair));
    const raw = async ({ publicKey }) =>
        hex(new Uint8Array(await crypto.subtle.exportKey("raw", publicKey)));
    return Promise.all(window.pairs.map(raw));
"""
REPORTS = """
    const { offer, report, send, unhex } = await import("%(page)s/report.js");
    const { helpers, encoding, maxWeight } = await (await fetch("settings.json")).json();
    const bounds = { encoding: unhex(encoding), maxWeight };
    const policy = { helpers: helpers.map(unhex), bounds, minClients: 2, corrupt: 0 };
    const began = performance.now();
    await Promise.all(window.pairs.map(async (identity, u) => {
        const { params, endorsements } = await offer("%(url)s");
        const number = (_, i) => ((u * 31 + i) %% 101 - 50) / 64;
        const vector = Array.from({ length: %(length)d }, number);
        const id = BigInt(%(first)d + u);
        const data = await report(vector, params, id, { identity, policy, endorsements });
        await send("%(url)s", params, data);
    }));
    return performance.now() - began;
"""
SECOND_TAB = """(() => {
    if (!document.querySelector("#key").textContent) return null;
    if (!frames.length) document.body.append(
        Object.assign(document.createElement("iframe"), { src: "index.html" }));
    return frames[0].document.querySelector("#key").textContent || null;
})()"""
SAID = "(text => text.length > 1 && text)(document.querySelector('output').textContent)"


def filled(url: str, client: str, vector: list[float]) -> str:
    """Return the expression that fills in the form and reports."""
    values = {"url": url, "client": client, "vector": json.dumps(vector)[1:-1]}
    return f"""(() => {{
        if (!document.querySelector('#key').textContent) return null;
        const form = document.querySelector("form");
        const values = {json.dumps(values)};
        for (const [name, value] of Object.entries(values)) form[name].value = value;
        form.requestSubmit();
        return true;
    }})()"""
