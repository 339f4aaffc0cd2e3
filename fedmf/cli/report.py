"""Output of ``fedmf train``: progress, the final table, and the files of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from fedmf.aggregate import PaillierSum
from fedmf.bayes import Posterior
from fedmf.cli.ranker import FILE
from fedmf.ease import ItemWeights
from fedmf.errors import ModelError
from fedmf.models import Factors
from fedmf.settings import Settings
from fedmf.training import RoundRecord
from fedmf.training.schedule import Scheduled
from secagg._files import replace_file

LONG = 10.0  # least estimated seconds of a training that are worth a line
LINES = 60  # about the most lines of progress, for any number of rounds
WAYS = {
    "SecAggSum": "secret sharing",
    "OneShotSum": "one message, helpers",
    "PaillierSum": "Paillier",
    "PlainSum": "plain sum",
}
SECONDS = ("seconds", "client_seconds", "server_seconds", "key_holder_seconds")
SECURE = ("neighbours", "suite", "helpers", "trust", "warning", "trustees", "threshold", "bits")
"""Settings of secure aggregations, written to the document if an aggregation has them."""


class LiveReport(Progress):
    """Progress of a training: a line per finished round, and on a terminal a bar."""

    def __init__(self, console: Console, rounds: int, holder: str) -> None:
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("round {task.completed:.0f}/{task.total:.0f}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._holder = holder
        self._training = self.add_task("training".ljust(30))
        self.expect(rounds)
        self._last = perf_counter()

    def expect(self, rounds: int) -> None:
        """Set the number of rounds of the training."""
        self.rounds, self._every = rounds, max(1, rounds // LINES)
        self.update(self._training, total=rounds)

    def start(self) -> None:
        """Start the clock of the first round, and the bar."""
        self._last = perf_counter()
        super().start()

    def phase(self, name: str, done: int, clients: int) -> None:
        """Show the number of clients that have finished a phase of the protocol."""
        text = f"{name.replace('_', ' ')} {done}/{clients}"
        self.update(self._training, description=text.ljust(30))

    def advanced(self, what: str, done: int, of: int) -> None:
        """Show the number of finished rounds of a model without errors in the history."""
        self.update(self._training, completed=done, total=of)
        if done % max(1, of // LINES) == 0 or done in (1, of):
            self.console.print(f"{what} {done:3} of {of}", soft_wrap=True)
        self._estimate(done, of)

    def round_done(self, record: RoundRecord) -> None:
        """Print the round's line."""
        self.update(self._training, completed=record.round)
        if record.aborted:
            line = f"round {record.round:3}  aborted: {record.aborted}"
            self.console.print(line, style="red", soft_wrap=True)
        elif record.round % self._every == 0 or record.round in (1, self.rounds):
            test = "" if record.test_rmse is None else f"  RMSE {record.test_rmse:.4f}"
            if record.train_rmse is not None:
                test += f"  train {record.train_rmse:.4f}"
            held = record.key_holder_seconds
            holder = f", {self._holder} {held:.2f} s" if held else ""
            self.console.print(
                f"round {record.round:3}{test}  "
                f"{record.survivors} of {record.cohort} users  clients "
                f"{record.client_seconds:.2f} s, server {record.server_seconds:.2f} s{holder}",
                soft_wrap=True,
            )
        # a round that was aborted was shorter than the others
        self._estimate(0 if record.aborted else record.round, self.rounds)

    def _estimate(self, done: int, of: int) -> None:
        """Print after the first round how long all rounds of a long training take."""
        since, self._last = self._last, perf_counter()
        whole = (self._last - since) * of
        if done == 1 < of and whole >= LONG:
            minutes = f"{whole / 60:.0f} min" if whole >= 120 else f"{whole:.0f} s"
            self.console.print(f"about {minutes} for all {of} rounds", soft_wrap=True)


