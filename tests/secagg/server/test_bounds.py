"""Sums that the survivors' vectors cannot add up to."""

from __future__ import annotations

import numpy as np
import pytest

from harness import Cohort, altered, make_params, read
from secagg import FixedPoint, Integers, Phase, RemoteProtocolError, RoundParams, _fast
from secagg.encoding import Encoding
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


@pytest.mark.parametrize("modulus_bits", [32, 64])
@pytest.mark.parametrize(
    ("encoding", "least", "most"),
    [
        (Integers(max=9), 0, 45),
        (FixedPoint(clip=2.0, fractional_bits=4, rounding="nearest"), -160, 160),
    ],
)
def test_check42_a_sum_beyond_its_bounds_raises(
    encoding: Encoding, least: int, most: int, modulus_bits: int
) -> None:
    params = make_params(5, encoding=encoding, modulus_bits=modulus_bits)
    for value in (least, most):
        assert total_moved_by(params, 2, value).server.result().integers[2] == value
    for value in (least - 1, most + 1, least - 1000, -(2 ** (modulus_bits - 1)) + 1):
        with pytest.raises(RemoteProtocolError) as caught:
            total_moved_by(params, 2, value)
        assert (caught.value.check, caught.value.sender) == ("sum", None)


def test_check42_weights_widen_the_bounds() -> None:
    params = make_params(5, encoding=Integers(max=9), max_weight=10)
    assert total_moved_by(params, 0, 450).server.result().integers[0] == 450
    with pytest.raises(RemoteProtocolError) as caught:
        total_moved_by(params, 0, 451)
    assert caught.value.check == "sum"


def test_check42_a_weight_beyond_its_bounds_raises() -> None:
    params = make_params(5, encoding=Integers(max=9), max_weight=10)
    for weight in (0, 50):
        assert total_moved_by(params, params.length, weight).server.result().weight == weight
    for weight in (51, -1, 2**31 + 10):
        with pytest.raises(RemoteProtocolError) as caught:
            total_moved_by(params, params.length, weight)
        assert (caught.value.check, caught.value.sender) == ("weight", None)


def test_check42_a_count_of_clipped_elements_beyond_its_bounds_raises() -> None:
    """At most all elements of all survivors are clipped, whatever their weights."""
    params = make_params(5, encoding=Integers(max=9), max_weight=10, count_clipped=True)
    last = params.length + 1
    for count in (0, 20):
        assert total_moved_by(params, last, count).server.result().clipped == count
    for count in (21, -1, 2**31):
        with pytest.raises(RemoteProtocolError) as caught:
            total_moved_by(params, last, count)
        assert (caught.value.check, caught.value.sender) == ("clipped", None)


@pytest.mark.parametrize(("element", "check", "most"), [(0, "sum", 360), (4, "weight", 40)])
def test_check42_clients_that_dropped_out_do_not_widen_the_bounds(
    element: int, check: str, most: int
) -> None:
    params = make_params(5, encoding=Integers(max=9), max_weight=10)
    total_moved_by(params, element, most, 3)
    with pytest.raises(RemoteProtocolError) as caught:
        total_moved_by(params, element, most + 1, 3)
    assert caught.value.check == check


def test_check42_an_impossible_sum_ends_the_round() -> None:
    params = make_params(5, encoding=Integers(max=9))
    cohort = Cohort(params)
    cohort.advance(2)
    sent = cohort.step()
    cohort.deliver(sent | {1: moved(sent[1], params, 0, 1000)})
    with pytest.raises(RemoteProtocolError):
        cohort.deliver(cohort.step())
    assert cohort.server.phase is Phase.FAILED
    assert not np.any([bool(cohort.server.outbox)])
