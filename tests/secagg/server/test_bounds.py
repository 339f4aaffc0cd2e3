"""Sums that the survivors' vectors cannot add up to."""

from __future__ import annotations

import pytest

from harness import Cohort, altered, make_params, read
from secagg import FixedPoint, Integers, RemoteProtocolError, RoundParams, _fast
from secagg.protocol.messages import MaskedInput


def moved(data: bytes, params: RoundParams, element: int, by: int) -> bytes:
    """Return a masked input with one element moved, modulo R."""
    values = params.ring.zeros(params.elements)
    _fast.unpack_bits(read(data, MaskedInput).values, params.ring.bits, values)
    values[element] = (int(values[element]) + by) % params.ring.modulus
    return altered(data, MaskedInput, values=_fast.pack_bits(values, params.ring.bits))


def total_moved_by(params: RoundParams, element: int, to: int, *lost: int) -> Cohort:
    """Run a round in which one client moves an element of the sum to a value.

    The clients in `lost` drop out before their masked inputs.
    """
    cohort = Cohort(params)
    cohort.advance(2)
    sent = {u: data for u, data in cohort.step().items() if u not in lost}
    exact = [*cohort.expected(sent), sum(cohort.weights[u] or 0 for u in sent), 0]
    changed = moved(sent[1], params, element, to - int(exact[element]))
    cohort.deliver(sent | {1: changed})
    cohort.deliver(cohort.step())
    return cohort


FIXED = FixedPoint(clip=2.0, fractional_bits=4, rounding="nearest")
INTEGERS = {"encoding": Integers(max=9)}
WEIGHTED = INTEGERS | {"max_weight": 10}


@pytest.mark.parametrize(
    ("changes", "element", "lost", "check", "least", "most"),
    [
        *(
            (changes | {"modulus_bits": bits}, 2, (), "sum", least, most)
            for bits in (32, 64)
            for changes, least, most in ((INTEGERS, 0, 45), ({"encoding": FIXED}, -160, 160))
        ),
        (WEIGHTED, 0, (), "sum", 0, 450),
        (WEIGHTED, 4, (), "weight", 0, 50),
        # all elements of all survivors are clipped, whatever their weights
        (WEIGHTED | {"count_clipped": True}, 5, (), "clipped", 0, 20),
        # clients that dropped out do not widen the bounds
        (WEIGHTED, 0, (3,), "sum", 0, 360),
        (WEIGHTED, 4, (3,), "weight", 0, 40),
    ],
)
def test_check42_a_sum_beyond_its_bounds_raises(
    changes: dict[str, object],
    element: int,
    lost: tuple[int, ...],
    check: str,
    least: int,
    most: int,
) -> None:
    params = make_params(5, **changes)
    for value in (least, most):
        result = total_moved_by(params, element, value, *lost).server.result()
        found = {"sum": result.integers[element % 4], "weight": result.weight}
        assert found.get(check, result.clipped) == value
    for value in (least - 1, most + 1, -(2 ** (params.ring.bits - 1)) + 1):
        with pytest.raises(RemoteProtocolError) as caught:
            total_moved_by(params, element, value, *lost)
        assert (caught.value.check, caught.value.sender) == (check, None)
