"""Process that runs cases, with the secagg of its working folder, for `runner`.

It reads requests from stdin, a JSON object a line, and answers each with one on stdout.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any

import secagg
from benches.speed.clock import Measure
from secagg import _fast

OURS = ("benches", "fedmf", "secagg")
"""Packages that a case must find; a rival may lack any other."""
_CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def hello() -> dict[str, object]:
    """Return the file of secagg and the tier of its kernels."""
    return {"secagg": secagg.__file__, "tier": _fast.TIER}


def answers(lines: Iterable[str]) -> Iterator[dict[str, object]]:
    """Yield the answer to each request, ``{"case", "arguments", "threads"}``.

    A case is named "module.function". Its preparation is made once for the same arguments. The
    answer has "seconds"; or "missing", the name of a module that is not installed; or "error".
    """
    prepared: dict[str, Measure] = {}
    for line in lines:
        request = json.loads(line)
        key = json.dumps([request["case"], request["arguments"]])
        try:
            if key not in prepared:
                prepared[key] = _case(request["case"])(**request["arguments"])
            _pin(request["threads"])
            yield {"seconds": prepared[key]()}
        except Exception as error:  # every error of a case is shown; the others continue
            name = getattr(error, "name", None) if isinstance(error, ImportError) else None
            if name and name.partition(".")[0] not in OURS:
                yield {"missing": name}
            else:
                yield {"error": f"{type(error).__name__}: {' '.join(str(error).split())}"}
        finally:
            _pin(None)


def _case(name: str) -> Callable[..., Measure]:
    module, _, function = name.partition(".")
    case: Callable[..., Measure] = getattr(import_module(f"benches.speed.{module}"), function)
    return case


def _pin(threads: int | None) -> None:
    """Bind this thread, and those that it starts, to as many cores; None for all."""
    if _CORES:
        os.sched_setaffinity(0, _CORES[:threads])
    secagg.set_threads(threads)  # ends its threads, whose cores stay those of their start


def main() -> None:
    """Answer requests until stdin ends. What a case prints goes to stderr."""
    out: Any = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    print(json.dumps(hello()), file=out)
    for answer in answers(sys.stdin):
        print(json.dumps(answer), file=out)


if __name__ == "__main__":
    main()
