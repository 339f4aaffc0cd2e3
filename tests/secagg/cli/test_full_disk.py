"""A full disk ends commands with one line and exit status 1, and leaves no part of a file."""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from secagg import Identity, JournalError
from secagg.cli import app
from secagg.cli.files import create_identity
from secagg.cli.streams import is_of_disk
from secagg.journal.lock import errors_of, spoilt

FULL = Path("/dev/full")
KEY = Identity(bytes(range(32))).public.hex()
TRAIN = "fedmf train --model fedmf --rounds 1 --aggregation plain --no-ranking"
PRINTING = [
    "secagg --help",
    "secagg params --clients 10",
    "secagg identity keygen a.pem",
    f"{TRAIN} --json",
]
WRITING = [
    "secagg identity keygen a.pem",
    f"secagg identity register old.json 1 {KEY}",
    "secagg helper keygen journal",
    f"{TRAIN} --out folder",
    "fedmf export model --out x.parquet --to parquet",
]


def run(command: str, folder: Path, *, limit: int | None = None, **streams: object) -> str:
    """Run a command that must end with status 1, and return stderr without its progress.

    No file may grow beyond `limit` bytes, as on a full disk.
    """
    package, *words = command.split()
    code = f"from {package}.cli import main; main()"

    def limited() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-B", "-c", code, *words],
        cwd=folder,
        env=os.environ | {"COLUMNS": "200"},
        preexec_fn=limited,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},  # type: ignore[call-overload]
    )
    assert ran.returncode == 1, ran
    lines = (ran.stderr or "").splitlines()
    shown = [line for line in lines if not line.startswith(("round ", "ranking model"))]
    assert len(shown) == (0 if "stderr" in streams else 1), ran.stderr
    return "".join(shown)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A model's file."""
    folder = tmp_path_factory.mktemp("model")
    words = f"{TRAIN} --out .".split()[1:]
    code = "from fedmf.cli import main; main()"
    subprocess.run(  # noqa: S603
        [sys.executable, "-c", code, *words], cwd=folder, check=True, capture_output=True
    )
    return (folder / "model.fedmf").read_bytes()


@pytest.mark.skipif(not FULL.is_char_device(), reason="no device that is always full")
@pytest.mark.parametrize("command", [*PRINTING, f"{PRINTING[0]} 2"])
def test_full_stdout_is_one_line(command, tmp_path):
    """With 2 stderr is full, too."""
    with FULL.open("w") as full:
        both = {"stderr": full} if command.endswith(" 2") else {}
        shown = run(command.removesuffix(" 2"), tmp_path, stdout=full, **both)
    assert both or shown.startswith(f"{command.split()[0]}: the output cannot be written")


@pytest.mark.parametrize("command", WRITING)
def test_full_folder_is_one_line_and_leaves_no_part(command, tmp_path, model):
    old = json.dumps({"2": Identity.generate().public.hex()}).encode()
    (tmp_path / "old.json").write_bytes(old)
    (tmp_path / "model").write_bytes(model)
    shown = run(command, tmp_path, limit=10)
    named = command.split()[3] if "out" not in command else ""
    assert "File too large" in shown
    assert named in shown
    files = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {"old.json": old, "model": model}


def test_full_disk_of_a_database_is_a_full_disk(tmp_path):
    database = sqlite3.connect(tmp_path / "session")
    statements = "PRAGMA max_page_count = 1; CREATE TABLE rows (content)"
    with pytest.raises(JournalError) as found, closing(database), errors_of(tmp_path):
        database.executescript(statements)
    assert is_of_disk(found.value)
    with pytest.raises(JournalError) as found, errors_of(tmp_path):
        raise spoilt("it was altered")
    assert not is_of_disk(found.value)


@pytest.mark.skipif(not FULL.is_char_device(), reason="no device that never ends")
@pytest.mark.parametrize("option", ["--identity", "--vector", "--registry", "--helpers"])
def test_file_that_never_ends_is_an_error(option, tmp_path):
    create_identity(tmp_path / "a.pem")
    np.save(tmp_path / "v.npy", np.ones(2))
    good = {"--identity": tmp_path / "a.pem", "--vector": tmp_path / "v.npy", option: FULL}
    words = [str(word) for pair in good.items() for word in pair]
    ran = CliRunner().invoke(app, ["join", "http://127.0.0.1:1", "--client", "1", *words])
    assert (ran.exit_code, ran.stderr.count("\n")) == (2, 1)
    assert "/dev/full is a device" in ran.stderr
