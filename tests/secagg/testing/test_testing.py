"""The invariants: the library meets them, and each fails if a bug is planted."""

from __future__ import annotations

import dataclasses
import itertools
import subprocess
import sys
from collections.abc import Callable, Iterable

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from harness import make_params, make_vector
from inputs_of import Altered
from secagg import (
    FixedPoint,
    ParameterError,
    RemoteProtocolError,
    RoundParams,
    RoundResult,
    Server,
    TooFewSurvivors,
    simulate_round,
    testing,
)
from secagg.encoding import Ring
from secagg.protocol.masks import MaskSum
from secagg.server.masking import Masking
from secagg.testing.rounds import plain_encoding


def simulate(round: testing.Round) -> RoundResult:
    return simulate_round(
        round.vectors,
        round.params,
        dropouts=round.dropouts,
        weights=round.weights,
        policy=round.policy,
    )


def make_round(n: int = 4, threshold: int | None = None, **changes: object) -> testing.Round:
    """A round of n clients without dropouts; `changes` are the parameters' or `dropouts`."""
    dropouts = changes.pop("dropouts", {})
    params = make_params(n, threshold, **changes)
    return testing.Round(
        params=params,
        vectors={u: make_vector(params, u) for u in range(n)},
        weights=None if params.max_weight is None else dict.fromkeys(range(n), 1),
        dropouts=dropouts,
        policy=testing.toy_policy(params),
    )


# planted bugs are found in the same cases each time, and no test reads the
# smallest of them
PLANTED = settings(
    max_examples=100, database=None, derandomize=True, phases=[Phase.generate], deadline=None
)


class Direct:
    """Transport without effect; it records sent and delivered messages."""

    def __init__(self, record: testing.Record | None = None) -> None:
        self.record = record
        self.delivered: list[tuple[int | None, int | None, bytes]] = []

    def send(self, sender: int | None, receiver: int | None, data: bytes) -> list[bytes]:
        if self.record is not None:
            self.record(sender, receiver, data)
        return [data]

    def deliver(self, sender: int | None, receiver: int | None, packet: bytes) -> list[bytes]:
        self.delivered.append((sender, receiver, packet))
        return [packet]


def transmit(round: testing.Round, record: testing.Record) -> None:
    testing.run_over(Direct(record), round, testing.Schedule())


# ---- the library itself


@given(testing.rounds())
def test_check32_simulated_round_is_exact(round: testing.Round) -> None:
    testing.assert_exact_sum(round, simulate)


@given(testing.rounds(), testing.schedules())
def test_check32_network_faults_give_the_sum_or_an_abort(
    round: testing.Round, schedule: testing.Schedule
) -> None:
    """Any faults of a network give the exact sum or a typed abort."""
    testing.run_over(Direct(), round, schedule)


@given(testing.twin_rounds())
def test_check17_no_message_depends_on_an_input_before_the_masks(
    twins: tuple[testing.Round, testing.Round],
) -> None:
    testing.assert_inputs_hidden(*twins, transmit)


@given(testing.params(), st.data())
def test_check14_plain_encoding_equals_the_clients(
    params: RoundParams, data: st.DataObject
) -> None:
    """The invariants' oracle shares no code with the encoder, so the two check each other."""
    vector = data.draw(testing.vectors(params))
    weight = None if params.max_weight is None else data.draw(testing.weights(params))
    factor = 1 if weight is None else weight
    lanes, _ = params.encoding.encode(vector, params.ring, factor, bytes)
    plain = plain_encoding(params, vector, weight)[: params.length]
    assert lanes.tolist() == [x % params.ring.modulus for x in plain]
    assert max(map(abs, plain)) <= params.encoding.max_encoded * factor


# ---- the strategies reach every legal case


@pytest.mark.parametrize(
    "wanted",
    [
        lambda p: p.ring.modulus == (1 << 61) - 1,
        lambda p: not p.ring.is_power_of_two and p.ring.bits < 6,
        lambda p: p.neighbours is not None and p.max_weight is not None,
        lambda p: p.n_clients == 2,
        lambda p: p.suite == "hybrid" and p.active,
        lambda p: p.suite == "x25519" and p.neighbours is not None,
        lambda p: isinstance(p.encoding, FixedPoint) and p.encoding.beyond_clip == "refuse",
        lambda p: p.encoding.max_encoded * p.n_clients > p.ring.modulus // 3,
    ],
)
def test_parameters_of_every_kind_are_drawn(wanted: Callable[[RoundParams], bool]) -> None:
    find(testing.params(), wanted, settings=settings(PLANTED, max_examples=3000))


