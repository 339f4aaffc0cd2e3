"""One-shot sums are the plain sums of the integers, for all parameters and orders of events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from oneshot_parties import Parties, parties, registry_for
from secagg import FixedPoint, Integers, ParameterError
from secagg.oneshot import Accumulator, OneShotResult

MODULI = [
    {"modulus_bits": 32},
    {"modulus_bits": 13},
    {"modulus_bits": 37},
    {"modulus_bits": 64},
    {"modulus": 10_007},
    {"modulus": (1 << 61) - 1},
]
ENCODINGS = [Integers(100), FixedPoint(3.0, 5, "nearest")]


@examples(60)
@given(st.data())
def test_sum_is_the_plain_sum_bit_for_bit(data: st.DataObject) -> None:
    draw = data.draw
    helpers = draw(st.integers(1, 7), label="helpers")
    threshold = draw(st.integers(1, min(4, helpers)), label="threshold")
    clients = draw(
        st.lists(st.integers(0, 29), min_size=2, max_size=7, unique=True), label="clients"
    )
    changes: dict[str, object] = dict(draw(st.sampled_from(MODULI), label="modulus"))
    changes["encoding"] = draw(st.sampled_from(ENCODINGS), label="encoding")
    changes["max_weight"] = draw(st.sampled_from([None, 4]), label="weight")
    changes["security"] = draw(st.sampled_from(["active", "semi-honest"]), label="security")
    changes["length"] = draw(st.integers(1, 9), label="length")
    with parties(helpers, threshold, min_clients=2, **changes) as made:
        params = made.params
        whole = merged(data, made, clients)
        least = max(params.quorum, threshold)
        present = draw(
            st.lists(st.integers(1, helpers), min_size=least, unique=True), label="present"
        )
        assert made.check(whole, present) == set()
        check_sum(made, made.open(whole, present), clients)


def merged(data: st.DataObject, made: Parties, clients: list[int]) -> Accumulator:
    """Return one accumulator of all clients, merged in a random tree, some of them as bytes."""
    leaves = [made.accumulator([u]) for u in clients]
    while len(leaves) > 1:
        first = leaves.pop(data.draw(st.integers(0, len(leaves) - 1)))
        second = leaves.pop(data.draw(st.integers(0, len(leaves) - 1)))
        if data.draw(st.booleans()):
            registry = registry_for(made.params)
            second = Accumulator.from_bytes(second.to_bytes(), made.params, registry=registry)
        first.merge(second)
        leaves.append(first)
    return leaves[0]


def check_sum(made: Parties, result: OneShotResult, clients: list[int]) -> None:
    assert result.survivors == tuple(sorted(clients))
    assert result.integers.tolist() == made.expected(clients)
    assert result.outvoted == ()
    if made.params.max_weight is not None:
        assert result.weight == sum(made.weights[u] or 0 for u in clients)


def test_helper_that_answers_after_q_signed_needs_no_other_answer_than_t() -> None:
    with parties(4, 2) as made:
        accumulator = made.accumulator(range(4))
        made.check(accumulator)
        request = accumulator.request(
            [h.reserve(accumulator.request()) for h in made.helpers[:3]]
        )
        answers = [made.helpers[3].open(request), made.helpers[0].open(request)]
        check_sum(made, accumulator.result(answers), [0, 1, 2, 3])
        with pytest.raises(ParameterError):
            accumulator.result(answers[:1])


def test_dropped_clients_are_not_in_the_sum() -> None:
    with parties(2, 2, modulus=10_007) as made:
        accumulator = made.accumulator(range(6))
        made.check(accumulator)
        accumulator.drop([1, 4])
        check_sum(made, made.open(accumulator), [0, 2, 3, 5])


def test_settled_reports_stay_in_the_sum() -> None:
    with parties(2, 2) as made:
        whole = made.accumulator([])
        for batch in ([0, 1], [2, 3], [4]):
            leaf = made.accumulator(batch)
            made.check(leaf)
            leaf.settle()
            assert list(leaf.boxes(1)) == []
            whole.merge(leaf)
        check_sum(made, made.open(whole), [0, 1, 2, 3, 4])


def test_batches_of_a_session_are_of_different_clients() -> None:
    with parties(3, 2) as made:
        for batch, clients in enumerate([[0, 1, 2], [3, 4, 5]]):
            accumulator = made.accumulator(clients, batch=batch)
            made.check(accumulator)
            check_sum(made, made.open(accumulator), clients)
