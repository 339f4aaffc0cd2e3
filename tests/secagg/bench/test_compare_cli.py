"""The command ``secagg bench``: a table, a document, a picture, and errors of one line."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from functools import partial
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

import secagg.cli.bench
from compare_rows import widest
from secagg import __version__
from secagg.bench import per_float, report, run, ss
from secagg.bench.cases import Case, Row
from secagg.bench.report import saving
from secagg.bench.run import Candidate, Comparison, candidates

TOY = ("bench", "--clients", "6", "--length", "20", "--budget", "0.001")
FIGURES = ("bytes_up", "bytes_down", "holder_bytes_in", "holder_bytes_out")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(per_float, "CIPHERTEXTS", 16)
    monkeypatch.setattr(secagg.cli.bench, "compare", partial(run.compare, sizes=(512,)))


def invoke(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(secagg.cli.app, arguments, env=environment)


@pytest.mark.large
def test_document_has_a_row_for_every_system_and_case() -> None:
    ran = invoke(*TOY, "--clients", "6,9", "--json")
    assert (ran.exit_code, ran.stderr) == (0, "")
    shown = json.loads(ran.stdout)
    assert (shown["version"], shown["budget_seconds"]) == (1, 0.001)
    assert shown["complete"] is True
    assert {"cpu", "gmp", "tier", "phe"} <= set(shown["machine"])
    assert shown["machine"]["secagg"] == __version__
    assert [(one["operation"], one["bits"]) for one in shown["per_float"]] == [
        (operation, 512) for operation in ("encrypt", "encrypt, key's owner", "decrypt", "add")
    ]
    systems, absent = candidates(run.FAMILIES, 512)
    assert shown["absent"] == absent
    names = [one.system.name for one in systems]
    assert list(shown["systems"]) == names
    found = [(row["clients"], row["length"], row["system"]) for row in shown["rows"]]
    assert found == [(n, 20, name) for n in (6, 9) for name in names]
    for row in shown["rows"]:
        loads = [row[party] for party in ("client", "server", "holder") if row[party]]
        assert len(loads) == (2 if row["holder"] is None else 3)
        for figure in [load["seconds"] for load in loads] + [row[key] for key in FIGURES]:
            assert figure is None or figure["value"] >= 0
            assert figure is None or figure["measured"] == (figure["sample"] is None)
        if row["system"] == "phe-float":
            assert row["client"]["seconds"]["sample"] == {"done": 1, "of": 20}
            assert row["client"]["memory"] is None
            assert row["bytes_up"]["value"] == 20 * (128 + 4)
        if row["system"] == "he":
            holder = row["holder_bytes_in"]["value"]
        if row["system"] == "he-threshold":
            assert row["holder_bytes_in"]["value"] == 2 * holder
        assert row["error"] <= (1e-5 if row["system"] == "ckks" else 0)


@pytest.mark.large
def test_every_system_sums_correctly_when_measured_whole() -> None:
    systems, _ = candidates(run.FAMILIES, 512)
    for one in systems:
        row = one.measure(Case(6, 40), 60.0, lambda *_: None)
        assert row.error <= (1e-5 if one.system.name == "ckks" else 0), one.system.name
        loads = [load for load in (row.client, row.server, row.holder) if load is not None]
        assert all(load.seconds.measured and load.memory is not None for load in loads)


def test_table_marks_scaled_figures() -> None:
    pytest.importorskip("phe")
    ran = invoke(*TOY, COLUMNS="120")
    assert ran.exit_code == 0, ran.stderr
    assert ran.stdout.count("n = 6 vectors of d = 20") == 1
    (sharing, each) = re.findall(r"(?m)^(?:SS|phe, per float) .*", ran.stdout)[:2]
    assert "~" not in sharing
    assert re.match(r"phe, per float +~[\d.]+ ms +~[\d.]+ ms +~[\d.]+ ms +~2.64 kB", each)
    for note in ("the others run 5", "~: scaled", "Once: ", "phe has one way"):
        assert note in ran.stdout
    alone = invoke(*TOY, "--compare", "ss", COLUMNS="120").stdout
    for other in ("phe", "~", "add", "Once"):
        assert other not in alone


def test_out_saves_a_document_and_a_picture(tmp_path: Path) -> None:
    ran = invoke(*TOY, "--compare", "ss", "--json", "--out", str(tmp_path / "new" / "folder"))
    assert ran.exit_code == 0, ran.stderr
    saved = tmp_path / "new" / "folder"
    assert json.loads((saved / "compare.json").read_text()) == json.loads(ran.stdout)
    assert (saved / "compare.svg").read_text().startswith("<svg ")


def test_failed_save_prints_the_tables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def save(_: Comparison) -> None:
        raise OSError("no room")

    monkeypatch.setattr(secagg.cli.bench, "saving", lambda *_: save)
    ran = invoke(*TOY, "--compare", "ss", "--out", str(tmp_path))
    assert (ran.exit_code, ran.stderr) == (1, "secagg: cannot go on: no room\n")
    assert "n = 6 vectors of d = 20" in ran.stdout


@pytest.mark.parametrize("blocked", ["out", "out/compare.json", "out/compare.svg"])
def test_unwritable_folder_is_rejected_before_measuring(
    blocked: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A folder that cannot be written is rejected before it measures."""
    monkeypatch.setattr(secagg.cli.bench, "compare", None)
    if blocked == "out":
        (tmp_path / "out").write_text("a file")
    else:
        (tmp_path / blocked).mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    ran = invoke(*TOY, "--out", str(tmp_path / "out"))
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"secagg: cannot write {tmp_path / 'out'}")
    assert ran.stderr.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_trial_write_keeps_the_files_content(tmp_path: Path) -> None:
    (tmp_path / "compare.json").write_text("before")
    saving(tmp_path / "compare.json", tmp_path / "compare.svg")
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [
        ("compare.json", "before")
    ]


