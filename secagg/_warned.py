"""Warnings of a command: one line each on stderr, without path and source.

This module imports nothing that may warn, as code without kernels does.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def warnings_in_one_line(program: str, words: Callable[[str], str] = str) -> Iterator[None]:
    """Print the warnings of the block as errors are printed, such as "fedmf: 3 ratings are 0".

    Parameters
    ----------
    program : name of the command
    words : function from the text of a warning to the text that is shown
    """

    def show(message: Warning | str, *_: object, **__: object) -> None:
        print(f"{program}: {words(' '.join(str(message).split()))}", file=sys.stderr)

    before = warnings.showwarning
    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before
