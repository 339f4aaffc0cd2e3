"""Filter of a site, which turns a trainer's result into a report and blocks all other data.

The filter of the task data reads the server's request and gives the trainer the request's
model. The filter of the results takes the update. Both filters look at the same task, so they
share values in the context of that task.
"""

from __future__ import annotations

from typing import Any

from nvflare.apis.filter import ContentBlockedException, Filter, FilterChainType
from nvflare.apis.filter import FilterContextKey as Chain
from nvflare.apis.fl_constant import FilterKey, FLContextKey, ReturnCode
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.utils.task_utils import get_filters
from nvflare.private.privacy_manager import Scope

from secagg._secrets import without_frames
from secagg.client.inputs import send_input
from secagg.encoding import Vector
from secagg.encoding.clipping import LOSSES, is_lost, warn_of_losses
from secagg.errors import ParameterError, RemoteProtocolError
from secagg.flare import names
from secagg.flare.configuration import check_configuration, digest_configuration
from secagg.flare.files import fix_site_bounds, own_folder, read_identity, site_ledger
from secagg.flare.guard import Answered, Due, GivesSums, guard, note, noted
from secagg.flare.log import log_class, log_rejection, logger
from secagg.flare.model import read_model, read_outcome, training_task
from secagg.flare.policy import policy_of
from secagg.oneshot import OneShotParams
from secagg.oneshot.client import write_report
from secagg.session.training import check_request
from secagg.session.wire import REPORT, Answer, encode, read_task
from secagg.vault.files import spend


class SecAggFilter(Filter):
    """Filter of a site that lets sums leave, and nothing else.

    A trainer's result leaves as a report for one-shot sums, for the helpers that the site's
    `SitePolicy` trusts. Replies of `SecAggExecutor` pass. All other tasks and results are
    blocked, with a return code and no text. A request that was accepted is answered by a report
    in any case: zeros of weight 0 replace a result that cannot be summed.

    Enter the filter twice, among the filters of the task data and of the task results. Enter
    them in a job, or for all jobs in ``local/privacy.json`` of the site.
    """

    def process(self, shareable: Shareable, fl_ctx: Any) -> Shareable:
        """Filter a task or a result; see ``Filter.process`` of FLARE.

        Raises
        ------
        ContentBlockedException
            `shareable` does not belong to a sum, or fails a check. FLARE then sends a return
            code.
        """
        results = self.get_prop(Chain.CHAIN_TYPE) == FilterChainType.TASK_RESULT_CHAIN
        try:
            return (_reported if results else _opened)(shareable, fl_ctx)
        except Exception as error:
            (log_class if results else log_rejection)("the filter", error)
        # without the cause: FLARE logs this error, and can send the log to the server
        raise ContentBlockedException("blocked: only sums leave this site")


def _opened(request: Shareable, fl_ctx: Any) -> Shareable:
    """Return the task of the trainer, if the request passes the checks of this site."""
    name = fl_ctx.get_prop(FLContextKey.TASK_NAME)
    runner = fl_ctx.get_prop(FLContextKey.RUNNER)
    executor = getattr(runner, "find_executor", lambda name: None)(name)
    if isinstance(noted(fl_ctx), Due | Answered):
        return request  # opened by another filter of this class
    if name == names.TASK and isinstance(executor, GivesSums):
        return request
    # before anything is trained: without this filter a result would leave the site in clear
    _require_result_filter(fl_ctx, runner, name)
    if executor is not None:
        guard(executor)
        if request.get(names.STEP) == names.CONFIGURE:
            reply = make_reply(ReturnCode.OK)
            reply[names.CONFIGURATION] = digest_configuration(fl_ctx)
            if cookies := request.get_cookie_jar():
                reply.set_cookie_jar(cookies)
            note(fl_ctx, Answered(reply))
            return Shareable()
    due = _checked(request, fl_ctx, name)
    folder = own_folder(fl_ctx)
    ledger = site_ledger(folder, policy_of(fl_ctx).budget)
    if ledger is not None:  # before the sum fixes bounds
        ledger.check(due.params)
    fix_site_bounds(folder, due.params)
    # before the training, so that the end of the training decides nothing
    last = spend(folder, f"job {fl_ctx.get_job_id()}", due.model.round)
    if last is not None:
        raise _violation(
            "repeated",
            f"this site has reported in round {last} of this job, and this is round "
            f"{due.model.round}; submit another job",
        )
    if ledger is not None:
        ledger.spend(due.params)
    note(fl_ctx, due)
    return training_task(due.model)