# ---- an aggregator's bugs


def plain(round: testing.Round, survivors: Iterable[int]) -> RoundResult:
    """Result of a round over these survivors, without a protocol."""
    exact = round.exact_sum(survivors)
    clipped = exact.pop() if round.params.count_clipped else None
    weight = None if round.weights is None else exact.pop()
    integers = np.array(exact, dtype=np.int64)
    encoding = round.params.encoding
    fixed = isinstance(encoding, FixedPoint)
    total = encoding.decode_integers(integers) if fixed else integers
    return RoundResult(
        sum=total, integers=integers, survivors=tuple(survivors), weight=weight, clipped=clipped
    )


def forgets_who_left_last(round: testing.Round) -> RoundResult:
    """It leaves out a client that dropped out after its masked input."""
    result = simulate(round)
    stayed = tuple(u for u in result.survivors if round.dropouts.get(u) != "unmasking")
    return dataclasses.replace(result, survivors=stayed)


def gives_up_early(round: testing.Round) -> RoundResult:
    if round.dropouts:
        raise TooFewSurvivors("a client left", phase="x", survivors=0, needed=0)
    return simulate(round)


def never_gives_up(round: testing.Round) -> RoundResult:
    return plain(round, sorted(round.present("masked_input")))


@pytest.mark.parametrize(
    ("aggregate", "named"),
    [
        (forgets_who_left_last, r"clients \[\d+\]|integers"),
        (gives_up_early, "x: a client left"),
        (never_gives_up, "RoundResult"),
    ],
)
def test_bug_of_an_aggregator_is_detected(
    aggregate: Callable[[testing.Round], RoundResult], named: str
) -> None:
    # of 100 rounds four have a client that drops out last and could be in the sum
    @settings(PLANTED, max_examples=300)
    @given(testing.rounds())
    def check(round: testing.Round) -> None:
        testing.assert_exact_sum(round, aggregate)

    with pytest.raises(AssertionError, match=named):
        check()


def wrong_sum(round: testing.Round, result: object, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        testing.assert_exact_sum(round, lambda _: result)


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("sum", [0.0] * 4, ParameterError),
        ("integers", None, ParameterError),
        ("survivors", np.arange(4), ParameterError),
        ("disputes", None, ParameterError),
        ("integers", np.zeros(4, np.int64), AssertionError),
        ("sum", np.zeros(4), AssertionError),
        ("weight", None, AssertionError),
        ("disputes", ((2, 1),), AssertionError),
        ("survivors", (3, 2, 1, 0), AssertionError),
    ],
)
def test_result_fields_are_checked(field: str, value: object, error: type[Exception]) -> None:
    round = make_round(4, max_weight=9)
    result = simulate(round)
    testing.assert_exact_sum(round, lambda _: result)
    wrong = dataclasses.replace(result, **{field: value})
    wrong_sum(round, wrong, error, f"^{field} |ascending")


def test_sum_with_too_few_answers_is_detected() -> None:
    """The sum is exact, but two clients of four cannot remove its masks."""
    round = make_round(4, 3, dropouts={2: "unmasking", 3: "unmasking"})
    wrong_sum(round, plain(round, range(4)), AssertionError, "too few")


def test_survivors_are_the_clients_with_an_input() -> None:
    round = make_round(5)
    wrong_sum(round, plain(round, range(4)), AssertionError, r"^clients \[4\] ")
    left = make_round(5, dropouts={4: "masked_input"})
    wrong_sum(left, simulate(round), AssertionError, r"^clients \[4\] ")


def test_graph_round_may_omit_some_inputs() -> None:
    """With two neighbours each, a client that loses one of them takes no further part."""
    round = make_round(9, neighbours=2, dropouts={1: "masked_input"})
    testing.assert_exact_sum(round, lambda r: plain(r, range(2, 8)))
    wrong_sum(round, plain(round, (2, 3)), AssertionError, "2 clients")


