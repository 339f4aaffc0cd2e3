"""A client written from docs/protocol.md alone, by someone who had not seen the package.

With the same entropy it must send the same bytes as the package's client, and reject the same
messages by the same checks. A difference is a fault of the document or of one of the two.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

import independent_client as independent
from effort import examples
from fuzz.targets import Script, altered_by
from harness import with_count
from independent_views import as_parameters, as_policy
from secagg import (
    RemoteProtocolError,
    RoundResult,
    SealingKey,
    TooFewSurvivors,
    _fast,
    testing,
)
from secagg.protocol import NEXT

# the other client is plain Python in either run: without kernels only the package's own changes
EXAMPLES = 40 if _fast.COMPILED else 20


def rival_of(
    round: testing.Round, u: int, sealing: independent.Sealing | None = None
) -> independent.Client:
    """The other implementation of client u, with the same entropy."""
    active = round.params.active
    return independent.Client(
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
    round: testing.Round, script: Script, kept: dict[int, independent.Sealing] | None = None
) -> RoundResult | None:
    """Run both implementations side by side; return the sum, or None if there is none.

    The server is given the one's messages for even ids, the other's for odd ones. `kept` has
    the sealing pairs of the other implementation in a session.
    """
    cohort = testing.Cohort(round)
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
    return cohort.server.result()


def with_and_without_count(round: testing.Round) -> st.SearchStrategy[testing.Round]:
    counted = dataclasses.replace(round, params=with_count(round.params))
    return st.sampled_from([round, counted])


ROUNDS = testing.rounds().flatmap(with_and_without_count)


@given(ROUNDS)
@examples(EXAMPLES)
def test_two_implementations_send_the_same_bytes(round):
    """Two implementations send the same bytes and make the same sum."""
    result = run(round, Script(b""))
    if result is not None:
        expected = round.exact_sum(result.survivors)
        assert result.integers.tolist() == expected[: round.params.length]
        if round.params.count_clipped:
            assert result.clipped == expected[-1]
        assert result.disputes == ()


@given(ROUNDS, st.binary(min_size=1, max_size=60))
@examples(2 * EXAMPLES)
def test_two_implementations_reject_by_the_same_checks(round, script):
    """Two implementations reject the same messages by the same checks."""
    run(round, Script(script))


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
        run(later, Script(altered), kept)
    for u, key in sealing_keys.items():
        drawn = kept[u].seed
        assert not drawn or key.pair.seed == drawn
        # the client keeps the last secret of a peer, the other implementation one for each key
        found = {(v, k): s for v, (k, s) in key._agreed.items()}
        assert found.items() <= kept[u].agreed.items()
        assert {v for v, _ in kept[u].agreed} == key._agreed.keys()
