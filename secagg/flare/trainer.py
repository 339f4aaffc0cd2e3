"""Training at a site by the job's own executor; the result stays at the site."""

from __future__ import annotations

from typing import Any

from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import FilterKey, FLContextKey, ReturnCode
from nvflare.apis.shareable import Shareable
from nvflare.apis.utils.task_utils import (
    contains_lazy_download_ref,
    get_filters,
    materialize_lazy_download_refs,
)
from nvflare.private.privacy_manager import Scope

from secagg.encoding import Vector
from secagg.flare.context import agreed_context
from secagg.flare.filter import SecAggFilter
from secagg.flare.log import log_class
from secagg.flare.model import Model, read_model
from secagg.flare.training import read_update, training_task
from secagg.oneshot import OneShotParams
from secagg.protocol import RoundParams


class Trainer:
    """Function of a site for `secagg.session.take_part`, which trains and returns the update.

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
        """Return the update of the model in `message`, with a weight if the sum has weights.

        Raises
        ------
        Exception
            The executor failed, or the executor's result does not fit the model.
        """
        try:
            return self._update(read_model(message), params.max_weight)
        except Exception as error:
            log_class("training", error)
            raise

    def _update(self, model: Model, max_weight: int | None) -> Vector | tuple[Vector, int]:
        task = training_task(model)
        context = agreed_context(self._fl_ctx, model, task)
        # the filters of site and job, such as noise, apply as they would without secagg
        task = self._filtered(Scope.TASK_DATA_FILTERS_NAME, task, model.task, context)
        reply = self._executor.execute(model.task, task, context, self._abort_signal)
        if reply.get_return_code() == ReturnCode.OK:
            reply = self._filtered(Scope.TASK_RESULT_FILTERS_NAME, reply, model.task, context)
        return read_update(model, reply, max_weight)

    def _filtered(self, chain: str, data: Shareable, task: str, fl_ctx: Any) -> Shareable:
        """Apply the filters of site and job, but `SecAggFilter`: this task stays here."""
        runner = fl_ctx.get_prop(FLContextKey.RUNNER)
        results = chain == Scope.TASK_RESULT_FILTERS_NAME
        filters = getattr(runner, "task_result_filters" if results else "task_data_filters", {})
        direction = FilterKey.OUT if results else FilterKey.IN
        if contains_lazy_download_ref(data):  # of a trainer in another process
            cell = fl_ctx.get_engine().get_cell()
            data = materialize_lazy_download_refs(data, cell, self._abort_signal)
        for one in get_filters(chain, fl_ctx, filters or {}, task, direction):
            if not isinstance(one, SecAggFilter):
                data = one.process(data, fl_ctx)
        return data
