"""Script: a command of `secagg` whose process is killed at a step of a helper.

Arguments are the step, such as "reserve", "before" or "after" for the moment, and the words of
the command.
"""

from __future__ import annotations

import sys
from typing import cast

from collect_faults import kill
from secagg.cli import main
from secagg.oneshot import Helper


def deadly(step: str, moment: str) -> None:
    """Let helpers die before a step, or after the step and before its answer."""
    done = getattr(Helper, step)

    def die(self: Helper, content: bytes) -> bytes:
        if moment == "before":
            kill()
        answer = cast("bytes", done(self, content))
        kill()
        return answer

    setattr(Helper, step, die)


if __name__ == "__main__":
    deadly(*sys.argv[1:3])
    sys.argv[1:] = sys.argv[3:]
    main()
