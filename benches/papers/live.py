"""What is seen while tables are measured: a line per finished run, bars for those under way."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table as Shown

from benches.papers.cells import grid, number, remarks
from benches.papers.markdown import QUICK
from benches.papers.pool import Job, Outcome
from benches.papers.results import Report

__all__ = ["LiveRuns", "print_report"]


class LiveRuns:
    """Shows runs on a console as long as it is entered; bars only on a terminal.

    Attributes
    ----------
    kept, to_run
        How many runs are in the store by now, and how many are still to be made.
    begun
        Whether this is known yet.
    """

    def __init__(self, console: Console) -> None:
        self.kept = self.to_run = 0
        self.begun = False
        self._console = console
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._all = self._bars.add_task("runs", total=None)
        self._of: dict[Job, TaskID] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def begin(self, kept: int, to_run: int) -> None:
        """Say how much there is to do."""
        self.kept, self.to_run, self.begun = kept, to_run, True
        self._bars.update(self._all, total=to_run)
        self._print(f"{kept} runs kept from before, {to_run} to make")

    def step(self, job: Job, what: str, done: int, of: int) -> None:
        """Show where a run is."""
        text = f"{_name(job)}: {what}"
        if job not in self._of:
            self._of[job] = self._bars.add_task(text)
        self._bars.update(self._of[job], description=text, completed=done, total=of)

    def finished(self, job: Job, outcome: Outcome) -> None:
        """Print what came out of a run."""
        if job in self._of:
            self._bars.remove_task(self._of.pop(job))
        self._bars.advance(self._all)
        self.to_run -= 1
        if outcome.error is not None:
            self._print(f"{_name(job)}: failed: {outcome.error}", style="red")
        elif outcome.missing is not None:
            self._print(f"{_name(job)}: left out: {outcome.missing}", style="yellow")
        else:
            self.kept += 1
            figures = ", ".join(f"{name} {number(x)}" for name, x in outcome.figures.items())
            self._print(f"{_name(job)}: {figures} ({outcome.seconds:.1f} s)")

    def _print(self, line: str, style: str | None = None) -> None:
        self._console.print(line, style=style, markup=False, soft_wrap=True)


def print_report(console: Console, report: Report) -> None:
    """Print each table, and below it what must be said of it."""
    for result in report.tables:
        cells = grid(result, quick=report.quick)
        shown = Shown(title=result.table.title, title_justify="left", box=None, pad_edge=False)
        shown.add_column(cells.heads[0], min_width=24)
        for head in cells.heads[1:]:
            shown.add_column(head, justify="right")
        for line in cells.lines:
            shown.add_row(*line)
        console.print(shown)
        for remark in remarks(result, quick=report.quick):
            console.print(remark, style="yellow", markup=False, soft_wrap=True)
        console.print()
    for key, why in report.missing.items():
        console.print(f"table {key}: left out, {why}", style="yellow", markup=False)
    if report.quick:
        console.print(QUICK, style="yellow")


def _name(job: Job) -> str:
    return f"{job.table}: {job.row}, seed {job.seed}"
