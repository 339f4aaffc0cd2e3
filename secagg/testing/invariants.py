"""Assertions about a round: the sum is exact, and the messages reveal no input.

A round may also abort if too few clients are left. Messages contain inputs only under masks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

import numpy as np

from secagg import _fast
from secagg._check import as_bytes, check_kind
from secagg.encoding import FixedPoint
from secagg.encoding.clipping import losses_ignored
from secagg.errors import ParameterError, RemoteProtocolError, TooFewSurvivors
from secagg.protocol import NEXT, Phase, RoundParams
from secagg.protocol.messages import MaskedInput, decode
from secagg.server import RoundResult
from secagg.testing.rounds import Round, needed, plain_encoding

Record = Callable[[int | None, int | None, bytes], None]
"""Function to call as ``record(sender, receiver, message)``, with ids; None is the server."""

_TELLING = 8
"""Number of bytes of a vector that do not occur in a message by chance."""


def require(condition: bool, why: str) -> None:
    """Raise AssertionError with the message `why` unless the condition is True."""
    if not condition:
        raise AssertionError(why)


def assert_exact_sum(round: Round, aggregate: Callable[[Round], RoundResult]) -> None:
    """Run a round with an aggregator and check the result.

    The sum must be, bit for bit, the plain integer sum over the survivors that the result
    names. The survivors must be the clients that sent an input; on a graph, some of them may be
    missing. The aggregator must abort if too few clients are left, and only then.

    Parameters
    ----------
    round : Round
        Round to run, for example drawn by ``testing.rounds()``.
    aggregate : callable
        Function under test. `aggregate` gets the round, lets clients drop out by
        ``round.dropouts``, and returns a RoundResult or raises TooFewSurvivors.

    Raises
    ------
    AssertionError
        The sum, the survivors or the abort is wrong.
    ParameterError
        The aggregator returned another type, or a result with fields of other types.
    """
    params = round.params
    u1, u3 = (round.present(phase) for phase in (Phase.ADVERTISE_KEYS, Phase.MASKED_INPUT))
    counts = [(len(round.present(phase)), phase) for phase in NEXT[params.security]]
    # on a graph the dropouts may all be among one client's holders: count − cut of these remain
    # in the worst case, and if that is enough, no client is left out
    cut = len(u1) - min(params.holders, len(u1))
    sure = all(count - cut >= needed(params, phase) for count, phase in counts)
    possible = all(count >= needed(params, phase) for count, phase in counts)
    try:
        # the drawn vectors are clipped, or below a step, on purpose
        with losses_ignored():
            result = aggregate(round)
    except TooFewSurvivors as error:
        require(not sure, f"a round with enough clients was aborted: {error}")
        return
    _check_types(result)
    require(possible, f"too few clients were left for a sum, but there is one: {result}")
    strangers = sorted(set(result.survivors) - u3)
    require(not strangers, f"clients {strangers} are in the sum but sent no input")
    missing = sorted(u3 - set(result.survivors))
    require(
        not (sure and missing), f"clients {missing} sent their input and are not in the sum"
    )
    count = len(result.survivors)
    require(
        count >= params.min_survivors,
        f"the sum is over {count} clients, but {params.min_survivors} are needed",
    )
    check_result(round, result)


def _check_types(result: RoundResult) -> None:
    """Raise `ParameterError` unless a result is a RoundResult with the right types."""
    check_kind(
        "the aggregator's result",
        result,
        RoundResult,
        "a secagg.RoundResult, such as server.result(), or the error TooFewSurvivors",
    )
    for name in ("sum", "integers"):
        check_kind(f"{name} of the result", getattr(result, name), np.ndarray, "a numpy array")
    for name in ("survivors", "disputes"):
        check_kind(f"{name} of the result", getattr(result, name), tuple, "a tuple")


def check_result(round: Round, result: RoundResult) -> None:
    """Raise AssertionError unless a result is exactly the plain sum over the survivors."""
    survivors = tuple(result.survivors)
    require(survivors == tuple(sorted(set(survivors))), f"{survivors} are not ascending ids")
    exact = round.exact_sum(survivors)
    checked = []
    if round.params.count_clipped:  # a simulation knows the number in any case
        checked.append(("clipped", result.clipped, exact.pop()))
    weight = exact.pop() if round.weights is not None else None
    for name, got, expected in (
        *checked,
        ("integers", result.integers.tolist(), exact),
        ("weight", result.weight, weight),
        ("sum", result.sum.tolist(), _in_units(round.params, exact)),
        ("disputes", tuple(result.disputes), ()),
    ):
        require(
            got == expected,
            f"{name} of survivors {survivors} is {got}, and should be {expected}",
        )


def _in_units(params: RoundParams, exact: list[int]) -> list[float] | list[int]:
    """Return integers in the units of the vectors; division of Python's ints rounds once."""
    if isinstance(params.encoding, FixedPoint):
        return [x / (1 << params.encoding.fractional_bits) for x in exact]
    return exact


