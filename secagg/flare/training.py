"""Training at a site: the trainer's task and context, and the update in the result.

The context is FLARE's own, without the server's values beside the model.
"""

from __future__ import annotations

from typing import Any

from nvflare.apis.fl_constant import FLContextKey, FLMetaKey, ReservedKey, ReturnCode
from nvflare.apis.fl_context import FLContext, M, is_sticky
from nvflare.apis.shareable import Shareable
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.utils.fl_model_utils import FLModelUtils

from secagg._secrets import without_frames
from secagg.client.inputs import Outcome
from secagg.encoding import Vector
from secagg.errors import ParameterError
from secagg.flare.model import Model, difference

_KEPT = frozenset({ReservedKey.MANAGER, ReservedKey.ENGINE, ReservedKey.IDENTITY_NAME})
_OF_SERVER = (FLContextKey.JOB_META, FLContextKey.CLIENT_HIERARCHY)
"""Properties of a whole job, which the server can choose for each site."""


def training_task(model: Model) -> Shareable:
    """Return FLARE's task data for the training of a model."""
    return FLModelUtils.to_shareable(
        FLModel(
            params_type=ParamsType.FULL,
            params={k: v.copy() for k, v in model.arrays.items()},  # for use in place
            current_round=model.round,
            total_rounds=model.rounds,
        )
    )


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


def read_outcome(model: Model, reply: Shareable, max_weight: int | None) -> Outcome:
    """Return the outcome of a training from the result; see `read_update` for arguments."""
    try:
        update = read_update(model, reply, max_weight)
    # of any class, since the job's own code made the result
    except Exception as error:
        return Outcome(None, error=error)
    return Outcome(*update) if isinstance(update, tuple) else Outcome(update)


@without_frames
def read_update(
    model: Model, reply: Shareable, max_weight: int | None
) -> Vector | tuple[Vector, int]:
    """Return the update in a trainer's result, with a weight if the sum has weights.

    Parameters
    ----------
    model : Model
        The model that was trained.
    reply : Shareable
        Weights or differences of weights by name.
    max_weight : int or None
        None: the sum has no weights.

    Raises
    ------
    ParameterError
        The training failed, or the result does not fit the model.
    """
    if reply.get_return_code() != ReturnCode.OK:
        raise ParameterError(
            f"the trainer's task {model.task!r} ended with {reply.get_return_code()}; its own "
            "log has the reason"
        )
    result = FLModelUtils.from_shareable(reply)
    if not isinstance(result.params, dict):
        raise ParameterError("the trainer returned no arrays; return weights by name")
    relative = result.params_type == ParamsType.DIFF
    vector = difference(model, result.params, relative=relative)
    if max_weight is None:
        return vector
    weight = (result.meta or {}).get(FLMetaKey.NUM_STEPS_CURRENT_ROUND)
    if not isinstance(weight, int) or isinstance(weight, bool):
        raise ParameterError(
            f"the trainer's result has no integer {FLMetaKey.NUM_STEPS_CURRENT_ROUND!r} in its "
            "meta; set it, or leave max_weight out at the server"
        )
    return vector, weight
