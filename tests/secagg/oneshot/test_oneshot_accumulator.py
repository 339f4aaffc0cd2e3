"""The aggregator: reports that it takes, drops, merges and stores; votes on the masks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from oneshot_parties import Parties, parties, registry_for, rejects
from secagg import FixedPoint, Integers, LocalProtocolError, ParameterError
from secagg.oneshot import Accumulator, OneShotResult

MIXED = {"modulus": 10_007, "max_weight": 2}


def state(accumulator: Accumulator) -> bytes:
    return accumulator.to_bytes()


def test_a_repeated_report_changes_nothing() -> None:
    with parties() as made:
        accumulator = made.accumulator([])
        sent = [made.report(u) for u in range(3)]
        assert [accumulator.add(data) for data in sent] == [True] * 3
        before = state(accumulator)
        assert [accumulator.add(data) for data in sent] == [False] * 3
        assert state(accumulator) == before
        made.check(accumulator)
        assert made.open(accumulator).integers.tolist() == made.expected(range(3))


def test_only_unsettled_reports_can_be_dropped() -> None:
    with parties() as made:
        accumulator = made.accumulator(range(3))
        accumulator.settle()
        accumulator.add(made.report(3))
        before = state(accumulator)
        for ids in ([0], [3, 0], [7], [3.0], ["3"], ["name"], "3", [None], [True], [-1]):
            with pytest.raises(ParameterError):
                accumulator.drop(ids)  # type: ignore[arg-type]
        assert state(accumulator) == before


@pytest.mark.parametrize("changes", [{}, MIXED], ids=str)
def test_bytes_do_not_depend_on_order_or_dropped_reports(changes: dict[str, object]) -> None:
    with parties(**changes) as made:
        sent = {u: made.report(u) for u in (0, 1, 2, 5)}  # HPKE draws other boxes each time
        plain, accumulator = made.accumulator([]), made.accumulator([])
        assert all(plain.add(sent[u]) for u in (0, 1, 2))
        assert all(accumulator.add(sent[u]) for u in (2, 5, 0, 1))
        accumulator.drop(np.array([5], np.uint64))
        assert state(accumulator) == state(plain)
        assert accumulator.ids == (0, 1, 2)


def test_accumulators_that_cannot_be_merged_stay_as_they_are() -> None:
    with parties(n_clients=5) as made:
        whole = made.accumulator([0, 1, 2])
        other = made.make_params(session=b"session 2", n_clients=5)
        strangers = [
            made.accumulator([2, 3]),
            made.accumulator([3, 4, 5]),
            made.accumulator([3], batch=(1 << 64) - 1),
            Accumulator(other, registry=registry_for(other)),
        ]
        before = state(whole)
        for stranger in strangers:
            kept = state(stranger)
            with pytest.raises(ParameterError):
                whole.merge(stranger)
            assert (state(whole), state(stranger)) == (before, kept)
        with pytest.raises(ParameterError):
            whole.merge(before)  # type: ignore[arg-type]


def test_first_request_fixes_the_list() -> None:
    with parties() as made:
        accumulator = made.accumulator(range(3))
        request = accumulator.request()
        stored = state(accumulator)
        for fixed in (accumulator, made.restored(stored)):
            calls: list[Callable[[], object]] = [
                lambda fixed=fixed: fixed.add(made.report(4)),
                lambda fixed=fixed: fixed.drop([0]),
                lambda fixed=fixed: fixed.settle(),
                lambda fixed=fixed: fixed.merge(made.accumulator([5])),
                lambda fixed=fixed: made.accumulator([5]).merge(fixed),
            ]
            for call in calls:
                with pytest.raises(LocalProtocolError):
                    call()
            assert fixed.request() == request
            assert state(fixed) == stored


def test_request_that_is_rejected_fixes_nothing() -> None:
    with parties(3, 2) as made:
        accumulator = made.checked(range(3))
        twin = made.accumulator(range(3))
        right = [h.reserve(twin.request()) for h in made.helpers]
        before = state(accumulator)
        rejects("length", lambda: accumulator.request([b"", *right[1:]]))
        for few in (right[:2], [right[0]] * 3):
            with pytest.raises(ParameterError):
                accumulator.request(few)
        assert state(accumulator) == before
        accumulator.request(right)
        assert state(accumulator) != before


def test_result_before_a_request_raises() -> None:
    with parties() as made, pytest.raises(LocalProtocolError):
        made.accumulator(range(3)).result([])


def test_helpers_that_contradict_each_other_are_named() -> None:
    with parties(4, 2) as made:
        accumulator = made.accumulator(range(4))
        _, answers = made.answers(accumulator)
        lie = lying(made, answers[0])
        # three holders of each seed: two honest ones outvote the liar
        result = accumulator.result([lie, *answers[1:]])
        assert result.outvoted == (1,)
        assert result.integers.tolist() == made.expected(range(4))
        # one against one
        error = rejects("holders", lambda: accumulator.result([lie, answers[1]]))
        assert error.helpers == (1, 2)
        error = rejects("holders", lambda: accumulator.result([lie, answers[0], *answers[1:]]))
        assert error.helpers == (1,)


def lying(made: Parties, answer: bytes) -> bytes:
    """Return an answer with one bit of each mask altered."""
    data, size = bytearray(answer), made.params.layout.packed
    for end in range(len(data), len(data) - 3 * size, -size):
        data[end - size] ^= 1
    return bytes(data)


def test_chunks_of_boxes_have_every_client_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secagg.oneshot.messages.CHUNK", 2)
    with parties() as made:
        accumulator = made.accumulator(range(5))
        assert len(list(accumulator.boxes(1))) == 3
        made.check(accumulator)
        assert made.open(accumulator).integers.tolist() == made.expected(range(5))
        for helper in (0, 3):
            with pytest.raises(ParameterError):
                list(accumulator.boxes(helper))


@pytest.mark.parametrize("changes", [{"batch": -1}, {"registry": None}], ids=str)
def test_arguments_of_an_accumulator(changes: dict[str, object]) -> None:
    with parties() as made:
        arguments = {"registry": registry_for(made.params)} | changes
        with pytest.raises(ParameterError):
            Accumulator(made.params, **arguments)  # type: ignore[arg-type]
        with pytest.raises(ParameterError):
            Accumulator("params")  # type: ignore[arg-type]


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
            second = made.restored(second.to_bytes())
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
        accumulator = made.checked(range(4))
        request = accumulator.request(
            [h.reserve(accumulator.request()) for h in made.helpers[:3]]
        )
        answers = [made.helpers[3].open(request), made.helpers[0].open(request)]
        check_sum(made, accumulator.result(answers), [0, 1, 2, 3])
        with pytest.raises(ParameterError):
            accumulator.result(answers[:1])


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