def key_line(aggregation: PaillierSum) -> str:
    """Return a line that announces the key: making a key may take half a minute."""
    key = f"a key of {aggregation.bits} bits"
    if aggregation.trust == "threshold":
        return f"dealing {key} to {aggregation.trustees} trustees"
    return f"making {key}"


def document(
    settings: dict[str, object], trainer: Scheduled, more: Mapping[str, object]
) -> dict[str, Any]:
    """Return `settings` with the trainer's settings, results with `more`, and the history."""
    rounds = trainer.history_.rounds
    summed = [record for record in rounds if not record.aborted]
    result: dict[str, object] = {"rounds": len(rounds), "aborted": len(rounds) - len(summed)}
    if rounds:
        last = rounds[-1]
        result |= {
            "rmse": last.test_rmse,
            "mae": last.test_mae,
            "train_rmse": last.train_rmse,
            "trained_items": last.trained_items,
            **{name: sum(getattr(record, name) for record in rounds) for name in SECONDS},
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
            "hyper_parameters": _hyper_parameters(trainer),
            "aggregation": _how(trainer.aggregation),
            "rounds": getattr(trainer, "rounds", len(rounds)),
            **asdict(trainer.schedule),
        },
        "result": {**result, **more},
        "history": trainer.history_.as_dict(),
    }


def print_summary(console: Console, run: dict[str, Any]) -> None:
    """Print the final table of a training; `run` is the value that `document` returns."""
    result, settings = run["result"], run["settings"]
    table = Table(Column(style="dim"), "", show_header=False, box=None, pad_edge=False)
    table.add_row("data", f"{settings['data']}, split {settings['split']}")
    how = settings["aggregation"]
    trust = f", trust: {how['trust']}" if "trust" in how else ""
    table.add_row("aggregation", f"{WAYS[how['name']]}{trust}")
    if (noise := settings.get("epsilon")) is not None:
        # whoever sums in plain sees each user's message, with a part of the noise
        whom = "readers of sums" if how["name"] == "PlainSum" else "a server"
        table.add_row(f"noise against {whom}", f"ε = {noise:g}, δ = {settings['delta']:g}")
    if result["rmse"] is not None:
        errors = f"[bold]{result['rmse']:.4f}[/bold]"
        if "mean_rmse" in result:
            errors += f"; of the mean rating {result['mean_rmse']:.4f}"
        table.add_row("test RMSE", errors)
        table.add_row("test MAE", f"{result['mae']:.4f}")
    if "head_rmse" in result:
        errors = f"RMSE [bold]{result['head_rmse']:.4f}[/bold], MAE {result['head_mae']:.4f}"
        table.add_row("with local heads", errors)
    if "ranking" in result:
        table.add_row("first 10 items", _ranking(result["ranking"]))
    if "ranking_model" in result:
        table.add_row(f"the same by {FILE}", _ranking(result["ranking_model"]))
    if "popularity" in result:
        table.add_row("the same by popularity", _ranking(result["popularity"]))
    if "best_possible" in result:
        table.add_row("the best possible", _ranking(result["best_possible"]))
    if "reg" in result:
        table.add_row("λ", f"{result['reg']:g}")
    if result["train_rmse"] is not None:
        table.add_row("train RMSE", f"{result['train_rmse']:.4f}")
    aborted = f", {result['aborted']} of them aborted" if result["aborted"] else ""
    table.add_row("rounds", f"{result['rounds']}{aborted}")
    table.add_row(
        "users in a sum", f"{result['survivors_per_round']:.1f} of {result['cohort']}"
    )
    if result["trained_items"] is not None:
        table.add_row("items trained", str(result["trained_items"]))
    held = result["key_holder_seconds"]
    name = holder_name(how.get("trust"), one_shot="helpers" in how)
    holder = f"{name} {held:.1f} s, " if held else ""
    each = result["seconds_per_client_and_round"] * 1000
    table.add_row(
        "time",
        f"{result['seconds']:.1f} s; server {result['server_seconds']:.1f} s, "
        f"{holder}a user {each:.1f} ms per round",
    )
    up, down = (result[f"bytes_{way}_per_client_and_round"] / 1000 for way in ("up", "down"))
    traffic = f"{up:.1f} kB up, {down:.1f} kB down per round, the model not included"
    table.add_row("a user's traffic for the sum", traffic)
    if result["clipped"]:
        table.add_row("clipped", f"{result['clipped']} elements of gradients")
    console.print(table)


