"""Handlers of signals at every instruction of a call of the main thread."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def interrupted(call: Callable[[], object], at: int) -> bool:
    """Make a call with a SIGUSR1 before its instruction `at`; return False if it has fewer."""
    left = at

    def count_down(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left == -1:
                signal.raise_signal(signal.SIGUSR1)
        return count_down

    before = sys.gettrace()
    # Python 3.12 traces instructions only if a frame had asked for them before
    sys._getframe().f_trace_opcodes = True
    sys.settrace(count_down)
    try:
        call()
    finally:
        sys.settrace(before)
    return left < 0
