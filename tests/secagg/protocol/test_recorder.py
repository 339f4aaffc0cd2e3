"""A recorder who later breaks X25519 opens all of suite x25519, and nothing of suite hybrid.

The recorder has all messages, late ones too, and the private X25519 keys of all clients.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import ExitStack, suppress
from typing import Any
from unittest import mock

import pytest

from harness import make_params
from independent_views import as_parameters
from lying_clients import LiarsCohort, Lie, seals_noise
from recorder import Pair, Recorder, Recording
from secagg import RoundParams, TooFewSurvivors
from secagg.client import client
from secagg.client.opening import Received, receive
from secagg.protocol import pair_masks
from secagg.protocol.keys import KeyPair
from secagg.testing.rounds import plain_encoding

SHAPES = {
    "complete": {"n": 5},
    "graph": {"n": 8, "threshold": 3, "neighbours": 4},
    "active": {"n": 7, "threshold": 5, "security": "active"},
}


class Recorded(LiarsCohort):
    """A round that is recorded.

    Attributes
    ----------
    private : dict of int to (bytes, bytes)
        X25519 private keys of all clients.
    p : dict of (int, int) to bytes
        Contributions, by contributor and peer; empty bytes in suite x25519.
    mask_keys : dict of (int, int) to bytes
        Keys of the masks of pairs, the lower id first.
    """

    def __init__(
        self, params: RoundParams, lies: Mapping[int, list[Lie]] | None = None
    ) -> None:
        super().__init__(params, lies)
        self.recording = Recording(as_parameters(params))
        self.private: dict[int, tuple[bytes, bytes]] = {}
        self.p: dict[Pair, bytes] = {}
        self.mask_keys: dict[Pair, bytes] = {}

    def play(self, gone: Mapping[int, int]) -> Recorder:
        """Run the round; each client of `gone` is late from a phase on. Return the recorder."""
        with suppress(TooFewSurvivors):
            for phase in range(len(self.phases())):
                sent = self.step()
                self.recording.sent.append(sent)
                late = {u for u, first in gone.items() if first <= phase}
                kept = {u: data for u, data in sent.items() if u not in late}
                self.recording.answered.append(self.deliver(kept))
        return Recorder(self.recording, self.private)

    def answer(self, u: int, data: bytes) -> bytes:
        with mock.patch.object(client, "receive", self._receive):
            message = super().answer(u, data)
        state = self.clients[u]._state
        if len(self.sent) == 0:
            self.private[u] = state.sealing.pair.private, state.mask_pair.private
        if len(self.sent) == 1:
            ids, rows = state.peers.ids.tolist(), state.peers.own_p
            self.p |= {(u, v): p.tobytes() for v, p in zip(ids, rows, strict=True)}
        return message

    def _receive(self, *arguments: Any) -> Received:
        """Keep the keys by which a client masks its input in fact."""
        received, me = receive(*arguments), arguments[3]
        for v, key in zip(received.ids.tolist(), received.mask_keys, strict=True):
            self.mask_keys[min(me, v), max(me, v)] = key.tobytes()
        return received


def right_masks(cohort: Recorded, found: Recorder) -> dict[Pair, bytes]:
    """Return the mask keys that the recorder found."""
    return {pair: key for pair, key in cohort.mask_keys.items() if key in found.mask_keys[pair]}


def right_p(cohort: Recorded, found: Recorder) -> set[Pair]:
    """Return the contributions that the recorder found."""
    return {
        pair
        for pair, p in cohort.p.items()
        if p and (found.p.get(pair) == p or p in found.guessed.get(pair, ()))
    }


def read(cohort: Recorded, found: Recorder) -> set[int]:
    """Return the clients whose input the recorder reads."""
    masks, clear = right_masks(cohort, found), set()
    for w in found.values:
        elements = found.masked(w, masks)
        if elements is not None:
            own = plain_encoding(cohort.params, cohort.vectors[w], cohort.weights[w])
            assert elements == [x % cohort.params.ring.modulus for x in own]
            clear.add(w)
    return clear


def rebuilt_by(cohort: Recorded, gone: Mapping[int, int]) -> set[int]:
    """Return the clients whose masking seed the server rebuilds."""
    ended = cohort.server.phase == "finished"
    return {u for u, first in gone.items() if first == 2 and ended}


def of_server(
    cohort: Recorded, gone: Mapping[int, int], rebuilt: Collection[int]
) -> tuple[set[Pair], set[Pair]]:
    """Return the p and the mask keys of pairs that the server may learn."""
    p, masks = set(), set()
    for u, v in cohort.p:
        if u in rebuilt:
            p.add((u, v))
            if gone.get(v, 9) > 1:  # v sent a masked input, also if late
                p.add((v, u))
                masks.add((min(u, v), max(u, v)))
    return p, masks


def patterns(name: str) -> list[dict[int, int]]:
    """Return the phases from which clients are late: each phase, and pairs of phases."""
    last = 4 if name == "active" else 3
    return [{}, *({1: phase} for phase in range(1, last)), {1: 2, 2: 2}, {1: 2, 3: last}]


@pytest.mark.parametrize("name", SHAPES)
def test_check56_recorder_with_all_x25519_keys_learns_what_the_server_may(name: str) -> None:
    """No box, no p and no mask but those of clients that dropped out, and no input."""
    for gone in patterns(name):
        cohort = Recorded(make_params(**SHAPES[name], suite="hybrid"))
        found = cohort.play(gone)
        assert cohort.server.phase == "finished"
        rebuilt = rebuilt_by(cohort, gone)
        assert found.boxes == {}
        assert found.seeds.keys() == rebuilt
        assert found.b.keys() == set(cohort.server.result().survivors)
        p, masks = of_server(cohort, gone, rebuilt)
        assert right_p(cohort, found) == p, gone
        assert right_masks(cohort, found).keys() == masks, gone
        assert read(cohort, found) == set()


@pytest.mark.parametrize("name", SHAPES)
def test_check56_recorder_reads_every_input_of_suite_x25519(name: str) -> None:
    """Else the recorder above could not fail."""
    for gone in patterns(name):
        cohort = Recorded(make_params(**SHAPES[name], suite="x25519"))
        found = cohort.play(gone)
        assert found.boxes.keys() == cohort.p.keys()
        assert right_masks(cohort, found).keys() == cohort.mask_keys.keys()
        assert found.b.keys() == found.seeds.keys() == set(cohort.ids)
        assert read(cohort, found) == found.values.keys() != set()


@pytest.mark.parametrize("suite", ["hybrid", "x25519"])
def test_check56_round_that_ends_before_shares_tells_a_recorder_as_little(suite: str) -> None:
    """Too few survivors: of suite x25519 the recorder still reads what came."""
    cohort = Recorded(make_params(5, suite=suite))
    found = cohort.play({0: 2, 1: 2, 2: 2})
    assert cohort.server.phase == "failed"
    if suite == "hybrid":
        assert (found.boxes, found.b, found.seeds) == ({}, {}, {})
        assert right_p(cohort, found) == right_masks(cohort, found).keys() == set()
    assert read(cohort, found) == (set() if suite == "hybrid" else set(cohort.ids))


def test_check56_complaints_tell_a_recorder_of_their_pair_alone() -> None:
    lies = {1: [seals_noise([0])], 2: [seals_noise([0])]}
    cohort = Recorded(make_params(10, security="active", suite="hybrid"), lies)
    found = cohort.play({5: 2})
    p, masks = of_server(cohort, {5: 2}, rebuilt_by(cohort, {5: 2}))
    pairs_told = {(0, 1), (1, 0), (0, 2), (2, 0)}
    assert found.boxes == {}
    assert right_p(cohort, found) == p | pairs_told
    assert right_masks(cohort, found).keys() == masks | {(0, 1), (0, 2)}
    assert read(cohort, found) == set()


def seed_is_key() -> dict[str, object]:
    """Version 3: the masking seed is the private key."""
    return {"target": KeyPair, "attribute": "masking", "new": KeyPair}


def clear_deposits() -> dict[str, object]:
    return {
        "target": pair_masks,
        "attribute": "deposits",
        "new": lambda _q, _s, _u, _v, p: p + 0,
    }


@pytest.mark.parametrize("weaken", [seed_is_key, clear_deposits])
@pytest.mark.parametrize("name", SHAPES)
def test_check56_recorder_reads_all_inputs_without_a_rule_of_the_design(name, weaken) -> None:
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(**weaken()))
        cohort = Recorded(make_params(**SHAPES[name], suite="hybrid"))
        found = cohort.play({})
    assert found.boxes == {}
    assert right_masks(cohort, found).keys() == cohort.mask_keys.keys()
    assert read(cohort, found) == set(cohort.ids)
