"""Marks the results of this package, so that a site's filters tell them apart.

Results are remembered by identity, in the context of FLARE's task, which nobody else can forge
from afar. So no result passes by a mere likeness to a result of this package.
"""

from __future__ import annotations

from typing import Any, TypeVar

from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.shareable import Shareable

T = TypeVar("T")


class GivesSums:
    """Mark of an executor with a task that gives sums."""


def note(fl_ctx: Any, value: T) -> T:
    """Remember a value for the rest of the present task, and return the value."""
    fl_ctx.set_prop(_place(fl_ctx), value, private=True, sticky=False)
    return value


def noted(fl_ctx: Any) -> object:
    """Return the value that was noted last in the present task, or None."""
    return fl_ctx.get_prop(_place(fl_ctx))


def is_own(fl_ctx: Any, result: Shareable) -> bool:
    """Return whether a result of the present task was noted."""
    return noted(fl_ctx) is result


def _place(fl_ctx: Any) -> str:
    return f"__secagg_{fl_ctx.get_prop(FLContextKey.TASK_ID)}"
