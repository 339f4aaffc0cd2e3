"""Warnings of both commands are one line each, without path and source."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest
from typer.testing import CliRunner

from fedmf import DataWarning
from fedmf.cli import app as fedmf
from secagg._warned import warnings_in_one_line
from secagg.cli import app as secagg
from secagg.errors import ClippingWarning

ZEROS = [f"{u},{i},{(u + i) % 2}" for u in range(12) for i in range(6)]
TEN = [f"{u},{i},{1 + (u * i) % 5}" for u in range(12) for i in range(6)]
TWINS = [*TEN, "7.0,a,3", "7,b,3", "x,1,3", "x,a,3", "y,b,2"]
QUICK = "--aggregation plain --rounds 2 --min-raters 1 -k 2"
FILES = {"zeros": ZEROS, "twins": TWINS}

# a command, and what its warning has
COMMANDS = {
    "labels": (f"train zeros --scale 0,1 --model implicit {QUICK}", "no view"),
    "ids": (f"train twins --scale 1,5 --model fedals {QUICK}", "'7' (line"),
    "precision": ("secagg simulate --clients 3 --length 4 --clip 2e-5", "steps"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_warning_of_a_command_is_one_line(tmp_path, monkeypatch, name):
    command, shown = COMMANDS[name]
    monkeypatch.chdir(tmp_path)
    words = command.split()
    program, app = ("secagg", secagg) if words[0] == "secagg" else ("fedmf", fedmf)
    for one in FILES.keys() & words:
        lines = ["user,item,rating", *FILES[one], ""]
        (tmp_path / f"{one}.csv").write_text("\n".join(lines))
        place = words.index(one)
        words[place : place + 1] = ["--data", f"{one}.csv"]
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        before = warnings.showwarning
        ran = CliRunner().invoke(app, words[words[0] == "secagg" :])
        assert warnings.showwarning is before
    assert ran.exit_code == 0, ran.stderr
    lines = [line for line in ran.stderr.splitlines() if shown in line]
    assert lines
    assert all(line.startswith(f"{program}: ") for line in lines)
    assert "Warning" not in ran.stderr
    assert ".py" not in ran.stderr
    assert shown not in ran.stdout


@pytest.mark.parametrize("category", [UserWarning, DataWarning, ClippingWarning])
@pytest.mark.parametrize("text", ["a line", "two\nlines", "  tabs\tand\r\n blanks "])
def test_any_warning_is_one_line(capsys, category, text):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with warnings_in_one_line("it", str.upper):
            warnings.warn(text, category, stacklevel=1)
    assert capsys.readouterr().err == f"it: {' '.join(text.split()).upper()}\n"


@pytest.mark.parametrize("package", ["secagg", "fedmf"])
def test_warning_of_an_import_is_one_line(package):
    """Code without its kernels warns before a command runs."""
    code = (
        "import sys\n"
        "class Broken:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'secagg._fast._kernels': raise ImportError('no kernels')\n"
        "sys.meta_path.insert(0, Broken())\n"
        f"from {package}.cli import main\n"
        "sys.argv = ['it', '--version']\n"
        "main()\n"
    )
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert ran.stderr.startswith(f"{package}: secagg runs without its compiled code")
    assert ran.stderr.count("\n") == 1
