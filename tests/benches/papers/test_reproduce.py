"""Tables are measured in processes, kept run by run, and gone on with."""

import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from unittest.mock import Mock

import numpy as np
import pytest
from typer.testing import CliRunner

import reproduce_fakes
from benches.papers import runner
from benches.papers import table as listed
from benches.papers.__main__ import app
from benches.papers.runner import reproduce
from benches.papers.show import grid
from fedmf.data import load


class Here(Executor):
    """Runs at once, in this process."""

    def __init__(self, *settings):
        pass

    def submit(self, call, *arguments):
        future = Future()
        future.set_result(call(*arguments))
        return future


@pytest.fixture
def fakes(tmp_path, monkeypatch):
    """Offer the fakes in place of the tables; the seeds that were run are in the file."""
    monkeypatch.setattr(listed, "MODULES", reproduce_fakes.MODULES)
    monkeypatch.setenv("FAKE_TRACE", str(tmp_path / "trace"))
    return tmp_path / "trace"


@pytest.fixture
def trace(fakes, monkeypatch):
    """Offer the fakes, and take the time of no process."""
    monkeypatch.setattr(runner, "ProcessPoolExecutor", Here)
    return fakes


def invoke(*arguments):
    return CliRunner().invoke(app, list(arguments))


def ended(watch):
    """Return row and seed of the finished runs."""
    return sorted((call.args[0].row, call.args[0].seed) for call in watch.finished.mock_calls)


def row_of(document, table, name):
    (found,) = (one for one in document["tables"] if one["key"] == table)
    (row,) = (one for one in found["rows"] if one["name"] == name)
    return row


@pytest.mark.large
def test_two_processes_equal_one_and_reuse_kept_runs(fakes, tmp_path):
    """Two processes measure what one measures and what is kept is not run again."""
    reports = []
    for jobs in (1, 2):
        watch = Mock()
        store = tmp_path / f"store{jobs}"
        reports.append(reproduce(["good"], store, watch, seeds=3, jobs=jobs))
        watch.begin.assert_called_once_with(0, 4)  # of one row, 1 of a row that is not random
    assert ended(watch) == [("steady", 0), ("steady", 1), ("steady", 2), ("tiny", 0)]
    assert sorted(fakes.read_text().split()) == ["0", "0", "1", "1", "2", "2"]
    one, other = (
        [(row.row.name, [run.figures for run in row.records]) for row in report.tables[0].rows]
        for report in reports
    )
    assert one == other
    assert one[0] == ("steady", [{"RMSE": 0.9 + 0.01 * n, "MAE": 0.7} for n in range(3)])

    again = Mock()  # and one seed more
    report = reproduce(["good"], store, again, seeds=4)
    again.begin.assert_called_once_with(4, 1)
    assert ended(again) == [("steady", 3)]
    assert fakes.read_text().split()[6:] == ["3"]
    steady = report.tables[0].rows[0]
    assert steady.measured("RMSE").mean == pytest.approx(0.915)
    assert steady.measured("RMSE").sd == pytest.approx(0.01 * (5 / 3) ** 0.5)  # of 0, 1, 2, 3
    assert report.tables[0].judged(steady) == {"RMSE": False, "MAE": False}
    assert report.tables[0].judged(report.tables[0].rows[1]) == {"RMSE": True}


GENTLE = [word for key in ("good", "bad", "extra") for word in ("--table", key)]


@pytest.mark.large
def test_failed_and_missing_rows_are_reported_others_run(trace, tmp_path):
    out = tmp_path / "out"
    ran = invoke(*GENTLE, "--seeds", "6", "--json", "--out", str(out))
    assert ran.exit_code == 1, "rows failed"
    document = json.loads(ran.stdout)
    assert document == json.loads((out / "results.json").read_text())
    assert document["missing"] == {"extra": "pip install scipy"}
    fails = row_of(document, "bad", "fails")
    assert [run["seed"] for run in fails["runs"]] == [0]
    assert re.match(r"seed 1: RuntimeError: .*\(reproduce_fakes.py, line \d+\)", fails["error"])
    strange = row_of(document, "bad", "not a number")
    assert "no result: RMSE = nan" in strange["error"]
    assert strange["runs"] == []
    assert ran.stderr.count("bad: not a number, seed") == 1, "the other seeds are left out"
    elsewhere = row_of(document, "bad", "elsewhere")
    assert elsewhere["missing"].startswith("data set 'nowhere' is unknown")
    assert elsewhere["error"] is None
    extra = row_of(document, "bad", "with an extra")
    assert (extra["missing"], extra["error"]) == ("pip install dp-accounting", None)
    assert [run["figures"]["RMSE"] for run in row_of(document, "bad", "tiny")["runs"]] == [
        pytest.approx(3e-6 * n) for n in range(1, 7)
    ]


