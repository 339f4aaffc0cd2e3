"""Executor of a site, which takes part in the session of a job, and in nothing else.

The job's own executor trains; the result stays at the site.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import FilterKey, FLContextKey, ReturnCode
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.utils.task_utils import (
    contains_lazy_download_ref,
    get_filters,
    materialize_lazy_download_refs,
)
from nvflare.private.privacy_manager import Scope

from secagg.encoding import Vector
from secagg.errors import ParameterError
from secagg.flare import names
from secagg.flare.configuration import digest_configuration, fix_job
from secagg.flare.files import fixing, own_folder, site_ledger
from secagg.flare.filter import SecAggFilter
from secagg.flare.guard import GivesSums, note
from secagg.flare.identities import Authority, SiteIdentity
from secagg.flare.link import AgreedLink
from secagg.flare.log import log_class, log_rejection, logger
from secagg.flare.model import Model, agreed_context, read_model, read_update, training_task
from secagg.flare.policy import policy_of
from secagg.oneshot import OneShotParams
from secagg.protocol import RoundParams
from secagg.session import take_part

_STEPS = (names.CONFIGURE, names.IDENTIFY, names.SIGN, names.TAKE_PART)


class SecAggExecutor(GivesSums, Executor):
    """Executor of a site that gives the server sums only.

    The executor performs the task "secagg" of `SecAggFedAvg` and rejects all other tasks.
    Replies have a return code and no text. Whether and how the site answers depends on the
    server's parameters and the site's policy only: zeros of weight 0 replace an update that
    cannot be summed.

    Parameters
    ----------
    trainer : Executor
        The job's executor for training. The trainer gets the model in a task of FLARE and
        answers with weights by name, which stay in this process.
    """

    def __init__(self, trainer: Executor) -> None:
        super().__init__()
        self.trainer = trainer
        self._identity: SiteIdentity | None = None

    def handle_event(self, event_type: str, fl_ctx: Any) -> None:
        """Fix the job at the start; see ``FLComponent.handle_event`` of FLARE."""
        fix_job(event_type, fl_ctx)

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: Any, abort_signal: Any
    ) -> Shareable:
        """Perform a step of the task; see ``Executor.execute`` of FLARE."""
        try:
            reply = self._perform(task_name, shareable, fl_ctx, abort_signal)
        except Exception as error:
            log_rejection("the task", error)
            # a code alone, since the error's text could quote private numbers to the server
            reply = make_reply(ReturnCode.EXECUTION_EXCEPTION)
        return note(fl_ctx, reply)  # a filter of the site passes noted replies

    def _perform(
        self, task_name: str, task: Shareable, fl_ctx: Any, abort_signal: Any
    ) -> Shareable:
        step = task.get(names.STEP)
        if task_name != names.TASK or step not in _STEPS:
            logger.warning("rejected a task, since this site gives sums only")
            return make_reply(ReturnCode.TASK_UNSUPPORTED)
        engine = fl_ctx.get_engine()
        policy = policy_of(fl_ctx)
        reply = make_reply(ReturnCode.OK)
        if step == names.CONFIGURE:
            reply[names.CONFIGURATION] = digest_configuration(fl_ctx)
            return reply
        site, job = fl_ctx.get_identity_name(), fl_ctx.get_job_id()
        kit = Path(policy.kit or fl_ctx.get_workspace().get_startup_kit_dir())
        if step == names.IDENTIFY:
            self._identity = SiteIdentity(kit, job, site)
            reply[names.KEY] = self._identity.key.public
            return reply
        if step == names.SIGN:
            if self._identity is None:
                return make_reply(ReturnCode.BAD_TASK_DATA)
            reply[names.SIGNATURE] = self._identity.sign(task.get(names.KEYS))
            return reply
        signatures, registry = task.get(names.SIGNATURES), None
        identity, self._identity = self._identity, None  # a key serves one session
        if signatures is not None and identity is None:
            raise ParameterError("the server sent signatures, and this site drew no key")
        # raises without signatures: a server must not make an active session semi-honest
        if identity is not None:
            registry = identity.registry(signatures, Authority(kit, policy.sites))
        topic, token = task.get(names.TOPIC), task.get(names.TOKEN)
        if not isinstance(topic, str) or not isinstance(token, bytes):
            return make_reply(ReturnCode.BAD_TASK_DATA)

        def send(request: Any, timeout: float) -> Any:
            replies = engine.send_aux_request(None, topic, request, timeout, fl_ctx)
            return next(iter(replies.values()), None)

        link = AgreedLink(send, token, abort_signal, digest_configuration(fl_ctx))
        work = take_part(
            link,
            site,
            Trainer(self.trainer, fl_ctx, abort_signal),
            policy=fixing(policy.rounds, own_folder(fl_ctx)),
            identity=None if identity is None else identity.key,
            registry=registry,
            spending=site_ledger(own_folder(fl_ctx), policy.budget),
        )
        try:
            asyncio.run(work)
        except Exception as error:
            if not link.ended:
                raise
            log_class("the session, in which zeros were sent,", error)  # no other reply
        return reply


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
        if chain == Scope.TASK_DATA_FILTERS_NAME:
            direction, filters = FilterKey.IN, runner.task_data_filters
        else:
            direction, filters = FilterKey.OUT, runner.task_result_filters
        if contains_lazy_download_ref(data):  # of a trainer in another process
            cell = fl_ctx.get_engine().get_cell()
            data = materialize_lazy_download_refs(data, cell, self._abort_signal)
        for one in get_filters(chain, fl_ctx, filters, task, direction):
            if not isinstance(one, SecAggFilter):
                data = one.process(data, fl_ctx)
        return data
