"""examples/browser: reports in Node and Chromium, by vectors and with Python's parties."""

from __future__ import annotations

import asyncio
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import BROWSER, browser
from oneshot_parties import one_shot_params, open_sum, parties
from oneshot_vectors import SESSIONS
from report_page import FOLDER, NODE, run_node, site
from secagg import FixedPoint, Registry
from secagg.oneshot import Accumulator, Helper, Noise, OneShotParams, report
from secagg.protocol.client_ids import identify
from secagg.testing import make_identity
from vectors_reader import Fed, Vector, b, load

needs_node = pytest.mark.skipif(NODE is None, reason="needs node")
LENIENT = {"minThreshold": 1, "minClients": 2, "corrupt": 0}
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
        "policy": LENIENT,
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
        ("input", {"weight": None}),
        ("input", {"weight": 11}),
        ("input", {"weight": 1.5}),
        ("input", {"vector": [0.5, 0.5]}),
        ("input", {"vector": [0.5, 0.5, None]}),
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
    active = {"policy": LENIENT | {"requireActive": True}}
    signed = {"identity": EXAMPLE["clients"][0]["identity_seed"]}
    out_of_range = {"vector": [101, 0, 0, 0]}
    found = run_node(job | active, job | signed, job | out_of_range)
    assert [one["check"] for one in found] == ["policy", "input", "input"]


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


def seed_of(client: int) -> str:
    """Return the seed of a client's identity in tests."""
    return make_identity(client)._private.private_bytes_raw().hex()


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


@pytest.mark.skipif(BROWSER is None, reason="needs chromium")
def test_report_of_a_web_page_is_in_the_exact_sum(tmp_path: Path) -> None:
    asyncio.run(report_by_a_page(tmp_path))


async def report_by_a_page(folder: Path) -> None:
    """A page of one origin reports 10,000 numbers to a collection of another."""
    length = 10_000
    vector = np.random.default_rng(2).integers(-(1 << 16), 1 << 16, length) / (1 << 16)
    more = {"n_clients": 5, "length": length, "encoding": FixedPoint(2.0, 16), "modulus": 2**40}
    with parties(**more) as made, site() as page, site() as collection:
        async with browser(folder / "profile") as chromium:
            page.show_page(settings_of(made.params))
            await chromium.open(f"{page.url}/index.html", width=800)
            key = await chromium.value("document.querySelector('#key').textContent || null")
            keys = {client: make_identity(client).public for client in (1, 2)}
            registry = Registry({**keys, identify("ward 3")[0]: bytes.fromhex(key)})
            helpers = [Helper(made.params, one, registry=registry) for one in made.journals]
            endorsements = [helper.endorse() for helper in helpers]
            collection.collect(made.params, endorsements, page.url)
            collection.refusals.append((503, {"Retry-After": "0"}, b"{}"))
            await chromium.value(filled(collection.url, "ward 3", vector.tolist()))
            said = await chromium.value(SAID)
            # the key of the page outlives the page, and a second report is refused
            problem = json.dumps({"check": "id", "detail": "another report"}).encode()
            collection.refusals.append((409, {}, problem))
            await chromium.open(f"{page.url}/index.html", width=800)
            await chromium.value(f"document.querySelector('#key').textContent === '{key}'")
            await chromium.value(filled(collection.url, "ward 3", vector.tolist()))
            assert await chromium.value(SAID) == "id: another report"
        print(said)
        reports_path = f"/v1/parameters/{made.params.digest.hex()}/reports"
        assert collection.requests == [reports_path] * 3
        accumulator = Accumulator(made.params, registry=registry)
        assert accumulator.add(collection.reports[0])
        for client in keys:
            assert accumulator.add(made.report(client))
        for helper in helpers:
            for chunk in accumulator.boxes(helper.number):
                assert helper.check(chunk) == ()
        expected = vector + sum(made.vectors[client] for client in keys)
        assert np.array_equal(open_sum(accumulator, helpers).sum, expected)


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