def assert_inputs_hidden(
    first: Round, second: Round, run: Callable[[Round, Record], object]
) -> None:
    """Run two rounds that differ in their inputs only, and check that messages hide the inputs.

    With the same entropy all messages except masked inputs must be equal, byte for byte. The
    masked inputs of a client must be of equal size, and must differ, modulo R, exactly by the
    difference of the encoded inputs. No masked input may contain a raw or encoded vector.

    Parameters
    ----------
    first, second : Round
        Rounds with equal parameters, ids, dropouts, policy and seed; ``testing.twin_rounds()``
        draws them.
    run : callable
        Function under test, called as ``run(round, record)``. `run` must make clients and
        server with ``round.client(id)`` and ``round.server()``. For every message it must call
        ``record(sender, receiver, message)``, in order for each pair; None is the server. It
        may raise TooFewSurvivors.

    Raises
    ------
    AssertionError
        A message depends on an input in another way, or nothing was recorded.
    ParameterError
        The rounds differ in more than their vectors and weights, or a recorded message is not
        bytes.
    """
    if _without_inputs(first) != _without_inputs(second):
        raise ParameterError(
            "the two rounds may differ in vectors and weights only; draw them together with "
            "twin_rounds()"
        )
    (sent, end), (others, other_end) = (_transcript(round, run) for round in (first, second))
    require(end == other_end, f"the round's end depends on the inputs: {end} or {other_end}")
    everyone_left = not first.present(Phase.ADVERTISE_KEYS)
    require(bool(sent) or everyone_left, "nothing was recorded: record everything that is sent")
    for sender, receiver in sorted(sent.keys() | others.keys(), key=repr):
        there = between(sender, receiver)
        one, two = sent[sender, receiver], others[sender, receiver]
        require(
            len(one) == len(two),
            f"the number of messages {there} depends on the inputs: {len(one)} or {len(two)}",
        )
        for i, pair in enumerate(zip(one, two, strict=True)):
            _compare((first, second), sender, pair, f"message {i} {there}")


def _without_inputs(round: Round) -> tuple[object, ...]:
    return round.params, round.policy, round.dropouts, round.seed, round.vectors.keys()


def between(sender: int | None, receiver: int | None) -> str:
    """Return the two parties of a message in words."""
    first, second = ("the server" if u is None else f"client {u}" for u in (sender, receiver))
    return f"from {first} to {second}"


def _transcript(
    round: Round, run: Callable[[Round, Record], object]
) -> tuple[dict[tuple[int | None, int | None], list[bytes]], str | None]:
    """Return the messages by sender and receiver, and the phase of an abort or None."""
    sent: dict[tuple[int | None, int | None], list[bytes]] = defaultdict(list)

    def record(sender: int | None, receiver: int | None, data: bytes) -> None:
        sent[sender, receiver].append(as_bytes(data, "a recorded message"))

    try:
        run(round, record)
    except TooFewSurvivors as error:
        return sent, error.phase
    return sent, None


def _compare(
    rounds: tuple[Round, Round], sender: int | None, pair: tuple[bytes, bytes], where: str
) -> None:
    """Raise AssertionError if the messages of the two rounds, a pair, depend on the inputs."""
    sizes = [len(data) for data in pair]
    require(
        sizes[0] == sizes[1],
        f"the size of {where} depends on the inputs: {sizes[0]} or {sizes[1]} bytes",
    )
    params = rounds[0].params
    masked = [_masked(params, sender, data) for data in pair]
    # only a masked input may depend on the inputs, and only in the way checked below
    if sender is None or masked[0] is None or masked[1] is None:
        require(pair[0] == pair[1], f"{where} depends on the inputs")
        return
    for round, data in zip(rounds, pair, strict=True):
        found = any(form in data for form in _telling_forms(round))
        require(not found, f"{where} contains a client's vector")
    inputs = [plain_encoding(params, r.vectors[sender], r.weight(sender)) for r in rounds]
    by_masked, by_inputs = (
        [(a - b) % params.ring.modulus for a, b in zip(one, two, strict=True)]
        for one, two in ((masked[0], masked[1]), (inputs[0], inputs[1]))
    )
    require(
        by_masked == by_inputs,
        f"{where}: the masked inputs differ in another way than the inputs",
    )


def _masked(params: RoundParams, sender: int | None, data: bytes) -> list[int] | None:
    """Return the elements of a masked input, or None for any other message."""
    values = params.ring.zeros(params.elements)
    try:
        message = decode(data, MaskedInput, params, sender=sender, phase=Phase.MASKED_INPUT)
        _fast.unpack_bits(message.values, params.ring.bits, values)
    except (RemoteProtocolError, ValueError):
        return None
    return [int(x) for x in values]


def _telling_forms(round: Round) -> Iterator[bytes]:
    """Yield the bytes of every client's vector, raw and encoded, if at least `_TELLING`."""
    params = round.params
    for u, vector in round.vectors.items():
        encoded = plain_encoding(params, vector, round.weight(u))
        # packed as in a masked input, but without masks
        lanes = params.ring.zeros(params.elements)
        lanes[:] = [x % params.ring.modulus for x in encoded]
        raw = np.ascontiguousarray(vector).tobytes()
        for form in (raw, _fast.pack_bits(lanes, params.ring.bits)):
            if len(form) >= _TELLING:
                yield form
