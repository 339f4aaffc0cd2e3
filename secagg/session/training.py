"""Training of a member: the application's function, of which no error goes further."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable, iscoroutinefunction

from secagg.client.inputs import Outcome
from secagg.encoding import Vector
from secagg.oneshot import OneShotParams
from secagg.protocol import RoundParams
from secagg.session.thread import in_thread

__all__ = ["Train", "outcome_of"]

Input = Vector | tuple[Vector, int]
Train = Callable[[bytes, RoundParams | OneShotParams], Input | Awaitable[Input]]
"""Function of a member that returns its vector, or vector and weight, for a round. Its
arguments are the application's message and the parameters."""


async def outcome_of(
    train: Train, message: bytes, params: RoundParams | OneShotParams
) -> Outcome:
    """Return the vector and weight that an application's function gives, or its error."""
    try:
        if iscoroutinefunction(train):
            found = await train(message, params)
        else:
            found = await in_thread(lambda: train(message, params))
            if isawaitable(found):
                found = await found
        if not isinstance(found, tuple):
            return Outcome(found)
        vector, weight = found
        return Outcome(vector, weight)
    except Exception as error:
        return Outcome(None, error=error)
