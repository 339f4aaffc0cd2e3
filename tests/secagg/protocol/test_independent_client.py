"""A client written from docs/protocol.md alone, by someone who had not seen the package.

With the same entropy it must send the same bytes as the package's client, and reject the same
messages by the same checks. A difference is a fault of the document or of one of the two.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import independent_client as independent
from effort import examples
from fuzz.targets import Script, altered_by
from independent_views import as_parameters, as_policy
from secagg import (
    Bounded,
    Noise,
    ParameterError,
    RemoteProtocolError,
    RoundResult,
    SealingKey,
    TooFewSurvivors,
    _fast,
    testing,
)
from secagg.protocol import NEXT
from secagg.testing.rounds import _encapsulated

# the other client is plain Python in either run: without kernels only the package's own changes
EXAMPLES = 40 if _fast.COMPILED else 20


class Rival(independent.Client):
    """The other implementation of a client, which remembers what it rounded with and added."""

    key: bytes | None = None
    noise: Sequence[int] = ()

    def _rounding_key(self) -> bytes | None:
        self.key = super()._rounding_key()
        return self.key

    def _encapsulate(self, v: int) -> tuple[bytes, bytes]:
        return _encapsulated(self.id, v, self.roster[v][2])

    def _noise(self) -> list[int]:
        self.noise = super()._noise()
        return [*self.noise]


def rival_of(round: testing.Round, u: int, sealing: independent.Sealing | None = None) -> Rival:
    """The other implementation of client u, with the same entropy."""
    active = round.params.active
    return Rival(
        u,
        as_parameters(round.params),
        identity_seed=testing.InsecureReplayedEntropy(("identity", u))(32) if active else None,
        registry=dict(round.registry or {}) if active else None,
        entropy=round.entropy(u),
        sealing=sealing,
        policy=as_policy(round.policy),
    )


def outcome(step: Callable[[], bytes]) -> bytes | tuple[str, str]:
    """The bytes that were sent, or the phase and the check of the rejection."""
    try:
        return step()
    except (RemoteProtocolError, independent.ProtocolError) as error:
        return error.phase, error.check


def run(
    round: testing.Round, altered: bytes, kept: dict[int, independent.Sealing] | None = None
) -> RoundResult | None:
    """Run both implementations side by side; return the sum, or None if there is none.

    The server is given the one's messages for even ids, the other's for odd ones. `kept` has
    the sealing pairs of the other implementation in a session. `altered` decides what is
    altered.
    """
    cohort, script = testing.Cohort(round), Script(altered)
    rivals = {u: rival_of(round, u, (kept or {}).get(u)) for u in cohort.ids}
    seen = [b""]
    for phase in NEXT[round.params.security]:
        for u, asked in cohort.inbox.items():
            if round.dropouts.get(u) == phase:
                continue
            arrived = altered_by(asked, script, seen)
            ours = outcome(partial(cohort.answer, u, arrived))
            given_ = cohort.vectors[u].tolist(), cohort.weights[u]
            theirs = outcome(partial(rivals[u].answer, arrived, *given_))
            assert ours == theirs, f"client {u}, {phase}"
            if isinstance(theirs, bytes) and isinstance(ours, bytes):
                seen.append(ours)
                with suppress(RemoteProtocolError):  # it believed what was altered
                    cohort.server.receive(u, theirs if u % 2 else ours)
        try:
            cohort.inbox = cohort.server.close_round()
        except (TooFewSurvivors, RemoteProtocolError):
            return None
        seen += cohort.inbox.values()
    result = cohort.server.result()
    if not altered:
        require_sum(result, rivals, cohort)
    return result


def require_sum(
    result: RoundResult, rivals: Mapping[int, Rival], cohort: testing.Cohort
) -> None:
    """Require the sum of the inputs and the noise, as the document has them."""
    p, survivors, parts = as_parameters(cohort.params), result.survivors, []
    for u in survivors:
        x = p.elements(cohort.vectors[u].tolist(), cohort.weights[u], rivals[u].key)
        parts += [x, rivals[u].noise]
    total = p.add(*parts)
    assert result.integers.tolist() == p.decode(total, len(survivors))
    assert (result.weight, result.clipped) == p.counts(total, len(survivors))
    if p.rotation:
        decoded = p.rotation.decoded(result.integers.tolist())
        assert (result.sum.tolist(), result.clipped_vectors) == decoded
    assert result.disputes == ()


@st.composite
def all_rounds(draw: st.DrawFn) -> testing.Round:
    """Rounds with noise, `min_survivors`, bounded vectors and counts, where R has room."""
    round = draw(testing.rounds())
    params, vectors = round.params, round.vectors
    least = draw(st.none() | st.integers(params.least, params.n_clients))
    changes: dict[str, Any] = {"min_survivors": least, "count_clipped": draw(st.booleans())}
    if draw(st.integers(0, 3)):
        colluders = draw(st.integers(0, (least or params.least) - 2))
        changes["noise"] = Noise(draw(st.sampled_from([14, 99.5, 5000])), colluders)
    if params.max_weight is None and draw(st.booleans()):
        norm = draw(st.sampled_from([1.0, 0.3, 2.0**40]))
        changes["encoding"] = Bounded(norm, draw(st.sampled_from([1, 40, 1 << 20])))
        wide = draw(st.sampled_from([np.float32, np.float64]))
        vectors = {u: vector.astype(wide) for u, vector in vectors.items()}
    for modulus in ({}, {"modulus": None, "modulus_bits": None}):
        try:
            made = dataclasses.replace(params, **changes, **modulus)
        except ParameterError:
            continue
        return dataclasses.replace(round, params=made, vectors=vectors)
    return round


ROUNDS = all_rounds()


@given(ROUNDS)
@examples(EXAMPLES)
def test_two_implementations_send_the_same_bytes(round):
    """Two implementations send the same bytes and make the same sum."""
    run(round, b"")


@given(ROUNDS, st.binary(min_size=1, max_size=60))
@examples(2 * EXAMPLES)
def test_two_implementations_reject_by_the_same_checks(round, script):
    """Two implementations reject the same messages by the same checks."""
    run(round, script)


@given(ROUNDS, st.binary(max_size=30))
@examples(EXAMPLES // 2)
def test_two_implementations_agree_over_a_session(round: testing.Round, script: bytes) -> None:
    """Both keep their sealing pairs over three rounds, the second of which is altered."""
    kept = {u: independent.Sealing() for u in round.vectors}
    sealing_keys = {u: SealingKey(u) for u in round.vectors}
    for number, altered in enumerate((b"", script, b"")):
        params = dataclasses.replace(round.params, session=b"round %d" % number)
        later = dataclasses.replace(
            round, params=params, seed=(round.seed, number), sealing_keys=sealing_keys
        )
        run(later, altered, kept)
    for u, key in sealing_keys.items():
        drawn = kept[u].seed
        assert not drawn or key.pair.seed == drawn
        # the client keeps the last secret of a peer, the other implementation one for each key
        found = {(v, k): s for v, (k, s) in key._agreed.items()}
        assert found.items() <= kept[u].agreed.items()
        assert {v for v, _ in kept[u].agreed} == key._agreed.keys()
