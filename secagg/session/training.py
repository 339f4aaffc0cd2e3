"""Training of a member: the application's function, of which no error goes further."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable, iscoroutinefunction

from secagg.client.inputs import Outcome
from secagg.encoding import Vector
from secagg.errors import LocalProtocolError, ParameterError, RemoteProtocolError
from secagg.oneshot import OneShotParams
from secagg.protocol import RoundParams
from secagg.session.thread import in_thread

Input = Vector | tuple[Vector, int]
Train = Callable[[bytes, RoundParams | OneShotParams], Input | Awaitable[Input]]
"""Function of a member that returns its vector, or vector and weight, for a round. Its
arguments are the application's message and the parameters. It raises RemoteProtocolError to
take no part in a sum, and LocalProtocolError to leave the session, for public reasons only."""


async def outcome_of(
    train: Train, message: bytes, params: RoundParams | OneShotParams
) -> Outcome:
    """Return the vector and weight that an application's function gives, or its error.

    Raises
    ------
    RemoteProtocolError, LocalProtocolError
        The function takes no part in this sum, or in the session any more. Its reason must not
        be private: the server sees that it declines.
    """
    try:
        if iscoroutinefunction(train):
            found = await train(message, params)
        else:
            found = await in_thread(lambda: train(message, params))
            if isawaitable(found):
                found = await found
        if not isinstance(found, tuple):
            return Outcome(found)
        if len(found) != 2:
            raise ParameterError(
                f"train returned a tuple of {len(found)}; return a vector, or a pair of vector "
                "and weight"
            )
        return Outcome(*found)
    except (RemoteProtocolError, LocalProtocolError):
        raise
    except Exception as error:
        return Outcome(None, error=error)
