"""Input of a client whose answer must not depend on private numbers.

A client that rejected a weight above the largest one, or a vector with a NaN, would tell the
server something of its data: the server chooses the parameters, and sees who answers. So the
doors of this package send an input in any case. Weights are lowered to the largest one, as
elements are clipped. Whatever cannot be summed is replaced by zeros of weight 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from secagg.encoding import Vector
from secagg.errors import ParameterError, SecAggError
from secagg.protocol.shape import Shape

T = TypeVar("T")


class Outcome(NamedTuple):
    """Outcome of a client's training: its vector and weight, or the error that it raised.

    Attributes
    ----------
    vector : array, shape (d,), or None
        None: the training failed.
    weight : int or None
        None: the sum is unweighted, or the training failed.
    error : Exception or None
        Error of the training.
    """

    vector: Vector | None
    weight: int | None = None
    error: Exception | None = None


class Sent(NamedTuple):
    """Result of `send_input`.

    Attributes
    ----------
    lowered : bool
        True if the weight was above the largest one.
    error : Exception or None
        The reason for which zeros were sent.
    """

    lowered: bool
    error: Exception | None


def send_input(
    send: Callable[[Vector, int | None, bool], T], outcome: Outcome, params: Shape
) -> tuple[T, Sent]:
    """Return what `send` makes of a client's input, or of zeros if there is no valid one.

    Parameters
    ----------
    send : callable
        Function of a vector and a weight that validates both, and of True if that weight was
        lowered to the largest one. After an error of its arguments it can be called again.
    outcome : Outcome
    params : RoundParams or OneShotParams
        Parameters of the sum, which the client has accepted.

    Raises
    ------
    SecAggError
        `send` raised an error that is not of its arguments, or rejects zeros, too.
    """
    error = outcome.error
    if outcome.vector is None:
        error = error or ParameterError("the training gave no vector; return an array")
    else:
        try:
            weight, lowered = _lowered(outcome.weight, params.max_weight)
            return send(outcome.vector, weight, lowered), Sent(lowered, None)
        except Exception as failed:
            if isinstance(failed, SecAggError) and not isinstance(failed, ParameterError):
                raise
            error = failed
    for zeros in _zeros(params):
        try:
            weight = None if params.max_weight is None else 0
            return send(zeros, weight, False), Sent(False, error)
        except (ParameterError, TypeError) as rejected:
            last = rejected
    raise last


def count_spoiled(array: NDArray[np.generic], *, summed: bool) -> int:
    """Return the number of elements of a model that make trainings fail, which use them.

    A server that spoils the elements of some clients would leave the others alone in the sum:
    the failing trainings send zeros. So doors reject such a model before anybody trains.
    Infinite elements belong into some arrays that are not summed, such as masks of attention.
    """
    if array.dtype.kind != "f":
        return 0
    return int(np.count_nonzero(~np.isfinite(array) if summed else np.isnan(array)))


def _lowered(weight: int | None, largest: int | None) -> tuple[int | None, bool]:
    """Return a weight of at most `largest`, and whether it was above; validate nothing."""
    if weight is None or largest is None or not weight > largest:
        return weight, False
    return largest, True


def _zeros(params: Shape) -> Iterator[Vector]:
    """Yield zeros in the dtypes of encodings; an application's own may take one only."""
    yield np.zeros(params.length, np.float64)
    yield np.zeros(params.length, np.int64)
