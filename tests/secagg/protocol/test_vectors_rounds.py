"""Golden vectors of whole rounds: every byte of every client and of the server, and the sum."""

from __future__ import annotations

import pytest

from vectors_reader import ROUNDS, Replay

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
            out = replay.call(client, phase, data)
            lies = of["wrong_share"] and phase == "unmasking"
            assert (out == replay.sent[phase][u]) is not lies, (u, phase)
            sent += 1
        assert sent == sum(u in replay.sent[phase] for phase in replay.phases)
        if sent == len(replay.phases):
            assert client.phase == "finished"
            assert not replay.fed[u].left  # all of its entropy was drawn, no more


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_check27_server_answers_with_the_bytes_of_the_round(name, backwards) -> None:
    replay = Replay(name)
    server = replay.server()
    for phase in replay.phases:
        for u, data in sorted(replay.sent[phase].items(), reverse=backwards):
            server.receive(u, data)
        assert server.close_round() == replay.answers[phase]
    result, expected = server.result(), replay.vector["result"]
    assert result.survivors == tuple(int(u) for u in expected["survivors"])
    assert result.integers.tolist() == [int(x) for x in expected["integers"]]
    assert result.weight == expected["weight"]
    assert result.clipped == expected["clipped"]
    assert result.disputes == tuple(map(tuple, expected["disputes"]))
    scale = getattr(replay.params.encoding, "scale", 1)
    assert result.sum.tolist() == [int(x) / scale for x in expected["integers"]]


def _before(replay: Replay, phase: str) -> str:
    return replay.phases[replay.phases.index(phase) - 1]
