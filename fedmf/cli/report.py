"""What ``fedmf train`` shows and writes: progress, the final table, and the files of a run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from fedmf.aggregate import PaillierSum, PlainSum, SecAggSum
from fedmf.errors import ModelError
from fedmf.models import Factors
from fedmf.training import RoundRecord, Trainer

__all__ = ["LiveReport", "StageReport", "document", "key_line", "print_summary", "save"]

LINES = 60  # at most about so many lines of progress, however many the rounds


class _Bar:
    """Shows a bar on a terminal, as long as it is entered."""

    def __init__(self, console: Console, *columns: ProgressColumn) -> None:
        self._console = console
        self._progress = Progress(
            *columns,
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()


class LiveReport(_Bar):
    """A line per round as it ends, and on a terminal a bar that shows the phase under way."""

    def __init__(self, console: Console, rounds: int, *, trust: str | None = None) -> None:
        self.rounds = rounds
        self._holder = _holder(trust)
        self._every = max(1, rounds // LINES)
        super().__init__(
            console,
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("round {task.completed:.0f}/{task.total:.0f}"),
        )
        self._task = self._progress.add_task("training".ljust(30), total=rounds)

    def phase(self, name: str, done: int, clients: int) -> None:
        """Show how many clients are through a phase of the protocol."""
        text = f"{name.replace('_', ' ')} {done}/{clients}"
        self._progress.update(self._task, description=text.ljust(30))

    def round_done(self, record: RoundRecord) -> None:
        """Print the round's line."""
        self._progress.update(self._task, completed=record.round)
        if record.aborted:
            line = f"round {record.round:3}  aborted: {record.aborted}"
            self._console.print(line, style="red", markup=False, soft_wrap=True)
        elif record.round % self._every == 0 or record.round in (1, self.rounds):
            test = "" if record.test_rmse is None else f"  RMSE {record.test_rmse:.4f}"
            held = record.key_holder_seconds
            holder = f", {self._holder} {held:.2f} s" if held else ""
            self._console.print(
                f"round {record.round:3}{test}  train {record.train_rmse:.4f}  "
                f"{record.survivors} of {record.cohort} users  clients "
                f"{record.client_seconds:.2f} s, server {record.server_seconds:.2f} s{holder}",
                markup=False,
                soft_wrap=True,
            )


class StageReport(_Bar):
    """A line per stage as it begins, and on a terminal a bar that shows how far it is."""

    def __init__(self, console: Console) -> None:
        self._stage = ""
        super().__init__(
            console,
            BarColumn(bar_width=24),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        )
        self._task = self._progress.add_task("")

    def stage(self, name: str, done: int, of: int) -> None:
        """Show that so many parts of a stage are done."""
        if name != self._stage:
            self._stage = name
            self._progress.reset(self._task)
            self._console.print(name, markup=False, soft_wrap=True)
        self._progress.update(self._task, completed=done, total=of)


def key_line(aggregation: PaillierSum) -> str:
    """Say what the first round begins with, as it may take half a minute."""
    key = f"a key of {aggregation.bits} bits"
    if aggregation.trust == "threshold":
        return f"dealing {key} to {aggregation.trustees} trustees"
    return f"making {key}"


def document(
    settings: dict[str, object], trainer: Trainer, more: Mapping[str, object]
) -> dict[str, object]:
    """Return a run as plain values, for ``json.dumps``: settings, result and history.

    Parameters
    ----------
    settings
        What was chosen beside the trainer.
    trainer
        After the training.
    more
        Results that are not the trainer's, such as the errors with a local head.
    """
    rounds = trainer.history_.rounds
    summed = [record for record in rounds if not record.aborted]
    aggregation = trainer.aggregation
    how: dict[str, object] = {"name": type(aggregation).__name__}
    if isinstance(aggregation, PlainSum | SecAggSum | PaillierSum):
        how |= {"clip": aggregation.clip, "fractional_bits": aggregation.fractional_bits}
    if isinstance(aggregation, SecAggSum):
        how |= {"neighbours": aggregation.neighbours, "threshold": aggregation.threshold}
    if isinstance(aggregation, PaillierSum):
        how |= {
            "trust": aggregation.trust,
            "warning": aggregation.warning,
            "trustees": aggregation.trustees,
            "threshold": aggregation.threshold,
            "bits": aggregation.bits,
        }
    result: dict[str, object] = {"rounds": len(rounds), "aborted": len(rounds) - len(summed)}
    if rounds:
        last = rounds[-1]
        result |= {
            "rmse": last.test_rmse,
            "mae": last.test_mae,
            "train_rmse": last.train_rmse,
            "trained_items": last.trained_items,
            "seconds": sum(record.seconds for record in rounds),
            "client_seconds": sum(record.client_seconds for record in rounds),
            "server_seconds": sum(record.server_seconds for record in rounds),
            "key_holder_seconds": sum(record.key_holder_seconds for record in rounds),
            "seconds_per_client_and_round": _mean(
                [record.client_seconds / record.cohort for record in summed]
            ),
            "bytes_up_per_client_and_round": _mean([record.bytes_up for record in summed]),
            "bytes_down_per_client_and_round": _mean([record.bytes_down for record in summed]),
            "survivors_per_round": _mean([record.survivors for record in summed]),
            "cohort": last.cohort,
            "clipped": sum(record.clipped for record in rounds),
        }
    return {
        "settings": settings
        | {
            "hyper_parameters": asdict(trainer.model),
            "aggregation": how,
            "rounds": trainer.rounds,
            **asdict(trainer.schedule),
        },
        "result": {**result, **more},
        "history": trainer.history_.as_dict(),
    }