def _checked(request: Shareable, fl_ctx: Any, name: str) -> Due:
    """Return the report that a request asks for; raise if the request fails a check."""
    data = request.get(names.SESSION_TASK)
    if not isinstance(data, bytes):
        raise _violation("task", "the task is no request for a report")
    task = read_task(data)
    policy = policy_of(fl_ctx)
    if task.step != REPORT or policy.one_shot is None:
        raise _violation("task", "this site reports to no helpers, or the step is another one")
    identity = None if policy.identity is None else read_identity(policy.identity)
    params = OneShotParams.from_bytes(task.params)
    if params.active and identity is None:
        raise ParameterError(
            "the sum is active, and this site has no identity; enter the file of its key as "
            f'"identity" into the component {names.POLICY} of local/privacy.json'
        )
    # the parameters name the message: semi-honest helpers, too, open sums of one message only
    endorsements = check_request(task, params, policy.one_shot, identity)
    model = read_model(task.message)
    if model.task != name:  # all sites perform one task
        raise _violation("task", "the message is of another task")
    check_configuration(model, digest_configuration(fl_ctx))
    return Due(task, params, endorsements, model, identity, request.get_cookie_jar())


@without_frames
def _reported(result: Shareable, fl_ctx: Any) -> Shareable:
    """Return the report of this site, whatever the result is."""
    due = noted(fl_ctx)
    if due is result:
        return result  # of SecAggExecutor, or of another filter of this class
    if not isinstance(due, Due):
        raise _violation("task", "the task was no request for a report")
    params, policy, site = due.params, policy_of(fl_ctx).one_shot, fl_ctx.get_identity_name()

    def write(vector: Vector, weight: int | None, _: bool) -> tuple[bytes, int]:
        return write_report(
            vector, params, site, weight, due.identity, policy, due.endorsements
        )

    # never an error: the server must not learn from a reply that a training failed
    outcome = read_outcome(due.model, result, params.max_weight)
    (made, clipped), sent = send_input(write, outcome, params)
    if sent.error is not None:
        log_class("the training, for which zeros are sent,", sent.error)
    if sent.lowered:
        logger.warning("this site lowered its weight to max_weight")
    # in this site's log only, since the number of clipped elements is private
    try:
        if sent.error is None and (vector := outcome.vector) is not None:
            lost = is_lost(vector, params.encoding)
            warn_of_losses(params.encoding, clipped, vector.size, lost)
    except LOSSES as warning:  # an error by the application's filter
        log_class("the report", warning)
    reply = make_reply(ReturnCode.OK)
    reply[names.ANSWER] = encode(Answer(due.task.id, made))
    return note(fl_ctx, reply)


def _require_result_filter(fl_ctx: Any, runner: Any, task: str) -> None:
    """Raise `ParameterError` unless the result of this task will be filtered, too."""
    chain = Scope.TASK_RESULT_FILTERS_NAME
    found = get_filters(chain, fl_ctx, runner.task_result_filters, task, FilterKey.OUT)
    if not any(isinstance(one, SecAggFilter) for one in found):
        raise ParameterError(
            f"the results of the task {task!r} have no SecAggFilter; add one with "
            "FilterType.TASK_RESULT, or to task_result_filters in privacy.json"
        )


def _violation(check: str, why: str) -> RemoteProtocolError:
    return RemoteProtocolError(why, sender=None, phase="report", check=check)