def save(
    out: Path,
    trainer: Scheduled,
    models: tuple[Factors | Posterior | ItemWeights | None, Factors | None],
    run: dict[str, Any],
    console: Console,
) -> None:
    """Write the models, history.json and, where matplotlib is installed, curve.svg.

    The models are model.fedmf and ranking.fedmf. If a model is None, the file of an older run
    is deleted. The first model is None if the model has no factor form. Raises ModelError if a
    file cannot be written.
    """
    written = []
    if models[0] is None:
        console.print("no model.fedmf: this model or its mask has no factor form")
    for model, name in zip(models, ("model.fedmf", FILE), strict=True):
        if model is None:
            (out / name).unlink(missing_ok=True)
        else:
            model.save(out / name)
            written.append(name)
    written.append("history.json")
    try:
        replace_file(out / "history.json", json.dumps(run, indent=2) + "\n")
    except OSError as error:
        raise ModelError(f"the history cannot be written to {out}: {error}") from error
    last = trainer.history_.last
    # without errors there is no curve
    if (last.train_rmse is not None or last.aborted) and _drawn(out, trainer, run, console):
        written.append("curve.svg")
    console.print(f"saved in {out}: {', '.join(written)}", soft_wrap=True)


def _drawn(out: Path, trainer: Scheduled, run: dict[str, Any], console: Console) -> bool:
    """Write curve.svg; without matplotlib print the remedy, and return False."""
    try:
        from fedmf.cli.plots import learning_curve
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != "matplotlib":
            raise
        console.print("no curve.svg: pip install matplotlib")
        return False
    learnt, how = trainer.model, run["settings"]["aggregation"]
    name = learnt if isinstance(learnt, str) else type(learnt).__name__
    title = f"{name}, {WAYS[how['name']]}"
    learning_curve(trainer.history_, out / "curve.svg", title=title)
    return True


def _ranking(found: Mapping[str, float]) -> str:
    """Return the ranking measures of `document` in a line."""
    shown = {"recall": "recall", "NDCG": "ndcg", "hit rate": "hit_rate", "coverage": "coverage"}
    rest = ", ".join(f"{name} {found[key]:.3f}" for name, key in shown.items())
    return f"precision [bold]{found['precision']:.4f}[/bold], {rest}"


def holder_name(trust: str | None, *, one_shot: bool) -> str:
    """Return the name of the party other than users and server that decrypts or opens."""
    if one_shot:
        return "helpers"
    return "trustees" if trust == "threshold" else "key holder"


def _how(aggregation: object) -> dict[str, object]:
    """Return the name and settings of an aggregation."""
    names = [one for one in ("clip", "fractional_bits", *SECURE) if hasattr(aggregation, one)]
    settings = {name: getattr(aggregation, name) for name in names}
    return {"name": type(aggregation).__name__} | settings


def _hyper_parameters(trainer: Scheduled) -> dict[str, object]:
    """Return the settings of the model, or of a trainer that is also the model."""
    if isinstance(trainer.model, Settings):
        return trainer.model.get_params()
    parts = {"aggregation", "callbacks", "cohort", "dropout", "entropy", "seed"}
    return {
        name: one for name, one in trainer.get_params(deep=False).items() if name not in parts
    }


def _mean(numbers: Sequence[float]) -> float:
    return fmean(numbers) if numbers else 0.0
