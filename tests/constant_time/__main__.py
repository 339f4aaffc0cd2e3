"""Run all checks, ``make constant-time``: a line for each kernel; status 1 if one fails."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from constant_time import timing, tools


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=40_000, help="measurements for each t")
    given = parser.parse_args()
    failed = [*check_tools(), *check_times(given.times)]
    for line in failed:
        print(f"FAILED: {line}", file=sys.stderr)
    return 1 if failed else 0


def check_tools() -> list[str]:
    """Run every tool on every kernel; return what failed."""
    failed = []
    for tool in tools.TOOLS:
        if tool.missing:
            failed.append(f"{tool.name}: not run; apt-get install {tool.missing}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            reports = tool.run(Path(folder), (*tools.SECRET, *tools.PLANTED))
        for name, report in reports.items():
            print(f"{tool.name:16} {name:18} {'reported' if report else 'no finding'}")
            if bool(report) != (name in tools.PLANTED):
                failed.append(f"{tool.name}: {name}: {report or 'not reported'}")
    for name in tools.lacking():
        print(f"MemorySanitizer  not run: the kernels for {name}, which this CPU lacks")
    return failed


def check_times(count: int) -> list[str]:
    """Take the t of every case, twice if it is large; return what failed."""
    failed = []
    for case in timing.cases():
        t = timing.t_of(case, count)
        if abs(t) > timing.SURE:  # the machine may have done something else meanwhile
            t = min(t, timing.t_of(case, 2 * count, seed=2), key=abs)
        print(f"t {case.name:44} {t:8.1f}  {verdict(t)}", flush=True)
        if abs(t) > timing.SURE:
            failed.append(f"the time of {case.name} differs: t = {t:.1f}")
    for case in timing.controls():
        t = timing.t_of(case, count)
        print(f"t {case.name:44} {t:8.1f}  {verdict(t)}")
        if abs(t) <= timing.SURE:
            failed.append(f"{case.name} was not found")
    return failed


def verdict(t: float) -> str:
    """Name what a t shows."""
    if abs(t) > timing.SURE:
        return "depends on the input"
    return "may depend on the input" if abs(t) > timing.PROBABLE else "no difference found"


if __name__ == "__main__":
    sys.exit(main())
