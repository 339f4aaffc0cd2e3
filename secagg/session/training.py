"""Training of a member: checks of a request, the application's function, and the outcome.

No error of the function leaves this side.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from inspect import isawaitable, iscoroutinefunction

from secagg.client.inputs import Outcome, Sent
from secagg.encoding import Vector
from secagg.encoding.clipping import LOSSES, is_lost, warn_of_losses
from secagg.errors import LocalProtocolError, ParameterError, RemoteProtocolError
from secagg.oneshot import OneShotParams, OneShotPolicy
from secagg.oneshot.client import check_signer
from secagg.protocol import Identity
from secagg.session.exchange import in_thread
from secagg.session.outcomes import Params
from secagg.session.wire import Task, endorsements_of, is_bound

logger = logging.getLogger("secagg.session")

Input = Vector | tuple[Vector, int]
Train = Callable[[bytes, Params], Input | Awaitable[Input]]
"""Function of a member that returns the vector, or vector and weight, for a round. The
arguments are the application's message and the parameters. The function raises
RemoteProtocolError to take no part in a sum, and LocalProtocolError to leave the session, for
public reasons only."""


def check_request(
    task: Task, params: OneShotParams, policy: OneShotPolicy, identity: Identity | None
) -> list[bytes]:
    """Return the helpers' endorsements in a task of the step "report" that passes all checks.

    Parameters
    ----------
    task : Task
    params : OneShotParams
        Parameters of the task.
    policy : OneShotPolicy
        Demands of the client, with the trusted helpers.
    identity : Identity or None
        Signing key of the client.

    Raises
    ------
    ParameterError
        The parameters fail the policy, or do not fit the identity.
    RemoteProtocolError
        "message": the parameters are of another message.
    """
    signed = endorsements_of(task.data)
    policy.check(params, signed)
    check_signer(params, identity)
    if not is_bound(params, task.message):
        raise violation(task, "message", "the parameters are of another message")
    return signed


def violation(task: Task, check: str, why: str) -> RemoteProtocolError:
    """Return the error of a task that breaks the protocol."""
    return RemoteProtocolError(why, sender=None, phase=task.step, check=check)


async def outcome_of(train: Train, message: bytes, params: Params) -> Outcome:
    """Return the vector and weight that an application's function gives, or the error.

    Raises
    ------
    RemoteProtocolError, LocalProtocolError
        The function takes no part in this sum, or in the session any more. The reason must not
        be private: the server sees that the member declines.
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


def note(
    client: int, outcome: Outcome, sent: Sent, clipped: int, params: Params
) -> Exception | None:
    """Warn and log at a member what became of the input; return the error to raise later."""
    error = sent.error
    try:
        if error is None and (vector := outcome.vector) is not None:
            lost = is_lost(vector, params.encoding)
            warn_of_losses(params.encoding, clipped, vector.size, lost, stacklevel=1)
    except LOSSES as warning:  # an error by the application's filter
        error = error or warning
    if sent.lowered:
        logger.warning("client %d lowered its weight to max_weight", client)
    if sent.error is not None:
        kind = type(sent.error).__name__  # its text could be private
        # no error: where errors of a log reach the server, it would see this one
        logger.warning("client %d sent zeros in place of its vector: %s", client, kind)
    return error