def test_dying_process_fails_its_row_and_ctrl_c_is_deaf(fakes, tmp_path):
    """Processes of the pool are deaf to Ctrl-C, and one that dies costs its row only."""
    ran = invoke(
        "--table", "rough", "--seeds", "3", "--jobs", "2", "--json", "--out", str(tmp_path)
    )
    assert ran.exit_code == 1, "rows failed"
    document = json.loads(ran.stdout)
    assert "died, perhaps for lack of memory" in row_of(document, "rough", "dies")["error"]
    assert row_of(document, "rough", "interrupted")["measured"]["RMSE"]["mean"] == 1
    assert len(row_of(document, "rough", "tiny")["runs"]) == 3


def test_document_has_the_files_and_the_schema(trace, tmp_path):
    ran = invoke("--table", "good", "--seeds", "2", "--out", str(tmp_path / "out"))
    assert ran.exit_code == 0, ran.stderr
    for name in ("good", "good-2"):
        picture = (tmp_path / "out" / "results" / f"{name}.svg").read_text()
        assert picture.startswith("<svg ")
        shown = json.loads((tmp_path / "out" / "results" / "good.json").read_text())
        assert f"{name}.svg" in [picture["file"] for picture in shown["pictures"]]
    document = json.loads((tmp_path / "out" / "results.json").read_text())
    assert document.keys() == {"version", "quick", "seeds", "tables", "missing"}
    (table,) = document["tables"]
    assert table.keys() == {"key", "title", "metrics", "note", "remarks", "rows"}
    steady = row_of(document, "good", "steady")
    (run, _) = steady.pop("runs")
    assert steady["paper"] == {"RMSE": {"mean": 0.95, "sd": 0.004}}
    assert steady["measured"]["RMSE"]["sd"] == pytest.approx(0.01 / 2**0.5)
    bounds = {"MAE": {"at_least": 0.6, "at_most": 0.65}, "RMSE": {"at_most": 0.91}}
    assert (steady["target"], steady["met"]) == (bounds, {"MAE": False, "RMSE": True})
    assert (steady["wanted"], steady["error"], steady["missing"]) == (2, None, None)
    assert run.keys() == {"seed", "figures", "seconds", "date", "state", "machine"}


def test_quick_run_is_stored_apart_and_meets_no_target(trace, tmp_path):
    ran = invoke("--table", "good", "--quick", "--out", str(tmp_path / "out"))
    assert ran.exit_code == 0, ran.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["quick"]
    document = json.loads((tmp_path / "out" / "quick" / "results.json").read_text())
    assert document["quick"]
    assert document["seeds"] == 2
    assert row_of(document, "good", "tiny")["runs"][0]["figures"]["quick"] == 1
    assert row_of(document, "good", "steady")["met"] is None
    shown = json.loads((tmp_path / "out" / "quick" / "results" / "good.json").read_text())
    assert (shown["met"], shown["missed"]) == (0, [])
    assert not any("yes" in row for row in shown["rows"])


def test_whole_row_with_one_fold_is_not_judged(trace, tmp_path):
    report = reproduce(["folds"], tmp_path / "store", Mock(), seeds=1)
    (line,) = grid(report.tables[0]).lines()
    assert line[2:5] == ["1 of 2", "RMSE ≤ 0.91", "–"]
    report = reproduce(["folds"], tmp_path / "store", Mock(), seeds=9)
    (line,) = grid(report.tables[0]).lines()
    assert line[2:5] == ["2", "RMSE ≤ 0.91", "yes"]


