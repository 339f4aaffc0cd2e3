"""Another client, aggregator and helper of docs/oneshot.md, side by side with the package's.

With the same entropy and keys both send the same bytes but for boxes, and reject the same
messages by the same checks. A difference is a fault of the document or of one of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import independent_hpke
import independent_oneshot as independent
import independent_primitives as primitives
from effort import examples
from fuzz.targets import Script, altered_by
from oneshot_parties import Parties, parties, registry_for
from secagg import (
    FixedPoint,
    Integers,
    ParameterError,
    RemoteProtocolError,
    TooFewSurvivors,
    _fast,
)
from secagg.oneshot import Accumulator, Noise, OneShotParams, OneShotPolicy
from secagg.testing import InsecureReplayedEntropy
from vectors_reader import b, load

EXAMPLES = 60 if _fast.COMPILED else 20
CLIENTS = (0, 7, 12, 29)
EXACT = FixedPoint(2.0, 4, rounding="nearest")
WORLDS: tuple[tuple[int, int, dict[str, object]], ...] = (
    (2, 2, {"security": "semi-honest", "n_clients": 4}),
    (3, 2, {"encoding": EXACT, "max_weight": 3, "modulus_bits": 17}),
    (4, 2, {"modulus": (1 << 61) - 1}),
    (3, 3, {"n_clients": 3, "modulus_bits": 64, "length": 9}),
    (1, 1, {"security": "semi-honest", "min_clients": 2, "session": b""}),
    (5, 3, {"modulus": (1 << 64) // 5 + 1, "max_weight": 1}),
    (2, 1, {"encoding": Integers(1), "modulus_bits": 5}),
    (3, 2, {"noise": Noise(11.3), "max_weight": 2, "modulus": 99_991, "length": 9}),
    (2, 2, {"noise": Noise(2**20), "encoding": EXACT, "modulus_bits": 64, "max_weight": 9}),
    (3, 3, {"noise": Noise(0.4), "modulus_bits": 20, "length": 90}),
    (2, 2, {"suite": "hybrid", "encoding": EXACT}),
)


def outcome(step: Callable[[], object]) -> object:
    """Return what a step returns, or the phase and the check of its rejection."""
    try:
        return step()
    except (RemoteProtocolError, primitives.ProtocolError) as error:
        return error.phase, error.check
    except (TooFewSurvivors, independent.TooFew):
        return "too few clients"
    except (ParameterError, primitives.ParameterError):
        return "too few helpers"


class World:
    """Parties of the package, and rivals with the same keys and registry."""

    def __init__(self, made: Parties, folder: Path) -> None:
        self.made = made
        self.params = made.params
        self.p = independent.Parameters.decode(made.params.to_bytes())
        registry = registry_for(made.params)
        self.registry = None if registry is None else dict(registry)
        self.journals = [
            independent.Journal(folder / f"rival {j}", (drawn[0], drawn[1]))
            for j, drawn in enumerate(made._secrets)
        ]
        self.rivals = [
            independent.Helper(self.p, journal, self.registry, 2) for journal in self.journals
        ]

    def close(self) -> None:
        for journal in self.journals:
            journal.close()

    def reports(self, u: int) -> tuple[bytes, bytes]:
        """Return a client's report by either implementation."""
        own = self.made.report(u)
        vector, weight = self.made.vectors[u], self.made.weights[u]
        entropy = InsecureReplayedEntropy((u, 0))
        seed = None
        if self.params.active:  # the one of `make_identity`
            seed = InsecureReplayedEntropy(("identity", u))(32)
        theirs = independent.Report(vector.tolist(), self.p, u, weight, seed, entropy)
        return own, theirs.encode()


@contextmanager
def worlds(helpers: int, threshold: int, changes: dict[str, object]) -> Iterator[World]:
    with (
        parties(helpers, threshold, **changes) as made,
        closing(World(made, made.journals[0].path.parent)) as world,
    ):
        yield world


