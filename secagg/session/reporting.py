"""Task of a one-shot report: a client's checks before it computes its vector."""

from __future__ import annotations

from secagg.errors import RemoteProtocolError
from secagg.oneshot import OneShotParams, OneShotPolicy
from secagg.oneshot.client import check_signer
from secagg.protocol import Identity
from secagg.session.wire import Task, endorsements_of, is_bound


def check_request(
    task: Task, params: OneShotParams, policy: OneShotPolicy, identity: Identity | None
) -> list[bytes]:
    """Return the helpers' endorsements in a task of the step "report", if it passes all checks.

    Parameters
    ----------
    task : Task
    params : OneShotParams
        Parameters of the task.
    policy : OneShotPolicy
        Demands of the client, with the helpers that it trusts.
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
        raise RemoteProtocolError(
            "the message is not that of the parameters",
            sender=None,
            phase=task.step,
            check="message",
        )
    return signed
