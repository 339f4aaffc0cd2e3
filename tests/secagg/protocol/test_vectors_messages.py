"""Golden vectors of the messages: their bytes, odd spellings, and malformed ones rejected."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest

import independent_judge
from secagg import LocalProtocolError, RemoteProtocolError, Server, TooFewSurvivors, blame
from secagg.errors import Verdict
from secagg.protocol import messages
from vectors_reader import FOLDER, ROUNDS, Replay, b, load, params_of

MALFORMED = load("malformed")
Case = dict[str, Any]


def fields_of(case: Case) -> dict[str, int | bytes]:
    out: dict[str, int | bytes] = {}
    for name, value in case["fields"].items():
        if isinstance(value, dict):
            out[name] = b(value["repeat"]) * value["times"]
        else:
            out[name] = int(value) if name in ("sender", "size") else b(value)
    return out


@pytest.mark.parametrize("case", load("messages")["messages"], ids=lambda c: c["kind"])
def test_check27_message_bytes_and_fields(case) -> None:
    kind, fields = getattr(messages, case["kind"]), fields_of(case)
    data = messages.encode(kind(**fields))
    if "bytes" in case:
        assert data == b(case["bytes"])
    else:
        assert data.startswith(b(case["bytes_head"]))
        assert hashlib.sha256(data).digest() == b(case["bytes_sha256"])
    decoded = messages.decode(
        data, kind, params_of(case["parameters"]), sender=None, phase="any"
    )
    assert {name: getattr(decoded, name) for name in kind.__struct_fields__} == fields


@pytest.mark.parametrize("case", load("messages")["limits"])
def test_check27_most_bytes_of_each_message(case) -> None:
    params = params_of(case["parameters"])
    for kind, limit in case["limits"].items():
        assert messages.max_bytes(getattr(messages, kind), params) == limit


def by_state(cases: list[Case]) -> dict[str, list[Case]]:
    """The cases of the server, by the state it is in: a rejected message changes nothing."""
    out = defaultdict(list)
    for case in cases:
        if case["side"] == "server":
            out[f"{case['round']} {case['phase']} {case['accepted']}"].append(case)
    return dict(out)


@pytest.mark.parametrize(
    "cases", by_state(MALFORMED["refused"]).values(), ids=by_state(MALFORMED["refused"])
)
def test_check27_server_rejects_malformed_and_continues(cases) -> None:
    """The server rejects malformed messages and goes on."""
    phase, replay = cases[0]["phase"], Replay(cases[0]["round"])
    server, accepted = replay.server(phase), cases[0]["accepted"]
    for u in map(int, accepted):
        server.receive(u, replay.sent[phase][u])
    for case in cases:
        u = int(case["from"])
        with pytest.raises(RemoteProtocolError) as caught:
            server.receive(u, b(case["bytes"]))
        found = (caught.value.check, caught.value.phase, caught.value.sender)
        assert found == (case["check"], phase, u), case["name"]
    for u, data in replay.sent[phase].items():
        server.receive(u, data)
    assert server.close_round() == replay.answers[phase]


@pytest.mark.parametrize(
    "case",
    [case for case in MALFORMED["refused"] if case["side"] == "client"],
    ids=lambda c: c["name"],
)
def test_check27_client_ends_at_a_malformed_message(case) -> None:
    replay, phase = Replay(case["round"]), case["phase"]
    before = case["before"] and [b(data) for data in case["before"]]
    client = replay.client_in(int(case["client"]), phase, before)
    with pytest.raises(RemoteProtocolError) as caught:
        replay.call(client, phase, b(case["bytes"]))
    found = (caught.value.check, caught.value.phase, caught.value.sender)
    assert found == (case["check"], phase, None)
    assert client.phase == "failed"
    with pytest.raises(LocalProtocolError):
        replay.call(client, phase, replay.answered(client.client_id, phase))


@pytest.mark.parametrize("case", MALFORMED["accepted"], ids=lambda c: c["name"])
def test_check27_other_encodings_are_read_alike(case) -> None:
    replay, phase, kind = Replay(case["round"]), case["phase"], getattr(messages, case["kind"])
    data, shortest = b(case["bytes"]), b(case["as"])
    read = {"sender": None, "phase": phase}
    decoded = messages.decode(data, kind, replay.params, **read)
    assert decoded == messages.decode(shortest, kind, replay.params, **read)
    assert messages.encode(decoded) == shortest
    if case["side"] == "client":
        u = int(case["client"])
        client = replay.client_in(u, phase)
        assert replay.call(client, phase, data) == replay.sent[phase][u]
        return
    server = replay.server(phase)
    for u, usual in replay.sent[phase].items():
        server.receive(u, data if u == int(case["from"]) else usual)
    assert server.close_round() == replay.answers[phase]


@pytest.mark.parametrize("case", MALFORMED["closings"])
def test_check27_closing_with_too_few_clients_aborts(case) -> None:
    replay, phase = Replay(case["round"]), case["phase"]
    for m in case.get("earlier", ()):
        replay.sent[m["phase"]][int(m["id"])] = b(m["bytes"])
    server = replay.server(phase)
    sent = dict(replay.sent[phase])
    sent |= {int(m["id"]): b(m["bytes"]) for m in case["replace"]}
    for u in map(int, case["accepted"]):
        server.receive(u, sent[u])
    if case["error"] == "TooFewSurvivors":
        with pytest.raises(TooFewSurvivors) as caught:
            server.close_round()
        found = (caught.value.phase, caught.value.survivors, caught.value.needed)
        assert found == (phase, len(case["accepted"]), case["needed"])
    else:
        with pytest.raises(RemoteProtocolError) as caught:
            server.close_round()
        found = (caught.value.phase, caught.value.check, caught.value.sender)
        assert found == (phase, case["check"], None)
    assert server.phase == "failed"
    with pytest.raises(LocalProtocolError):
        server.result()


def test_check27_malformed_vectors_cover_every_kind_and_check() -> None:
    """Every row of the document's table of checks but those of closings has its vector.

    A ledger is a client's own; tests of it are in test_ledger.
    """
    rejected = MALFORMED["refused"]
    assert {case["kind"] for case in rejected} == {
        c["kind"] for c in load("messages")["messages"]
    }
    assert {case["round"] for case in rejected} <= set(ROUNDS)
    document = (FOLDER.parents[1] / "docs" / "protocol.md").read_text()
    table = document.split("<!-- checks -->")[1].split("<!-- end -->")[0]
    rows = {
        (cells[2].strip(), cells[1].strip(" `"))
        for line in table.splitlines()
        if len(cells := line.split("|")) == 6 and cells[2].strip() in ("client", "server")
    }
    covered = {(case["side"], case["check"]) for case in rejected}
    closings = {("server", case["check"]) for case in MALFORMED["closings"] if "check" in case}
    ended = [r["error"]["check"] for r in ROUNDS.values() if r["error"]]
    closings |= {("server", check) for check in ended if check}
    at_closings = {"shares", "sum", "weight", "clipped", "contribution", "dealer"}
    assert closings == {("server", check) for check in at_closings}
    # `dealer` is a check of a message, too
    assert rows - covered - {("client", "ledger")} == closings - covered
    assert not covered - rows


NAMES = list(ROUNDS)


@pytest.mark.parametrize("name", NAMES)
def test_check27_clients_send_the_bytes_of_the_round(name) -> None:
    replay = Replay(name)
    for u, of in replay.of.items():
        client, sent = replay.client(u), 0
        for phase in replay.phases:
            if of["drops_at"] == phase:
                break
            asked = phase == "advertise_keys" or u in replay.answers[_before(replay, phase)]
            if not asked:  # left out by the server: it saw too few
                break
            data = b"" if phase == "advertise_keys" else replay.answered(u, phase)
            out, there = replay.call(client, phase, data), replay.sent[phase][u]
            if of["lies_at"] == phase:
                assert out != there, (u, phase)
                break
            assert out == there, (u, phase)
            sent += 1
        if of["lies_at"] is not None:
            continue
        assert sent == sum(u in replay.sent[phase] for phase in replay.phases)
        if "unmasking" in replay.phases and sent == len(replay.phases):
            assert client.phase == "finished"
            assert not replay.fed[u].left  # all of its entropy was drawn, no more


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_check27_server_answers_with_the_bytes_of_the_round(name, backwards) -> None:
    replay = Replay(name)
    server = replay.server()
    *earlier, last = replay.phases
    for phase in earlier:
        for u, data in sorted(replay.sent[phase].items(), reverse=backwards):
            server.receive(u, data)
        assert server.close_round() == replay.answers[phase]
    for u, data in sorted(replay.sent[last].items(), reverse=backwards):
        server.receive(u, data)
    if replay.vector["error"] is not None:
        require_error(server, last, replay)
        return
    assert server.close_round() == {}
    result, expected = server.result(), replay.vector["result"]
    assert result.survivors == tuple(int(u) for u in expected["survivors"])
    assert result.integers.tolist() == [int(x) for x in expected["integers"]]
    assert result.weight == expected["weight"]
    assert result.clipped == expected["clipped"]
    assert result.disputes == tuple(map(tuple, expected["disputes"]))
    require_verdicts(result.verdicts, expected["verdicts"], replay)
    scale = getattr(replay.params.encoding, "scale", 1)
    hoped = expected["values"] or [int(x) / scale for x in expected["integers"]]
    assert result.sum.tolist() == hoped
    assert result.clipped_vectors == expected["clipped_vectors"]


def require_error(server: Server, phase: str, replay: Replay) -> None:
    """Require that the last closing ends the server as the round says."""
    expected = replay.vector["error"]
    with pytest.raises((RemoteProtocolError, TooFewSurvivors)) as caught:
        server.close_round()
    error = caught.value
    assert (type(error).__name__, error.phase) == (expected["error"], phase)
    if isinstance(error, TooFewSurvivors):
        assert (error.survivors, error.needed) == (expected["survivors"], expected["needed"])
    else:
        assert (error.check, error.sender) == (expected["check"], expected["sender"])
        assert error.disputes == tuple(map(tuple, expected["disputes"]))
    require_verdicts(error.verdicts, expected["verdicts"], replay)
    assert server.phase == "failed"


def require_verdicts(found: Sequence[Verdict], expected: list[Case], replay: Replay) -> None:
    """Require that these clients are named, and that both judges are convinced."""
    named = sorted((verdict.client, verdict.kind) for verdict in found)
    assert named == [(int(v["client"]), v["kind"]) for v in expected]
    for verdict in found:
        assert blame.check(verdict.data, replay.registry) == verdict.client
        keys = dict(replay.registry or {})
        assert independent_judge.judge(verdict.data, keys) == (verdict.client, verdict.kind)


def _before(replay: Replay, phase: str) -> str:
    return replay.phases[replay.phases.index(phase) - 1]