class Session:
    """Both implementations side by side, over messages that a script alters.

    Reports are of the one implementation for even ids, and of the other for odd ones.
    """

    def __init__(self, world: World, script: Script) -> None:
        self.world, self.made, self.p = world, world.made, world.p
        self.ours = world.made.accumulator(())
        self.theirs = independent.Aggregator(world.p, world.registry)
        self.pairs = list(zip(world.made.helpers, world.rivals, strict=True))
        self._script = script
        self._seen = [b""]

    def arrives(self, data: bytes) -> bytes:
        arrived = altered_by(data, self._script, self._seen)
        self._seen.append(data)
        return arrived

    def run(self) -> object:
        """Return the last outcome that both had."""
        for u in CLIENTS:
            data = self.arrives(self.world.reports(u)[u % 2])
            both(partial(self.ours.add, data), partial(self.theirs.add, data))
        self.store()
        self.check()
        request = both(self.ours.request, self.theirs.request)
        if not isinstance(request, bytes):
            return request
        good = self.reserve(request)
        if len(good) >= self.p.q:
            request = both(partial(self.ours.request, good), partial(self.theirs.request, good))
        assert isinstance(request, bytes)
        return self.open(request)

    def store(self) -> None:
        assert self.ours.to_bytes() == self.theirs.encode()
        data = self.arrives(self.ours.to_bytes())
        rivals = self.world.registry
        both(
            lambda: self.made.restored(data).to_bytes(),
            lambda: independent.Aggregator.decode(data, self.p, rivals).encode(),
        )

    def check(self) -> None:
        for helper, rival in self.pairs:
            chunk = b"".join(self.ours.boxes(helper.number))
            assert chunk in (b"", self.theirs.boxes(helper.number))
            data = self.arrives(chunk)
            rejected = both(lambda: list(helper.check(data)), lambda: rival.check(data))  # noqa: B023
            if isinstance(rejected, list):
                for u in set(rejected) & set(self.ours.ids):
                    self.ours.drop([u])
                    self.theirs.drop(u)

    def reserve(self, request: bytes) -> list[bytes]:
        """Return the reservations that both aggregators take."""
        good = []
        for helper, rival in self.pairs:
            data = self.arrives(request)
            reply = both(partial(helper.reserve, data), partial(rival.reserve, data))
            if isinstance(reply, bytes):
                arrived = self.arrives(reply)
                one = [partial(a.request, [arrived]) for a in (self.ours, self.theirs)]
                if not isinstance(both(*one), tuple):
                    good.append(arrived)
        return good

    def open(self, request: bytes) -> object:
        answers = []
        for helper, rival in self.pairs:
            data = self.arrives(request)
            answer = both(partial(helper.open, data), partial(rival.open, data))
            if isinstance(answer, bytes):
                answers.append(self.arrives(answer))
        return both(lambda: opened(self.ours, answers), lambda: self.theirs.result(answers))


def both(ours: Callable[[], object], theirs: Callable[[], object]) -> object:
    """Return the outcome of both."""
    found = outcome(ours)
    assert found == outcome(theirs)
    return found


def opened(accumulator: Accumulator, answers: list[bytes]) -> object:
    result = accumulator.result(answers)
    return result.integers.tolist(), result.weight, list(result.outvoted)


@pytest.mark.parametrize("case", WORLDS, ids=str)
def test_both_implementations_sum_alike(case: tuple[int, int, dict[str, object]]) -> None:
    with worlds(*case) as world:
        sent = [world.reports(u) for u in CLIENTS]
        integers, weight, outvoted = Session(world, Script(b"")).run()  # type: ignore[misc]
        layout = world.params.layout
        for own, theirs in sent:
            assert len(own) == len(theirs)
            assert own[: layout.boxes[0]] == theirs[: layout.boxes[0]]
            assert own[layout.boxes[-1] :] == theirs[layout.boxes[-1] :]
        inside = CLIENTS[: world.params.n_clients]
        weights = [world.made.weights[u] for u in inside]
        expected = world.made.expected(inside)
        if world.params.max_weight is not None:
            integers, expected = [*integers, weight], [*expected, sum(weights)]
        errors = [abs(found - exact) for found, exact in zip(integers, expected, strict=True)]
        assert max(errors) <= world.params.noise_bound
        assert any(errors) == (world.params.noise is not None)
        assert outvoted == []


@given(st.sampled_from(WORLDS[:-1]), st.binary(max_size=200))
@examples(EXAMPLES)
def test_both_implementations_judge_altered_messages_alike(
    case: tuple[int, int, dict[str, object]], script: bytes
) -> None:
    with worlds(*case) as world:
        Session(world, Script(script)).run()


def test_endorsements_are_those_of_the_other() -> None:
    with worlds(*WORLDS[1]) as world:
        keys = {identity for _, identity in world.params.helpers}
        ours = [helper.endorse() for helper in world.made.helpers]
        assert ours == [rival.endorse() for rival in world.rivals]
        assert world.p.endorsed(ours, keys)
        assert not world.p.endorsed(ours[::-1], keys)
        policy = OneShotPolicy(helpers=frozenset(keys), min_clients=2, corrupt=0)
        policy.check(world.params, [rival.endorse() for rival in world.rivals])


@given(st.sampled_from(load("oneshot")["sessions"]), st.binary(min_size=1, max_size=40))
@examples(EXAMPLES)
def test_both_read_the_same_parameters(session: dict[str, str], script: bytes) -> None:
    data = altered_by(b(session["bytes"]), Script(script), [b""])
    both(
        lambda: OneShotParams.from_bytes(data).digest,
        lambda: independent.Parameters.decode(data).digest,
    )


def test_the_others_hpke_is_that_of_rfc_9180() -> None:
    given = {name: b(value) for name, value in load("oneshot")["rfc9180"].items()}
    box = independent_hpke.seal(
        given["public"],
        given["info"],
        given["plaintext"],
        given["ephemeral"],
        given["aad"],
    )
    assert box == given["enc"] + given["ciphertext"]
    secret = b("4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8")
    assert independent_hpke.public_key(secret) == given["public"]
    assert (
        independent_hpke.unseal(secret, given["info"], box, given["aad"]) == given["plaintext"]
    )