def test_without_phe_and_tenseal_their_rows_are_absent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without phe and TenSEAL their rows are absent, and a note names the packages."""
    for package, module in (("phe", "peers"), ("tenseal", "ckks")):
        monkeypatch.setitem(sys.modules, package, None)
        monkeypatch.delitem(sys.modules, f"secagg.bench.{module}", raising=False)
        monkeypatch.delattr(f"secagg.bench.{module}", raising=False)
    ran = invoke(*TOY, COLUMNS="120")
    assert ran.exit_code == 0, ran.stderr
    assert not re.search(r"(?m)^(phe,|CKKS)", ran.stdout)
    assert all(f"pip install {package}" in ran.stdout for package in ("phe", "tenseal"))


@pytest.mark.parametrize(
    "options",
    [
        ("--compare", "ss,rsa"),
        ("--clients", "ten"),
        ("--length", "7,"),
        ("--clients", "10,2"),
        ("--budget", "0"),
        ("--budget", "nan"),
        ("--out", ""),
    ],
)
def test_bad_options_fail_in_one_line_before_measuring(
    monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.setattr(run, "candidates", None)
    ran = invoke("bench", *options)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"secagg: {options[0]} ")
    assert ran.stderr.count("\n") == 1


def test_ctrl_c_in_the_middle_of_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real signal, while three processes are at work."""

    def measure(case: Case, progress: ss.Progress) -> None:
        def kill(phase: str, done: int, of: int) -> None:
            if (phase, done) == ("masked_input", 4):
                os.kill(os.getpid(), signal.SIGINT)

        real(case, kill)

    real = ss.measure
    monkeypatch.setattr(ss, "measure", measure)
    ran = invoke(*TOY, "--compare", "ss")
    assert (ran.exit_code, ran.stdout) == (130, "")
    assert ran.stderr.endswith("secagg: interrupted\n")
    assert "Traceback" not in ran.stderr


def test_ctrl_c_keeps_the_finished_cases(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The second of three is interrupted, in its second system, and then the saving, too."""

    def measured(case: Case, *_: object) -> Row:
        return widest(case.clients, case.length)

    def interrupted(case: Case, *_: object) -> Row:
        if case.length == 30:
            os.kill(os.getpid(), signal.SIGINT)
        return measured(case)

    def struck(*arguments: Path | str) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        real(*arguments)

    real = report.replace_file
    monkeypatch.setattr(report, "replace_file", struck)

    systems = [Candidate(ss.SS, measured), Candidate(ss.SS, interrupted)]
    monkeypatch.setattr(run, "candidates", lambda *_, **__: (systems, {}))
    options = ("--length", "20,30,40", "--json", "--out", str(tmp_path))
    ran = invoke(*TOY, *options)
    assert (ran.exit_code, ran.stderr) == (130, "secagg: interrupted\n")
    shown = json.loads(ran.stdout)
    assert [row["length"] for row in shown["rows"]] == [20, 20]
    assert shown["complete"] is False
    assert json.loads((tmp_path / "compare.json").read_text()) == shown
    assert (tmp_path / "compare.svg").exists()
