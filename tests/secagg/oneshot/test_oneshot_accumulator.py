"""The aggregator: reports that it takes, drops, merges and stores; votes on the masks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from oneshot_parties import Parties, parties, registry_for, rejects
from secagg import LocalProtocolError, ParameterError, RemoteProtocolError, TooFewSurvivors
from secagg._fast import pack_bits
from secagg._records import Records
from secagg.oneshot import Accumulator, stored

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


def test_another_report_under_the_same_id_is_rejected() -> None:
    with parties() as made:
        accumulator = made.accumulator(range(3))
        before = state(accumulator)
        error = rejects("id", lambda: accumulator.add(made.report(1, seed="again")))
        assert error.sender == 1
        assert state(accumulator) == before
        accumulator.drop([1])
        assert accumulator.add(made.report(1, seed="again"))


def test_more_than_n_reports_are_rejected() -> None:
    with parties(n_clients=3) as made:
        accumulator = made.accumulator(range(3))
        rejects("count", lambda: accumulator.add(made.report(3)))
        assert accumulator.add(made.report(2)) is False
        accumulator.drop([0])
        assert accumulator.add(made.report(3))


@pytest.mark.parametrize("changes", [{}, MIXED, {"security": "semi-honest"}], ids=str)
def test_malformed_reports_are_rejected_and_change_nothing(changes: dict[str, object]) -> None:
    with parties(**changes) as made:
        accumulator = made.accumulator(range(2))
        before = state(accumulator)
        right = made.report(2)
        wrong = {
            "length": [right[:-1], right + b"\0", b"", right[:20]],
            "version": [b"\2" + right[1:]],
            "encoding": [right[:1] + b"\2" + right[2:]],
            "parameters": [right[:2] + bytes([right[2] ^ 1]) + right[3:]],
        }
        if made.params.active:
            at = made.params.layout.boxes[-1]
            wrong["signature"] = [
                right[:at] + bytes(64) + right[at + 64 :],
                right[:50] + bytes([right[50] ^ 1]) + right[51:],  # a commitment
                right[:34] + b"\4" + right[35:],  # another id
            ]
        if not made.params.ring.is_power_of_two:
            wrong["range"] = [
                right[: -made.params.layout.packed] + b"\xff" * made.params.layout.packed
            ]
        for check, messages in wrong.items():
            for data in messages:
                rejects(check, lambda data=data: accumulator.add(data))
        with pytest.raises(ParameterError):
            accumulator.add("text")  # type: ignore[arg-type]
        assert state(accumulator) == before
        assert accumulator.add(right)


def test_elements_must_be_below_the_modulus() -> None:
    with parties(**MIXED) as made:
        right = made.report(0)
        values = np.full(5, 10_006, np.uint64)
        start = right[: -made.params.layout.packed]
        assert made.accumulator([]).add(start + pack_bits(values, 14))
        values[4] = 10_007
        rejects("range", lambda: made.accumulator([]).add(start + pack_bits(values, 14)))


def test_padding_bits_must_be_zero() -> None:
    with parties(modulus_bits=13, length=3) as made:
        right = made.report(0)
        rejects(
            "range", lambda: made.accumulator([]).add(right[:-1] + bytes([right[-1] | 0x80]))
        )


def test_client_outside_the_registry_is_rejected() -> None:
    with parties() as made:
        rejects("signature", lambda: made.accumulator([]).add(made.report(30)))


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
def test_dropping_and_adding_again_leaves_the_same_bytes(changes: dict[str, object]) -> None:
    with parties(**changes) as made:
        accumulator = made.accumulator(range(3))
        before = state(accumulator)
        extra = made.report(5)
        accumulator.add(extra)
        accumulator.drop([5])
        assert state(accumulator) == before
        assert accumulator.ids == (0, 1, 2)


def test_bytes_do_not_depend_on_the_order() -> None:
    with parties(**MIXED) as made:
        sent = [made.report(u) for u in range(4)]
        made_of = []
        for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
            accumulator = made.accumulator([])
            for u in order:
                accumulator.add(sent[u])
            made_of.append(state(accumulator))
        assert made_of[0] == made_of[1]


def test_accumulators_that_cannot_be_merged_stay_as_they_are() -> None:
    with parties(n_clients=5) as made:
        whole = made.accumulator([0, 1, 2])
        other = made.make_params(session=b"session 2", n_clients=5)
        strangers = [
            made.accumulator([2, 3]),
            made.accumulator([3, 4, 5]),
            made.accumulator([3], batch=1),
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
        restored = Accumulator.from_bytes(
            stored, made.params, registry=registry_for(made.params)
        )
        for fixed in (accumulator, restored):
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
        accumulator = made.accumulator(range(3))
        made.check(accumulator)
        twin = made.accumulator(range(3))
        right = [h.reserve(twin.request()) for h in made.helpers]
        before = state(accumulator)
        rejects("length", lambda: accumulator.request([b"", *right[1:]]))
        with pytest.raises(ParameterError):
            accumulator.request(right[:2])
        assert state(accumulator) == before
        accumulator.request(right)
        assert state(accumulator) != before


def test_too_few_reports_are_not_requested() -> None:
    with parties(min_clients=4) as made:
        accumulator = made.accumulator(range(3))
        with pytest.raises(TooFewSurvivors) as caught:
            accumulator.request()
        assert (caught.value.survivors, caught.value.needed) == (3, 4)
        accumulator.add(made.report(3))
        accumulator.request()


def test_result_before_a_request_raises() -> None:
    with parties() as made, pytest.raises(LocalProtocolError):
        made.accumulator(range(3)).result([])


def test_stored_report_that_could_not_be_dropped_is_malformed() -> None:
    with parties(**MIXED) as made:
        right = state(made.accumulator(range(2)))
        values = np.full(5, 10_007, np.uint64)
        wrong = right[: -made.params.layout.packed] + pack_bits(values, 14)
        rejects(
            "range",
            lambda: Accumulator.from_bytes(
                wrong, made.params, registry=registry_for(made.params)
            ),
        )


@pytest.mark.parametrize(("clients", "fixed"), [(4, False), (2, True), (0, True)])
def test_stored_number_of_reports_is_possible(clients: int, fixed: bool) -> None:
    """More than n, or a fixed list of fewer than the minimum."""
    with parties(n_clients=3) as made:
        total = made.params.ring.zeros(made.params.elements)
        digests = Records.of(
            np.arange(clients, dtype=np.uint64), np.zeros((clients, 32), np.uint8)
        )
        data = stored.pack(stored.State(0, fixed, total, digests, {}), made.params)
        registry = registry_for(made.params)
        rejects("count", lambda: Accumulator.from_bytes(data, made.params, registry=registry))


@pytest.mark.parametrize(
    "changes",
    [{}, *(pytest.param(c, marks=pytest.mark.large) for c in (MIXED, {"modulus_bits": 13}))],
    ids=str,
)
@pytest.mark.parametrize("fix", [False, True])
def test_malformed_bytes_of_an_accumulator(changes: dict[str, object], fix: bool) -> None:
    with parties(**changes) as made:
        accumulator = made.accumulator(range(2))
        accumulator.settle()
        accumulator.add(made.report(3))
        accumulator.add(made.report(2))
        if fix:
            accumulator.request()
        right = state(accumulator)

        def load(data: bytes) -> Accumulator:
            registry = registry_for(made.params)
            return Accumulator.from_bytes(data, made.params, registry=registry)

        assert state(load(right)) == right
        for end in range(0, len(right), 7):
            with pytest.raises(RemoteProtocolError):
                load(right[:end])
        rejects("length", lambda: load(right + b"\0"))
        at = 34 + 8
        rejects("count", lambda: load(right[:at] + b"\2" + right[at + 1 :]))
        first = at + 17 + made.params.layout.packed
        swapped = right[:first] + right[first + 40 : first + 80] + right[first : first + 40]
        rejects("ids", lambda: load(swapped + right[first + 80 :]))
        record = first + 3 * 40 + 8  # the digest of client 3's report
        rejects("ids", lambda: load(right[:record] + bytes(32) + right[record + 32 :]))
        for place in range(0, len(right)):
            data = bytearray(right)
            data[place] ^= 1 << place % 8
            try:
                found = load(bytes(data))
            except RemoteProtocolError:
                continue
            assert state(found) == data


def test_helpers_that_contradict_each_other_are_named() -> None:
    with parties(4, 2) as made:
        accumulator = made.accumulator(range(4))
        made.check(accumulator)
        reserved = [h.reserve(accumulator.request()) for h in made.helpers]
        request = accumulator.request(reserved)
        answers = [h.open(request) for h in made.helpers]
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


def test_malformed_answers_are_rejected() -> None:
    with parties(2, 2, **MIXED) as made:
        accumulator = made.accumulator(range(3))
        made.check(accumulator)
        request = accumulator.request()
        right = [h.open(request) for h in made.helpers]
        wrong = {
            "length": [right[0][:-1], right[0] + b"\0", right[0][:40]],
            "encoding": [request, right[0][:1] + b"\4" + right[0][2:]],
            "helper": [
                right[0][:34] + b"\3\0" + right[0][36:],
                right[0][:34] + b"\0\0" + right[0][36:],
            ],
            "list": [right[0][:36] + bytes(32) + right[0][68:]],
            "range": [
                right[0][: -made.params.layout.packed] + b"\xff" * made.params.layout.packed
            ],
        }
        for check, messages in wrong.items():
            for data in messages:
                rejects(check, lambda data=data: accumulator.result([data, right[1]]))
        assert accumulator.result(right).integers.tolist() == made.expected(range(3))


def test_reservations_are_verified() -> None:
    with parties(3, 2) as made:
        accumulator = made.accumulator(range(3))
        made.check(accumulator)
        request = accumulator.request()
        right = [h.reserve(request) for h in made.helpers]
        with pytest.raises(ParameterError):
            accumulator.request(right[:2])
        with pytest.raises(ParameterError):
            accumulator.request([right[0]] * 3)
        forged = right[0][:-64] + right[1][-64:]
        assert rejects(
            "signature", lambda: accumulator.request([forged, *right[1:]])
        ).helpers == (1,)
        other = right[0][:36] + bytes(32) + right[0][68:]
        assert rejects("list", lambda: accumulator.request([other, *right[1:]])).helpers == (1,)
        accumulator.request(right)


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


def test_ids_of_numpy_are_taken() -> None:
    with parties() as made:
        accumulator = made.accumulator(range(4))
        accumulator.drop(np.array([3], np.uint64))
        assert accumulator.ids == (0, 1, 2)