@pytest.mark.parametrize("changed", ["sources", "ratings"])
def test_run_of_other_sources_or_data_is_repeated(trace, tmp_path, monkeypatch, changed):
    arguments = ("--table", "folds", "--out", str(tmp_path / "out"))
    assert invoke(*arguments).exit_code == 0
    assert invoke(*arguments).exit_code == 0
    assert trace.read_text().split() == ["0", "1"], "kept, and not run again"
    if changed == "sources":
        monkeypatch.setattr(runner, "sources", lambda: "changed since")
    else:
        monkeypatch.setattr(runner, "load", lambda name: load(name).take(np.arange(10)))
    assert invoke(*arguments).exit_code == 0
    assert trace.read_text().split() == ["0", "1"] * 2


def test_damaged_record_is_measured_again(trace, tmp_path):
    reproduce(["folds"], tmp_path, Mock())
    (one, _) = tmp_path.rglob("output.pkl")
    one.write_bytes(one.read_bytes()[:-9])
    report = reproduce(["folds"], tmp_path, Mock())
    assert len(report.tables[0].rows[0].records) == 2
    assert len(trace.read_text().split()) == 3


def test_sources_digest_covers_code_that_computes(tmp_path, monkeypatch):
    (tmp_path / "src").mkdir()
    kernel, shown = tmp_path / "src" / "kernel.c", tmp_path / "notes.md"
    kernel.write_text("int x = 1;")
    monkeypatch.setattr(runner, "ROOTS", {tmp_path.name: tmp_path})
    before = runner.sources.__wrapped__()
    shown.write_text("no source")
    assert runner.sources.__wrapped__() == before
    kernel.write_text("int x = 2;")
    assert runner.sources.__wrapped__() != before


@contextmanager
def started(out, *paths, jobs=1):
    """Yield the command in a process group of its own, of which nothing is left afterwards.

    It imports from the `paths` too.
    """
    code = (
        "import reproduce_fakes\nfrom benches.papers import table\n"
        "table.MODULES = reproduce_fakes.MODULES\n"
        "from benches.papers.__main__ import main\nmain()"
    )
    here = os.path.dirname(reproduce_fakes.__file__)
    imported = os.pathsep.join([here, *map(str, paths)])
    arguments = ("--table", "endless", "--seeds", "3", "--jobs", str(jobs), "--out", str(out))
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": imported},
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.large
def test_ctrl_c_keeps_finished_runs_for_the_next_call(fakes, tmp_path, monkeypatch):
    """A real signal to the whole group, as a terminal sends it.

    That the pipes are closed at the end shows that no process of the pool is left.
    """
    monkeypatch.setenv("FAKE_ENDLESS", "1")
    with started(tmp_path / "out") as process:
        for line in process.stderr:
            if "endless, seed 0: RMSE 1" in line:
                break
        while fakes.read_text().split() != ["0", "1"]:
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert "leaked" not in stderr
    assert "interrupted: 1 runs are kept in" in stderr
    assert "2 are missing; run the same command to continue" in stderr

    monkeypatch.delenv("FAKE_ENDLESS")
    with started(tmp_path / "out") as process:
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 0, stderr
    assert "1 earlier runs kept, 2 to run" in stderr
    assert fakes.read_text().split() == ["0", "1", "1", "2"]
    document = json.loads((tmp_path / "out" / "results.json").read_text())
    runs = row_of(document, "endless", "endless")["runs"]
    assert [run["figures"]["RMSE"] for run in runs] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((), "--table "),
        (("--table", "goot"), "--table goot"),
        (("--table", "good", "--seeds", "0"), "--seeds 0"),
        (("--table", "good", "--out", "/dev/null/x"), "/dev/null/x"),
    ],
)
def test_bad_arguments_exit_with_one_line(trace, tmp_path, monkeypatch, arguments, named):
    monkeypatch.chdir(tmp_path)
    ran = invoke(*arguments)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert named in ran.stderr
    assert ran.stderr.count("\n") == 1
