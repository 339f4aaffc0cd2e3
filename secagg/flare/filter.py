"""Filter of a site: it turns a trainer's result into a one-shot report, and blocks all else.

The filter of the task data reads the server's request and gives the trainer the model in it.
The filter of the results takes the update. Both look at one task, so they share what they know
in the context of that task.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nvflare.apis.filter import ContentBlockedException, Filter, FilterChainType
from nvflare.apis.filter import FilterContextKey as Chain
from nvflare.apis.fl_constant import FilterKey, FLContextKey, ReturnCode
from nvflare.apis.shareable import ReservedHeaderKey, Shareable, make_reply
from nvflare.apis.utils.task_utils import get_filters
from nvflare.private.privacy_manager import Scope

from secagg._secrets import without_frames
from secagg.encoding.clipping import warn_of_clipping
from secagg.errors import ParameterError, RemoteProtocolError
from secagg.flare import names
from secagg.flare.files import read_identity
from secagg.flare.log import log_class
from secagg.flare.model import Model, read_model
from secagg.flare.own import is_own, note, noted
from secagg.flare.policy import SitePolicy, policy_of
from secagg.flare.reported import report_once
from secagg.flare.training import read_update, training_task
from secagg.oneshot import OneShotParams
from secagg.oneshot.client import write_report
from secagg.protocol import Identity
from secagg.session.reporting import check_request
from secagg.session.wire import REPORT, Answer, Task, encode, message_digest, read_task

__all__ = ["SecAggFilter"]


@dataclass(frozen=True)
class _Pending:
    """Report that is due in a task."""

    task: Task
    params: OneShotParams
    endorsements: list[bytes]
    model: Model


class SecAggFilter(Filter):
    """Filter of a site that lets sums leave, and nothing else.

    A trainer's result leaves as a report of a one-shot sum, for the helpers that the site's
    `SitePolicy` trusts. Replies of `SecAggExecutor` pass. All other tasks and results are
    blocked, with a return code and no text.

    Enter it twice, among the filters of the task data and of the task results: in a job, or for
    all jobs in ``local/privacy.json`` of the site.
    """

    def process(self, shareable: Shareable, fl_ctx: Any) -> Shareable:
        """Filter a task or its result; see ``Filter.process`` of FLARE.

        Raises
        ------
        ContentBlockedException
            It does not belong to a sum, or fails a check. FLARE then sends a return code.
        """
        results = self.get_prop(Chain.CHAIN_TYPE) == FilterChainType.TASK_RESULT_CHAIN
        try:
            return (_reported if results else _opened)(shareable, fl_ctx)
        except Exception as error:
            log_class("the filter", error)
        # FLARE logs this error, and can send its log to the server
        raise ContentBlockedException("blocked: only sums leave this site")


def _opened(request: Shareable, fl_ctx: Any) -> Shareable:
    """Return the task of the trainer, if the request passes the checks of this site."""
    name = fl_ctx.get_prop(FLContextKey.TASK_NAME)
    if name == names.TASK or isinstance(noted(fl_ctx), _Pending):
        return request  # of SecAggExecutor, or opened by another filter of this class
    _require_result_filter(fl_ctx)
    data = request.get(names.SESSION_TASK)
    if not isinstance(data, bytes):
        raise _violation("task", "the task is no request for a report")
    task = read_task(data)
    policy = policy_of(fl_ctx)
    if task.step != REPORT or policy.one_shot is None:
        raise _violation("task", "this site reports to no helpers, or the step is another one")
    params = OneShotParams.from_bytes(task.params)
    endorsements = check_request(task, params, policy.one_shot, _identity(policy, params))
    # semi-honest helpers, too, then open sums of one message only
    if not params.session.endswith(message_digest(task.message)):
        raise _violation("message", "the parameters do not name the message")
    model = read_model(task.message)
    if model.task != name:  # all sites perform one task
        raise _violation("task", "the message is of another task")
    note(fl_ctx, _Pending(task, params, endorsements, model))
    opened = training_task(model)
    headers = request.get(ReservedHeaderKey.HEADERS, {})
    for key, value in headers.items():
        if opened.get_header(key) is None:
            opened.set_header(key, value)
    return opened


@without_frames
def _reported(result: Shareable, fl_ctx: Any) -> Shareable:
    """Return the report of this site; it reports once in a round."""
    if is_own(fl_ctx, result):
        return result  # of SecAggExecutor, or of another filter of this class
    pending = noted(fl_ctx)
    if not isinstance(pending, _Pending):
        raise _violation("task", "the task was no request for a report")
    policy, params = policy_of(fl_ctx), pending.params
    update = read_update(pending.model, result, params.max_weight)
    vector, weight = update if isinstance(update, tuple) else (update, None)
    made, clipped = write_report(
        vector,
        params,
        fl_ctx.get_identity_name(),
        weight,
        identity=_identity(policy, params),
        policy=policy.one_shot,
        endorsements=pending.endorsements,
    )
    warn_of_clipping(clipped, params.length, params.encoding)
    folder = Path(fl_ctx.get_workspace().get_root_dir()) / "secagg"
    report_once(folder, fl_ctx.get_job_id(), pending.model.round)
    reply = make_reply(ReturnCode.OK)
    reply[names.ANSWER] = encode(Answer(pending.task.id, made))
    return note(fl_ctx, reply)


def _require_result_filter(fl_ctx: Any) -> None:
    """Raise `ParameterError` unless the result of this task will be filtered, too."""
    runner, task = (
        fl_ctx.get_prop(key) for key in (FLContextKey.RUNNER, FLContextKey.TASK_NAME)
    )
    chain = Scope.TASK_RESULT_FILTERS_NAME
    found = get_filters(chain, fl_ctx, runner.task_result_filters, task, FilterKey.OUT)
    if not any(isinstance(one, SecAggFilter) for one in found):
        raise ParameterError(
            f"the results of the task {task!r} have no SecAggFilter; add one with "
            "FilterType.TASK_RESULT, or to task_result_filters in privacy.json"
        )


def _identity(policy: SitePolicy, params: OneShotParams) -> Identity | None:
    """Return this site's key if the sum is active."""
    if not params.active or policy.identity is None:
        return None
    return read_identity(policy.identity)


def _violation(check: str, why: str) -> RemoteProtocolError:
    return RemoteProtocolError(why, sender=None, phase="report", check=check)
