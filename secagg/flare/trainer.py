"""Training at a site: the job's own executor, whose result stays here."""

from __future__ import annotations

from typing import Any

from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import FilterKey, FLContextKey, FLMetaKey, ReturnCode
from nvflare.apis.utils.task_utils import apply_filters
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.utils.fl_model_utils import FLModelUtils
from nvflare.private.privacy_manager import Scope

from secagg.encoding import Vector
from secagg.errors import ParameterError, RemoteProtocolError
from secagg.flare.log import log_class
from secagg.flare.model import difference, read_model
from secagg.oneshot import OneShotParams
from secagg.protocol import RoundParams

__all__ = ["Trainer"]


class Trainer:
    """Function of a site for `secagg.session.take_part`: it trains and returns the update.

    Parameters
    ----------
    executor : Executor
        The job's executor, which answers a task with weights or differences of weights.
    fl_ctx : FLContext
    abort_signal : Signal
    """

    def __init__(self, executor: Executor, fl_ctx: Any, abort_signal: Any) -> None:
        self._executor, self._fl_ctx, self._abort_signal = executor, fl_ctx, abort_signal

    def __call__(
        self, message: bytes, params: RoundParams | OneShotParams
    ) -> Vector | tuple[Vector, int]:
        """Return the update of the model in `message`, with its weight if the sum has weights.

        Raises
        ------
        RemoteProtocolError
            "train": the executor failed or its result does not fit the model. `take_part` then
            declines the round and stays for the next one.
        """
        try:
            return self._update(message, params.max_weight)
        except Exception as error:
            log_class("training", error)
        raise RemoteProtocolError(
            "the training failed; the log of this site has the reason",
            sender=None,
            phase="train",
            check="train",
        )

    def _update(self, message: bytes, max_weight: int | None) -> Vector | tuple[Vector, int]:
        model = read_model(message)
        task = FLModelUtils.to_shareable(
            FLModel(
                params_type=ParamsType.FULL,
                params={k: v.copy() for k, v in model.arrays.items()},  # for use in place
                current_round=model.round,
                total_rounds=model.rounds,
            )
        )
        # the filters of site and job, such as noise, see what they would see without secagg
        task = self._filtered(Scope.TASK_DATA_FILTERS_NAME, task, model.task)
        reply = self._executor.execute(model.task, task, self._fl_ctx, self._abort_signal)
        if reply.get_return_code() == ReturnCode.OK:
            reply = self._filtered(Scope.TASK_RESULT_FILTERS_NAME, reply, model.task)
        if reply.get_return_code() != ReturnCode.OK:
            raise ParameterError(
                f"task {model.task!r} of the executor {type(self._executor).__name__} ended "
                f"with {reply.get_return_code()}; its own log has the reason"
            )
        result = FLModelUtils.from_shareable(reply)
        relative = result.params_type == ParamsType.DIFF
        if not isinstance(result.params, dict):
            raise ParameterError("the executor returned no arrays; return weights by name")
        vector = difference(model, result.params, relative=relative)
        if max_weight is None:
            return vector
        weight = (result.meta or {}).get(FLMetaKey.NUM_STEPS_CURRENT_ROUND)
        if not isinstance(weight, int) or isinstance(weight, bool):
            raise ParameterError(
                f"the executor's result has no integer {FLMetaKey.NUM_STEPS_CURRENT_ROUND!r} "
                "in its meta; set it, or leave max_weight out at the server"
            )
        return vector, weight

    def _filtered(self, chain: str, data: Any, task: str) -> Any:
        runner = self._fl_ctx.get_prop(FLContextKey.RUNNER)
        results = chain == Scope.TASK_RESULT_FILTERS_NAME
        filters = getattr(runner, "task_result_filters" if results else "task_data_filters", {})
        direction = FilterKey.OUT if results else FilterKey.IN
        return apply_filters(
            chain, data, self._fl_ctx, filters or {}, task, direction, self._abort_signal
        )
