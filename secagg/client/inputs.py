"""Input of a client whose answer must not depend on private numbers.

A client that rejected a weight above the largest weight, or a vector with a NaN, would tell the
server something of its data: the server chooses the parameters, and sees who answers. So the
doors of this package send an input in any case. Weights are lowered to the largest weight, as
elements are clipped. An input that cannot be summed is replaced by zeros of weight 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from secagg.encoding import Vector
from secagg.errors import BudgetSpent, ParameterError, SecAggError
from secagg.protocol.shape import Shape

T = TypeVar("T")


class Outcome(NamedTuple):
    """Outcome of a client's training: the vector and weight, or the error that was raised.

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
        True if the weight was above the largest weight.
    error : Exception or None
        Reason for sending zeros; None if the input was sent.
    """

    lowered: bool
    error: Exception | None


def send_input(
    send: Callable[[Vector, int | None, bool], T], outcome: Outcome, params: Shape
) -> tuple[T, Sent]:
    """Pass a client's input to `send`, or zeros if the input is not valid; return the result.

    Parameters
    ----------
    send : callable
        Function of a vector, a weight and a flag. `send` validates vector and weight. The flag
        is True if the weight was lowered. After an invalid argument `send` can be called
        again.
    outcome : Outcome
    params : RoundParams or OneShotParams
        Parameters of the sum, which the client has accepted.

    Raises
    ------
    SecAggError
        `send` raised an error that its arguments did not cause, such as `BudgetSpent`, or
        rejects zeros, too.
    """
    error = outcome.error
    if outcome.vector is None:
        error = error or ParameterError("the training gave no vector; return an array")
    else:
        try:
            weight, most = outcome.weight, params.max_weight
            lowered = weight is not None and most is not None and weight > most
            made = send(outcome.vector, most if lowered else weight, lowered)
            return made, Sent(lowered, None)
        # an application's own encoding may raise anything, and no error may show in the answer
        except Exception as failed:
            # zeros would fail, too: the server's message is wrong, the client has ended, or
            # the client's budget of privacy is spent
            if isinstance(failed, BudgetSpent) or (
                isinstance(failed, SecAggError) and not isinstance(failed, ParameterError)
            ):
                raise
            error = failed
    nothing = None if params.max_weight is None else 0
    # an application's encoding may take one dtype only
    for zeros in (np.zeros(params.length, np.float64), np.zeros(params.length, np.int64)):
        try:
            return send(zeros, nothing, False), Sent(False, error)
        except BudgetSpent:  # the same error as for any other vector
            raise
        except (ParameterError, TypeError) as rejected:
            last = rejected
    raise last


def count_spoiled(array: NDArray[np.generic], *, summed: bool) -> int:
    """Return the number of elements of a model that would make a training fail.

    A server that spoils the elements for some clients would leave the other clients alone in
    the sum: the failing trainings send zeros. So doors reject such a model before any client
    trains. Infinite elements belong into some arrays that are not summed, such as masks of
    attention.
    """
    if array.dtype.kind != "f":
        return 0
    return int(np.count_nonzero(~np.isfinite(array) if summed else np.isnan(array)))