def test_stochastic_rounding_raises() -> None:
    with pytest.raises(ParameterError, match="rounding"):
        testing.assert_exact_sum(make_round(encoding=FixedPoint(8.0)), simulate)


# ---- a transport's bugs


@pytest.mark.parametrize(
    ("method", "broken", "named"),
    [
        ("deliver", lambda packet, n: [packet] if n % 7 else [], "^all packets of the "),
        ("deliver", lambda packet, n: [bytes(len(packet))], r"^\d+ bytes .*packet"),
        ("deliver", lambda packet, n: [packet[:100]], r"^100 bytes .*packet \d+"),
        ("send", lambda data, n: [data] * (len(data) < 400), "share_keys .*server .*client"),
    ],
)
def test_bug_of_a_transport_is_detected(
    method: str, broken: Callable[[bytes, int], list[bytes]], named: str
) -> None:
    transport, count = Direct(), itertools.count(1)
    setattr(transport, method, lambda *given: broken(given[-1], next(count)))
    with pytest.raises(AssertionError, match=named):
        testing.run_over(transport, make_round(6), testing.Schedule())


@pytest.mark.parametrize("method", ["send", "deliver"])
@pytest.mark.parametrize("returned", [None, b"x", [1]])
def test_wrong_return_type_of_a_transport_is_named(method: str, returned: object) -> None:
    transport = Direct()
    setattr(transport, method, lambda *_: returned)
    with pytest.raises(ParameterError, match=method):
        testing.run_over(transport, make_round(), testing.Schedule())


@pytest.mark.parametrize(
    ("fault", "senders"),
    [
        ("", [0, 1, 2, 3, None]),
        ("twice", [0, 0, 1, 2, 3]),
        ("held", [1, 2, 3, 0, None]),
        ("late", [1, 2, 3, 0, None]),
        ("repeated", [0, 1, 2, 3, 0]),
        ("lost", [1, 2, 3, None, None]),
    ],
)
def test_network_applies_each_fault_to_a_packet(fault: str, senders: list[int | None]) -> None:
    transport, schedule = Direct(), testing.Schedule({0: fault} if fault else {})
    result = testing.run_over(transport, make_round(4, 3), schedule)
    assert [sender for sender, _, _ in transport.delivered[:5]] == senders
    assert result is not None
    assert result.survivors == ((1, 2, 3) if fault in ("late", "lost") else (0, 1, 2, 3))


def test_too_many_losses_end_a_round_without_a_result() -> None:
    lost = testing.Schedule(dict.fromkeys((0, 1), "lost"))
    assert testing.run_over(Direct(), make_round(4), lost) is None


@pytest.mark.parametrize("faults", [{-1: "lost"}, {3: "gone"}])
def test_impossible_schedules_are_rejected(faults: dict[int, str]) -> None:
    with pytest.raises(ParameterError):
        testing.Schedule(faults)


# ---- bugs in the library, seen through a transport


@pytest.mark.parametrize("error", [RemoteProtocolError, AssertionError])
def test_wrong_addition_is_detected(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """An input is added twice, so that masks stay, or the sum is off by one."""
    add_into = Ring.add_into

    def wrong(self: Ring, total: np.ndarray, values: np.ndarray) -> None:
        add_into(self, total, values)
        if error is AssertionError:
            total[0] += 1
        elif total.any():
            add_into(self, total, values)

    monkeypatch.setattr(Ring, "add_into", wrong)
    with pytest.raises(error, match=r"integers|sum"):
        testing.run_over(Direct(), make_round(), testing.Schedule())


def test_needless_rejection_or_abort_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    params = make_params(4, 4)  # a server that waits for all, in a round where three are enough
    strict = dataclasses.replace(make_round(4, 3), dropouts={3: "masked_input"})
    monkeypatch.setattr(Masking, "enough", lambda self, *_: Server(params).close_round())
    with pytest.raises(AssertionError, match="aborted"):
        testing.run_over(Direct(), strict, testing.Schedule())
    monkeypatch.undo()
    monkeypatch.setattr(Masking, "take", lambda self, u, _: self.require(False, u, "x", "no"))
    with pytest.raises(AssertionError, match="rejected"):
        testing.run_over(Direct(), make_round(), testing.Schedule())


def test_sum_without_an_input_that_arrived_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    round = make_round(5)
    monkeypatch.setattr(Server, "result", lambda _: plain(round, (0, 1, 2)))
    with pytest.raises(AssertionError, match="arrived"):
        testing.run_over(Direct(), round, testing.Schedule())


def test_server_that_goes_on_with_too_few_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Masking, "enough", lambda *_: None)
    few = make_round(4, 3, dropouts={2: "masked_input", 3: "masked_input"})
    with pytest.raises(AssertionError, match="needs 3"):
        testing.run_over(Direct(), few, testing.Schedule())


