"""Marks of this package's results, and the guard of an executor for `SecAggFilter`.

Results are remembered by identity, in the context of FLARE's task, which nobody else can forge
from afar. So no result passes a site's filters by a mere likeness to a result of this package.

If an executor raises, FLARE sends the return code past all filters. So the server would learn
which training failed. The guard stands between FLARE and the executor in the tasks that
the filter has accepted, and returns a result in any case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import FLContextKey, ReturnCode
from nvflare.apis.shareable import Shareable, make_reply

from secagg.flare.log import log_class
from secagg.flare.model import Model, agreed_context
from secagg.oneshot import OneShotParams
from secagg.protocol import Identity
from secagg.session.wire import Task

T = TypeVar("T")
Execute = Callable[[str, Shareable, Any, Any], Shareable]


class GivesSums:
    """Mark of an executor with a task that gives sums."""


def note(fl_ctx: Any, value: T) -> T:
    """Remember a value for the rest of the present task, and return the value."""
    fl_ctx.set_prop(_place(fl_ctx), value, private=True, sticky=False)
    return value


def noted(fl_ctx: Any) -> object:
    """Return the value that was noted last in the present task, or None."""
    return fl_ctx.get_prop(_place(fl_ctx))


def _place(fl_ctx: Any) -> str:
    return f"__secagg_{fl_ctx.get_prop(FLContextKey.TASK_ID)}"


@dataclass(frozen=True)
class Due:
    """Report that is due in a task, as the filter has noted in the task's context.

    Attributes
    ----------
    task : Task
        The server's request.
    params : OneShotParams
    endorsements : list of bytes
    model : Model
    identity : Identity or None
        Key of the site.
    cookies : dict or None
        Values of FLARE that the server wants back with the result.
    """

    task: Task
    params: OneShotParams
    endorsements: list[bytes]
    model: Model
    identity: Identity | None
    cookies: Any


@dataclass(frozen=True)
class Answered:
    """Answer of the filter itself to a task without any training."""

    reply: Shareable


def guard(executor: Executor) -> None:
    """Let an executor return a result in each task that the filter has accepted."""
    # once, since the same executor performs many tasks
    if not isinstance(vars(executor).get("execute"), _Guarded):
        executor.execute = _Guarded(executor.execute)


class _Guarded:
    """Method `execute` of an executor."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute

    def __call__(
        self, task_name: str, shareable: Shareable, fl_ctx: Any, abort_signal: Any
    ) -> Shareable:
        due = noted(fl_ctx)
        if isinstance(due, Answered):
            return note(fl_ctx, due.reply)
        if not isinstance(due, Due):
            return self._execute(task_name, shareable, fl_ctx, abort_signal)
        context = agreed_context(fl_ctx, due.model, shareable)
        try:
            reply = self._execute(task_name, shareable, context, abort_signal)
        except Exception as error:
            log_class("the executor", error)
            reply = make_reply(ReturnCode.EXECUTION_EXCEPTION)
        finally:
            if due.cookies:  # after the training, for FLARE
                shareable.set_cookie_jar(due.cookies)
        failed = make_reply(ReturnCode.EXECUTION_RESULT_ERROR)
        return reply if isinstance(reply, Shareable) else failed
