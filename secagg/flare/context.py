"""Context of a trainer: FLARE's own context, without the server's values beside the model."""

from __future__ import annotations

from typing import Any

from nvflare.apis.fl_constant import FLContextKey, ReservedKey
from nvflare.apis.fl_context import FLContext, M, is_sticky
from nvflare.apis.shareable import Shareable

from secagg.flare.model import Model

_KEPT = frozenset({ReservedKey.MANAGER, ReservedKey.ENGINE, ReservedKey.IDENTITY_NAME})
_OF_SERVER = (FLContextKey.JOB_META, FLContextKey.CLIENT_HIERARCHY)
"""Properties of a whole job, which the server can choose for each site."""


def agreed_context(fl_ctx: Any, model: Model, task: Shareable) -> FLContext:
    """Return a context for the training of a model.

    The context has the properties that this site's FLARE set for the job. The properties of the
    task itself have values that all sites of the sum agree on. Properties that the trainer sets
    stay in the context.

    Parameters
    ----------
    fl_ctx : FLContext
        Context of the task that came from the server.
    model : Model
    task : Shareable
        Task of the trainer.
    """
    context: FLContext = fl_ctx.clone()
    # sticky properties are this site's own; others came with the task of the server
    context.props = {
        key: one for key, one in context.props.items() if key in _KEPT or is_sticky(one[M])
    }
    server = FLContext()
    server.set_public_props({ReservedKey.RUN_NUM: fl_ctx.get_job_id()})
    agreed = {
        FLContextKey.TASK_NAME: model.task,
        FLContextKey.TASK_ID: f"{model.task} {model.round}",
        FLContextKey.TASK_DATA: task,
        FLContextKey.PEER_CONTEXT: server,
        **dict.fromkeys(_OF_SERVER),
    }
    for key, value in agreed.items():
        context.put(key, value, private=True, sticky=False)
    return context