# ---- leaks of an input


def hidden(run: Callable[[testing.Round, testing.Record], object], examples: int = 300) -> None:
    @settings(PLANTED, max_examples=examples)
    @given(testing.twin_rounds())
    def check(twins: tuple[testing.Round, testing.Round]) -> None:
        testing.assert_inputs_hidden(*twins, run)

    check()


def test_inputs_without_masks_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MaskSum, "adder", lambda *_: lambda *_: None)
    with pytest.raises(AssertionError, match=r"^message \d from client \d+ "):
        hidden(transmit)


def test_scaled_input_under_its_masks_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum is unreadable, but its input is wrong."""

    class Doubled(Altered):
        def alter(self, masked: np.ndarray, plain: np.ndarray) -> None:
            self.params.ring.add_into(masked, plain)
            self.params.ring.reduce(masked)

    monkeypatch.setattr("secagg.client.client.Input", Doubled)

    def unchecked(round: testing.Round, record: testing.Record) -> None:
        cohort = testing.Cohort(round)
        cohort.advance(2)
        for u, data in cohort.step().items():
            record(u, None, data)

    with pytest.raises(AssertionError, match=r"^message 0 from client "):
        hidden(unchecked)


def also(leak: Callable[[testing.Round, int], Iterable[bytes]]) -> Callable[..., None]:
    """A program that sends the server something more about each client."""

    def run(round: testing.Round, record: testing.Record) -> None:
        transmit(round, record)
        for u in round.vectors:
            for data in leak(round, u):
                record(u, None, data)

    return run


@pytest.mark.parametrize(
    ("leak", "named"),
    [
        (lambda r, u: [bytes(np.count_nonzero(r.vectors[u]))], r" \d+ or \d+ bytes"),
        (lambda r, u: [b"w%20d" % (r.weight(u) or 0)], "^message "),
        (lambda r, u: [b"clipped"] * int(r.vectors[u].any()), r"messages .*: \d+ or \d+"),
    ],
)
def test_leak_beside_the_masked_input_is_detected(
    leak: Callable[[testing.Round, int], list[bytes]], named: str
) -> None:
    with pytest.raises(AssertionError, match=named):
        hidden(also(leak))


def test_end_that_depends_on_inputs_is_detected() -> None:
    def run(round: testing.Round, record: testing.Record) -> None:
        transmit(round, record)
        if all(vector.any() for vector in round.vectors.values()):
            raise TooFewSurvivors("on a whim", phase="x", survivors=0, needed=0)

    with pytest.raises(AssertionError, match=r"x or None|None or x"):
        hidden(run)


def test_run_that_records_nothing_raises() -> None:
    with pytest.raises(AssertionError):
        hidden(lambda *_: None)


def test_wrong_arguments_are_rejected() -> None:
    """A recorded message that is not bytes, and rounds that are no twins."""
    first = make_round()
    with pytest.raises(ParameterError):
        testing.assert_inputs_hidden(first, first, lambda _, record: record(0, None, "text"))
    with pytest.raises(ParameterError):
        testing.assert_inputs_hidden(first, dataclasses.replace(first, seed=1), transmit)


# ---- without Hypothesis


def test_without_hypothesis_the_library_works_and_the_remedy_is_named() -> None:
    program = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "import secagg\n"
        "try: import secagg.testing\n"
        "except secagg.MissingExtra as error: print(error.name)\n"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "hypothesis\n"
