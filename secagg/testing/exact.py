"""The first invariant: the sum is exact, over clients that it can be over, or there is none."""

from __future__ import annotations

from collections.abc import Callable

from secagg.encoding import FixedPoint
from secagg.errors import TooFewSurvivors
from secagg.protocol import NEXT, Phase, RoundParams
from secagg.server import RoundResult
from secagg.testing.case import Round, needed

__all__ = ["assert_exact_sum", "check_result", "require"]


def require(condition: bool, why: str) -> None:
    """Raise AssertionError unless the condition holds."""
    if not condition:
        raise AssertionError(why)


def assert_exact_sum(round: Round, aggregate: Callable[[Round], RoundResult]) -> None:
    """Run a round through an aggregator and check what comes out.

    The sum must be, bit for bit, the plain integer sum over the clients it names; these must be
    the clients whose input was sent, or on a graph a possible part of them; and a round is
    given up when it must be, and only then.

    Parameters
    ----------
    round : Round
    aggregate : callable
        Takes the round, lets its clients vanish as ``round.dropouts`` says, and returns a
        RoundResult or raises TooFewSurvivors.

    Raises
    ------
    AssertionError
        Something else came out.
    """
    params = round.params
    u1, u3 = (round.present(phase) for phase in (Phase.ADVERTISE_KEYS, Phase.MASKED_INPUT))
    counts = [(len(round.present(phase)), phase) for phase in NEXT[params.security]]
    # on a graph a client may lose all the others among its holders, or none of them: this many
    # others it keeps in the worst case, and nobody is left out if that is enough
    cut = len(u1) - min(params.holders, len(u1))
    sure = all(count - cut >= needed(params, phase) for count, phase in counts)
    possible = all(count >= needed(params, phase) for count, phase in counts)
    try:
        result = aggregate(round)
    except TooFewSurvivors as error:
        require(not sure, f"a round with enough clients was given up: {error}")
        return
    require(possible, f"too few clients were left for a sum, and there is one: {result}")
    strangers = sorted(set(result.survivors) - u3)
    require(not strangers, f"clients {strangers} are in the sum and sent no input")
    missing = sorted(u3 - set(result.survivors))
    require(
        not (sure and missing), f"clients {missing} sent their input and are not in the sum"
    )
    count = len(result.survivors)
    require(
        count >= params.min_survivors,
        f"a sum over {count} clients came out, and it takes {params.min_survivors}",
    )
    check_result(round, result)


def check_result(round: Round, result: RoundResult) -> None:
    """Check every field of a result against the plain sum over the survivors it names.

    Raises
    ------
    AssertionError
        Names the field, what it is and what it should be.
    """
    survivors = tuple(result.survivors)
    require(survivors == tuple(sorted(set(survivors))), f"{survivors} are not ascending ids")
    exact = round.exact_sum(survivors)
    weight = exact.pop() if round.weights is not None else None
    for name, got, expected in (
        ("integers", result.integers.tolist(), exact),
        ("weight", result.weight, weight),
        ("sum", result.sum.tolist(), _in_units(round.params, exact)),
        ("faulty", tuple(result.faulty), ()),
    ):
        require(
            got == expected,
            f"{name} of survivors {survivors} is {got}, and should be {expected}",
        )


def _in_units(params: RoundParams, exact: list[int]) -> list[float] | list[int]:
    """Return integers in the caller's units; Python divides integers with one rounding."""
    if isinstance(params.encoding, FixedPoint):
        return [x / (1 << params.encoding.fractional_bits) for x in exact]
    return exact
