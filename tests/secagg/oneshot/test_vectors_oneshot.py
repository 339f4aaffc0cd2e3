"""Golden and malformed vectors of one-shot sums, from docs/oneshot.md by code of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from oneshot_parties import LENIENT, rejects
from oneshot_vectors import SESSIONS, Session, params_of
from secagg import FixedPoint, Identity, Integers
from secagg.oneshot import Accumulator, OneShotParams, messages, report, seeds, suites
from secagg.oneshot.noise import blocks, noise_key
from vectors_reader import FOLDER, Fed, Vector, b, load

MALFORMED = load("oneshot_malformed")


@pytest.fixture
def opened(ram_path: Path) -> Iterator[Callable[[str], Session]]:
    made: list[Session] = []

    def make(name: str) -> Session:
        made.append(Session(name, ram_path))
        return made[-1]

    yield make
    for journal in (journal for session in made for journal in session.journals):
        journal.close()


@pytest.mark.parametrize("name", SESSIONS)
def test_check27_bytes_of_one_shot_parameters(name: str) -> None:
    session = SESSIONS[name]
    params, data = params_of(session["parameters"]), b(session["bytes"])
    assert params.to_bytes() == data
    assert params.digest == b(session["digest"])
    read = OneShotParams.from_bytes(data)
    assert (read.to_bytes(), read.digest) == (data, params.digest)
    held = [list(params.held_by(j)) for j in range(1, len(params.helpers) + 1)]
    found = (params.seeds, held, params.quorum, params.elements, params.ring.bits)
    names = ("seeds", "held", "quorum", "elements", "bits")
    assert found == tuple(session[name] for name in names)


def test_check27_seeds_and_quorum_of_all_thresholds() -> None:
    helpers = params_of(SESSIONS["three-of-five"]["parameters"]).helpers
    two = params_of(SESSIONS["two-of-two-active"]["parameters"]).helpers
    for case in load("oneshot")["counts"]:
        params = OneShotParams(
            n_clients=3,
            length=1,
            encoding=Integers(1),
            helpers=(*helpers, *two)[: case["helpers"]],
            threshold=case["threshold"],
            min_clients=3,
            suite="x25519",
            session=b"session",
        )
        held = [list(params.held_by(j)) for j in range(1, case["helpers"] + 1)]
        assert held == case["held"]
        assert (params.seeds, params.quorum) == (case["seeds"], case["quorum"])


@pytest.mark.parametrize("name", SESSIONS)
def test_check27_derivations_of_a_client(name: str) -> None:
    session = Session(name)
    params = session.params
    for client in session.clients:
        u, drawn = int(client["id"]), [b(seed) for seed in client["seeds"]]
        rows = np.frombuffer(b"".join(drawn), np.uint8).reshape(len(drawn), -1)
        derived = seeds.mask_keys(rows, params.digest, [(u, i + 1) for i in range(len(drawn))])
        assert [row.tobytes() for row in derived] == list(map(b, client["mask_keys"]))
        for i, seed in enumerate(drawn, 1):
            commitment = seeds.commitment(seed, params.digest, u, i)
            assert commitment == b(client["commitments"][i - 1])
        content = u.to_bytes(8, "little") + b"".join(map(b, client["commitments"]))
        head = messages.read_head(content, params)
        assert head.content == b(client["head"])
        for j in range(1, len(params.helpers) + 1):
            assert messages.box_info(head, j) == b(client["infos"][j - 1])
            box_key = suites.BoxKey(params.suite, b(session.vector["secrets"][j - 1][0]))
            found = box_key.open(b(client["boxes"][j - 1]), messages.box_info(head, j))
            assert found == b(client["contents"][j - 1])


@pytest.mark.filterwarnings("ignore::secagg.ClippingWarning")
@pytest.mark.parametrize("name", SESSIONS)
def test_check27_report_of_a_client_but_its_boxes(name: str) -> None:
    """HPKE draws its own randomness, so the boxes are opened instead of compared."""
    session = Session(name)
    params = session.params
    for client in session.clients:
        kind = np.float64 if isinstance(params.encoding, FixedPoint) else np.int64
        values = [x if kind is np.float64 else int(x) for x in client["vector"]]
        identity = Identity(b(client["identity_seed"])) if params.active else None
        fed = Fed(client["draws"])
        sent = report(
            np.array(values, kind),
            params,
            int(client["id"]),
            client["weight"],
            identity=identity,
            policy=LENIENT,
            entropy=fed,
        )
        assert not fed.left
        expected, layout = b(client["report"]), params.layout
        assert len(sent) == len(expected) == layout.report
        assert sent[: layout.boxes[0]] == expected[: layout.boxes[0]]
        assert sent[layout.boxes[-1] :] == expected[layout.boxes[-1] :]
        for j in range(1, len(params.helpers) + 1):
            box_key = suites.BoxKey(params.suite, b(session.vector["secrets"][j - 1][0]))
            found = box_key.open(sent[layout.box(j)], b(client["infos"][j - 1]))
            assert found == b(client["contents"][j - 1])


@pytest.mark.parametrize("name", SESSIONS)
def test_check27_messages_of_a_batch(name: str, opened: Callable[[str], Session]) -> None:
    session = opened(name)
    accumulator, messages_ = session.accumulator(), session.list
    assert accumulator.to_bytes() == b(messages_["stored"])
    for helper, chunk in zip(session.helpers, messages_["boxes"], strict=True):
        (own,) = accumulator.boxes(helper.number)
        assert own == b(chunk)
        assert helper.check(own) == ()
        assert helper.endorse() == b(session.vector["endorsements"][helper.number - 1])
    request = accumulator.request()
    assert request == b(messages_["request"])
    again = Accumulator.from_bytes(
        b(messages_["settled"]), session.params, registry=session.registry
    )
    assert again.to_bytes() == b(messages_["settled"])
    assert again.request() == request
    reservations = [helper.reserve(request) for helper in session.helpers]
    assert reservations == [b(data) for data in messages_["reservations"]]
    signers = [reservations[j - 1] for j in messages_["signers"]]
    signed = accumulator.request(signers)
    assert signed == b(messages_["signed_request"])
    answers = [helper.open(signed) for helper in session.helpers]
    assert answers == [b(data) for data in messages_["answers"]]
    result = accumulator.result(answers[-session.params.threshold :])
    weight = [] if result.weight is None else [result.weight]
    assert [*result.integers.tolist(), *weight] == [int(x) for x in messages_["integers"]]
    assert list(result.survivors) == [int(u) for u in messages_["ids"]]


@pytest.mark.parametrize("name", ["noise", "noise-below-zero"])
def test_check27_noise_of_a_batch(name: str) -> None:
    session = Session(name)
    noise, digest = session.params.noise, b(session.list["digest"])
    assert noise is not None
    for i, expected in enumerate(session.list["noises"]):
        seeds = [b(client["seeds"][i]) for client in session.clients]
        key = noise_key(i + 1, seeds, digest)
        assert key == b(session.list["noise_keys"][i])
        (drawn,) = blocks(noise, key, session.params.elements)
        assert drawn.tolist() == expected


@pytest.mark.parametrize("case", MALFORMED["parameters"], ids=lambda c: c["name"])
def test_check27_bytes_that_are_no_one_shot_parameters(case: Vector) -> None:
    error = rejects(case["check"], lambda: OneShotParams.from_bytes(b(case["bytes"])))
    assert (error.phase, error.sender) == ("parameters", None)


@pytest.mark.parametrize("case", MALFORMED["records"], ids=lambda c: c["name"])
def test_check27_records_that_a_helper_rejects(
    case: Vector, opened: Callable[[str], Session]
) -> None:
    session = opened("example")
    assert list(session.helpers[1].check(b(case["bytes"]))) == case["rejected"]


def by_session(cases: list[Vector]) -> dict[str, list[Vector]]:
    out: dict[str, list[Vector]] = {}
    for case in cases:
        # what was accepted before a case would be in the way of others
        own = len(out) if case["before"] and case["where"] in ("reserve", "open") else ""
        out.setdefault(f"{case['session']} {case['where']} {own}".strip(), []).append(case)
    return out


def act(session: Session, accumulator: Accumulator, case: Vector) -> Callable[[], object]:
    """Do what comes before a case, and return the call that is to fail."""
    before, data = [b(item) for item in case["before"]], b(case["bytes"])
    helper = session.helpers[case["helper"] - 1]
    match case["where"]:
        case "add":
            for item in before:
                assert accumulator.add(item)
            return partial(accumulator.add, data)
        case "check":
            return partial(helper.check, data)
        case "reserve" | "open" as name:
            for item in before:
                getattr(helper, name)(item)
            return partial(getattr(helper, name), data)
        case "reservation":
            accumulator.request()
            return partial(accumulator.request, [data])
        case "answer":
            accumulator.request()
            return partial(accumulator.result, [*before, data])
    kept = {"registry": session.registry}
    return partial(Accumulator.from_bytes, data, session.params, **kept)


@pytest.mark.parametrize(
    "cases", by_session(MALFORMED["refused"]).values(), ids=by_session(MALFORMED["refused"])
)
def test_check27_malformed_one_shot_messages_change_nothing(
    cases: list[Vector], opened: Callable[[str], Session]
) -> None:
    session, where = opened(cases[0]["session"]), cases[0]["where"]
    if where in ("reserve", "open"):
        session.check_boxes()
    for case in cases:
        accumulator = session.accumulator(0 if where == "add" else None)
        call = act(session, accumulator, case)
        stored = accumulator.to_bytes()
        error = rejects(case["check"], call)
        assert error.phase == case["phase"], case["name"]
        assert accumulator.to_bytes() == stored
    if where in ("reserve", "open") and not cases[0]["before"]:
        helper = session.helpers[cases[0]["helper"] - 1]
        answer = helper.open(b(session.list["signed_request"]))
        assert answer == b(session.list["answers"][helper.number - 1])


def test_check27_worked_example_is_in_the_vectors() -> None:
    document = (FOLDER.parents[1] / "docs" / "oneshot.md").read_text()
    shown = document.split("<!-- example -->")[1].split("<!-- end -->")[0]
    vectors = (FOLDER / "oneshot.json").read_text(encoding="ascii")
    values: dict[str, str] = {}
    for line in shown.splitlines():
        if line.endswith(":"):
            name = line
            values[name] = ""
        elif line.startswith("    "):
            values[name] += line.strip()
    assert len(values) > 15
    assert all(f'"{value}"' in vectors for value in values.values())
