"""Every pattern of drop-outs of five clients, and of complaints without a mask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, permutations, product

import pytest

from harness import make_params
from lying_clients import LiarsCohort, active_params, complains, named
from secagg import RemoteProtocolError, TooFewSurvivors
from secagg.protocol import NEXT, Phase
from secagg.protocol.dealing import UNMASKED

PHASES = {security: [*NEXT[security]][1:] for security in NEXT}
"""Phases that a client of U1 can miss."""


def outcome(cohort: LiarsCohort, missing: Mapping[int, Phase]) -> str:
    """Run a round whose clients miss a phase; return how it ends, and check an exact sum."""
    phases, gone = PHASES[cohort.params.security], set[int]()
    cohort.advance(1)
    try:
        for phase in phases:
            gone |= {u for u, first in missing.items() if first is phase}
            cohort.advance(1, without=gone)
    except TooFewSurvivors:
        return "too few"
    except RemoteProtocolError as error:
        assert error.phase == Phase.MASKED_INPUT
        return error.check
    result = cohort.server.result()
    kept = [
        u for u in cohort.ids if missing.get(u) not in (Phase.SHARE_KEYS, Phase.MASKED_INPUT)
    ]
    assert list(result.survivors) == kept
    assert result.integers.tolist() == cohort.expected(kept)
    assert named(result.verdicts) == []
    return "exact"


def patterns(n: int, security: str, most: int) -> Iterator[dict[int, Phase]]:
    """Yield the patterns in which at most so many of n clients drop out."""
    for count in range(most + 1):
        for who in combinations(range(n), count):
            for phases in product(PHASES[security], repeat=count):
                yield dict(zip(who, phases, strict=True))


@pytest.mark.parametrize("suite", ["x25519", "hybrid"])
@pytest.mark.parametrize("security", ["semi-honest", "active"])
def test_check18_recovery_is_exact_in_every_pattern(suite: str, security: str) -> None:
    """With one more the server ends without a sum: t is 3, and 4 in the active variant."""
    stay = 2 if security == "semi-honest" else 1
    params = make_params(5, suite=suite, security=security)
    for missing in patterns(5, security, stay):
        assert outcome(LiarsCohort(params), missing) == "exact", missing
    for missing in list(patterns(5, security, stay + 1))[-15:]:
        assert outcome(LiarsCohort(params), missing) == "too few", missing


def graph_round(missing: Mapping[int, Phase]) -> str:
    params = make_params(8, 2, suite="hybrid", neighbours=4)
    return outcome(LiarsCohort(params), missing)


@pytest.mark.parametrize("u", range(8))
@pytest.mark.parametrize("v", [0, 5])
def test_check18_recovery_on_a_graph_is_exact(u: int, v: int) -> None:
    for first, second in product(PHASES["semi-honest"], repeat=2):
        assert graph_round({u: first, v: second}) == "exact"


# ---- complaints of kind 2


def unmasked(n: int, pairs: set[tuple[int, int]], missing: Mapping[int, Phase]) -> str:
    """Run a round in which w of each pair (v, w) leaves v out of its mask.

    The server must end it exactly if a dealer of U2 has too few acceptors in U3.
    """
    lies = {w: {v: UNMASKED for v, x in pairs if x == w} for _, w in pairs}
    cohort = LiarsCohort(
        active_params(n, "hybrid"), {w: [complains(dealers)] for w, dealers in lies.items()}
    )
    u2 = [u for u in range(n) if missing.get(u) is not Phase.SHARE_KEYS]
    u3 = [u for u in u2 if missing.get(u) is not Phase.MASKED_INPUT]
    accepted = min(
        len(u3) - sum(dealer == v and w in u3 for dealer, w in pairs if w in u2) for v in u2
    )
    found = outcome(cohort, missing)
    t, stay = cohort.params.threshold, n - len(missing)
    if len(u3) < t:
        assert found == "too few"
    elif accepted < t:
        assert found == "dealer"
    elif stay < t:
        assert found == "too few"
    return found


def pairs_of(n: int) -> list[set[tuple[int, int]]]:
    """Return one complaint, mutual complaints, and complaints of and about one client."""
    found = [{pair} for pair in permutations(range(n), 2)]
    found += [{(v, w), (w, v)} for v, w in combinations(range(n), 2)]
    found += [{(0, 1), (0, 2)}, {(0, n - 1), (n - 1, 1)}]
    # of four clients none may complain of two
    return found + [{(1, 0), (2, 0)}] * (n > 4)


@pytest.mark.large
@pytest.mark.parametrize("n", [4, 5])
def test_check57_pairs_without_a_mask_are_removed_in_every_pattern(n: int) -> None:
    """Nobody among so few clients may drop out after a complaint; see the next test."""
    for pairs in pairs_of(n):
        found = unmasked(n, pairs, {})
        about = max(sum(dealer == v for dealer, _ in pairs) for v in range(n))
        assert found == ("exact" if about == 1 else "dealer"), pairs
    for pairs in pairs_of(n)[:: 2 if n == 4 else 7]:
        for missing in list(patterns(n, "active", 1))[1:]:
            unmasked(n, pairs, missing)


@pytest.mark.large
@pytest.mark.parametrize(
    "pairs",
    [{(1, 4)}, {(4, 1)}, {(1, 4), (4, 1)}, {(1, 4), (4, 5)}, {(1, 4), (5, 4)}],
    ids=str,
)
def test_check57_pairs_without_a_mask_are_removed_if_a_client_drops_out(
    pairs: set[tuple[int, int]],
) -> None:
    """One of seven clients may: the dealer, the holder, or another."""
    ended = [unmasked(7, pairs, missing) for missing in patterns(7, "active", 1)]
    assert ended.count("exact") == len(ended)