def print_summary(console: Console, run: dict[str, object]) -> None:
    """Print the final table of a run's `document`."""
    result, settings = run["result"], run["settings"]
    if not isinstance(result, dict) or not isinstance(settings, dict):
        raise TypeError("print_summary wants what document returned")
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    table.add_row("data", f"{settings['data']}, split {settings['split']}")
    how = settings["aggregation"]
    trust = f", trust: {how['trust']}" if "trust" in how else ""
    table.add_row("aggregation", f"{how['name']}{trust}")
    if result["rmse"] is not None:
        table.add_row("test RMSE", f"[bold]{result['rmse']:.4f}[/bold]")
        table.add_row("test MAE", f"{result['mae']:.4f}")
    if "head_rmse" in result:
        errors = f"RMSE [bold]{result['head_rmse']:.4f}[/bold], MAE {result['head_mae']:.4f}"
        table.add_row("with local heads", errors)
    table.add_row("train RMSE", f"{result['train_rmse']:.4f}")
    aborted = f", {result['aborted']} of them aborted" if result["aborted"] else ""
    table.add_row("rounds", f"{result['rounds']}{aborted}")
    survivors = f"{result['survivors_per_round']:.1f} of {result['cohort']}"
    table.add_row("users in a sum", survivors)
    if result["trained_items"] is not None:
        table.add_row("items trained", str(result["trained_items"]))
    held = result["key_holder_seconds"]
    holder = f"{_holder(how.get('trust'))} {held:.1f} s, " if held else ""
    each = result["seconds_per_client_and_round"] * 1000
    table.add_row(
        "time",
        f"{result['seconds']:.1f} s; server {result['server_seconds']:.1f} s, "
        f"{holder}a user {each:.1f} ms per round",
    )
    up, down = (
        result["bytes_up_per_client_and_round"],
        result["bytes_down_per_client_and_round"],
    )
    table.add_row(
        "a user's traffic for the sum",
        f"{up / 1000:.1f} kB up, {down / 1000:.1f} kB down per round",
    )
    if result["clipped"]:
        table.add_row("clipped", f"{result['clipped']} elements of gradients")
    console.print(table)


def save(
    out: Path,
    trainer: Trainer,
    model: Factors | None,
    run: dict[str, object],
    console: Console,
) -> None:
    """Write model.fedmf, history.json and, where matplotlib is installed, curve.png.

    Parameters
    ----------
    out
        The folder.
    trainer, run
        After the training, and its `document`.
    model
        What is kept; None for what cannot be, and then no older model stays there either.
    console
        Told what was written.

    Raises
    ------
    ModelError
        If a file cannot be written.
    """
    written = ["history.json"]
    if model is None:
        (out / "model.fedmf").unlink(missing_ok=True)
        console.print("no model.fedmf: this mask cannot be written as factors", markup=False)
    else:
        model.save(out / "model.fedmf")
        written.insert(0, "model.fedmf")
    part = out / "history.json.part"
    try:
        part.write_text(json.dumps(run, indent=2) + "\n", encoding="utf-8")
        os.replace(part, out / "history.json")
    except OSError as error:
        raise ModelError(f"the history cannot be written to {out}: {error}") from error
    try:
        from fedmf.cli.plots import learning_curve
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != "matplotlib":
            raise
        console.print("no curve.png: pip install 'secagg[fedmf]'", markup=False)
    else:
        title = f"{type(trainer.model).__name__}, {type(trainer.aggregation).__name__}"
        learning_curve(trainer.history_, out / "curve.png", title=title)
        written.append("curve.png")
    console.print(f"saved in {out}: {', '.join(written)}", markup=False, soft_wrap=True)


def _holder(trust: str | None) -> str:
    """Name those who decrypt and are neither users nor server."""
    return "trustees" if trust == "threshold" else "key holder"


def _mean(numbers: Sequence[float]) -> float:
    return fmean(numbers) if numbers else 0.0
