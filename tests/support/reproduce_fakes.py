"""Tables whose rows take no time, fail or never end; worker processes import them."""

import os
import signal
from pathlib import Path
from threading import Event

from benches.papers.table import Mean, Row, Table, Target
from fedmf.errors import MissingExtra

MODULES = {
    **dict.fromkeys(("good", "bad", "rough", "endless", "folds"), "reproduce_fakes"),
    "extra": "reproduce_fakes_extra",
}


def note_run(run):
    """Leave a trace of each run, so that a test can count them."""
    with Path(os.environ["FAKE_TRACE"]).open("a") as trace:
        trace.write(f"{run.seed}\n")


def steady(run):
    note_run(run)
    return {"RMSE": 0.9 + 0.01 * run.seed, "MAE": 0.7}


def tiny(run):
    return {"RMSE": 3e-6 * (1 + run.seed), "quick": float(run.quick)}


def fails(run):
    if run.seed == 1:
        raise RuntimeError("the factors\nare gone")
    return {"RMSE": 1.0}


def wants_extra(run):
    raise MissingExtra("pip install dp-accounting")


def endless(run):
    """Run without end from the seed FAKE_ENDLESS on; Ctrl-C ends it early, as Trainer.fit."""
    note_run(run)
    if run.seed >= int(os.environ.get("FAKE_ENDLESS", "1000")):
        try:
            Event().wait()
        except KeyboardInterrupt:
            return {"RMSE": 99.0}
    return {"RMSE": 1.0 + run.seed}


def interrupted(run):
    """Return what a training returns that Ctrl-C reached, if it does."""
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        return {"RMSE": 99.0}
    return {"RMSE": 1.0}


def picture(results):
    from matplotlib.figure import Figure  # not for the processes

    assert "steady" in results
    return Figure()


def row(name, run, **more):
    return Row(name=name, **({"data": "simulated", "run": run} | more))


def table(key, *rows, title="Rows", metrics=("RMSE",), **more):
    return Table(key=key, title=title, metrics=metrics, rows=rows, **more)


GOOD = {"RMSE": Target(at_most=0.91), "MAE": Target(at_least=0.6, at_most=0.65)}
TABLES = (
    table(
        "good",
        row("steady", steady, paper={"RMSE": Mean(0.95, 0.004)}, target=GOOD),
        row("tiny", tiny, seeds=1, target={"RMSE": Target(at_most=1e-5)}),
        title="Good | rows",
        metrics=("RMSE", "MAE"),
        note="Nothing is learnt.",
        pictures=(picture,),
    ),
    table(
        "bad",
        row("fails", fails),
        row("not a number", lambda run: {"RMSE": float("nan")}),
        row("elsewhere", steady, data="nowhere"),
        row("with an extra", wants_extra),
        row("tiny", tiny),
        title="Bad rows",
    ),
    table(
        "rough",
        row("interrupted", interrupted),
        row("dies", lambda run: os._exit(1)),
        row("tiny", tiny),
        title="Rows that end a process, or would",
    ),
    table("endless", row("endless", endless), title="Endless"),
    table(
        "folds",
        row("u1 to u2", steady, seeds=2, whole=True, target={"RMSE": GOOD["RMSE"]}),
        title="Folds",
    ),
)
