"""Long runs of the lying server and of the distinguisher, for ``make fuzz``.

They print schedules, seconds and findings of each door, and of all at the end. Ctrl-C ends the
present door and prints what was found so far.
"""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import islice

from lying.checker import Finding
from lying.door import Door, Outcome, Settings
from lying.doors import DOORS
from lying.liar import Liar
from lying.oracle import Trial, trial
from lying.search import (
    SIDES,
    Search,
    alone,
    compare,
    downgrade,
    honest,
    lie,
    lies,
    repeat,
    spend,
    together,
)

EVERY = 2.0
"""Seconds between two lines of progress."""


def show_progress(door: Door, state: Callable[[], str]) -> None:
    """Let a door write `state()` to the terminal before a sum, every few seconds."""
    run, due = door.sum, 0.0

    def shown(settings: Settings, liar: Liar) -> Outcome:
        nonlocal due
        if sys.stderr.isatty() and time.monotonic() >= due:
            due = time.monotonic() + EVERY
            sys.stderr.write(f"\r\x1b[K{door.name}: {state()}")
            sys.stderr.flush()
        return run(settings, liar)

    door.sum = shown  # type: ignore[method-assign]


def fuzz_lies(names: Sequence[str], runs: int, seed: int) -> bool:
    """Run at least `runs` schedules at each door; return whether nothing was found."""
    total, seconds, found = 0, 0.0, []
    for name in names:
        with closing(DOORS[name]()) as door:
            search = Search(door)
            show_progress(
                door,
                lambda s=search: f"{s.schedules:,} schedules, {len(s.findings):,} findings",
            )
            stopped = _until_interrupted(lambda s=search: attack(s, runs, seed))
        total, seconds = total + search.schedules, seconds + search.seconds
        found += search.findings
        print(f"{door.name}: {search.schedules:,} schedules, {search.seconds:.1f} s")
        _print_findings(search.findings)
        if stopped:
            break
    print(f"all: {total:,} schedules, {seconds:.1f} s, {len(found):,} findings")
    return not found


def attack(search: Search, runs: int, seed: int) -> None:
    """Compare worlds, repeat messages, and tell all lies alone, then pairs of lies."""
    known = lies(search, honest(search))
    compare(search)
    repeat(search)
    downgrade(search)
    spend(search)
    each = len(SIDES)
    lie(search, islice(alone(known), max(0, runs - search.schedules) // each))
    pairs = together(known, seed)
    while search.schedules < runs:
        lie(search, islice(pairs, 1))


def _print_findings(findings: Sequence[Finding]) -> None:
    counts = Counter((one.kind, one.place) for one in findings)
    for (kind, place), count in counts.most_common():
        first = next(one for one in findings if (one.kind, one.place) == (kind, place))
        print(f"    {kind} {place}: {count:,}, first by {first.schedule}")


def fuzz_oracles(names: Sequence[str], rounds: int, seed: int) -> bool:
    """Run `rounds` sums in drawn worlds at each door; return whether advantages are small."""
    small = True
    for name in names:
        found = Trial()
        with closing(DOORS[name]()) as door:
            if not door.pairs:
                continue
            show_progress(door, lambda kept=found: f"{kept.rounds:,} rounds")
            stopped = _until_interrupted(
                lambda d=door, kept=found: trial(d, rounds, seed=seed, found=kept)
            )
        if found.rounds:
            advantage = found.advantage()
            small &= advantage <= 0.03
            rate = found.rounds / found.seconds
            print(
                f"{door.name}: advantage {advantage:.3f} in {found.rounds:,} rounds, "
                f"{found.seconds:.1f} s, {rate:.1f} rounds/s"
            )
            by_pair = found.by_pair().items()
            print("    " + ", ".join(f"{pair} {one:.2f}" for pair, one in by_pair))
        if stopped:
            break
    return small


def _until_interrupted(work: Callable[[], object]) -> bool:
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")
    return False


def main(target: str, runs: int, seed: int, doors: str) -> bool:
    """Run a target, "lying" or "oracles", at the doors whose names begin with `doors`."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    names = [name for name in DOORS if name.startswith(doors)]
    run = fuzz_lies if target == "lying" else fuzz_oracles
    return run(names, runs, seed)
