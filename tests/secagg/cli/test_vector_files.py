"""Files of `secagg join --vector`: an array of numbers, or one line with the file's name."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from secagg import ParameterError
from secagg.cli import app
from secagg.cli.files import create_identity, read_vector

GOOD = np.arange(5.0)


def npy(array: np.ndarray, *, objects: bool = False) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=objects)
    return file.getvalue()


def npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, GOOD)
    return file.getvalue()


def with_header(text: str) -> bytes:
    """Return a file whose header is any text."""
    head = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + GOOD.tobytes()


def header(dtype: str, shape: str) -> bytes:
    return with_header(f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}")


class Trap:
    """Object whose pickle would create a file."""

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (Path("trapped"),)


WRONG: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "half a magic": lambda: b"\x93NU",
    "truncated header": lambda: npy(GOOD)[:50],
    "truncated array": lambda: npy(GOOD)[:-1],
    "unknown version": lambda: npy(GOOD)[:6] + b"\x09\x00" + npy(GOOD)[8:],
    "header without an end": lambda: with_header("{'descr': ("),
    "header of nested lists": lambda: with_header("[" * 90),
    "huge shape": lambda: header("'<f8'", "(1000000000000000,)"),
    "unknown dtype": lambda: header("'<q9'", "(5,)"),
    "objects": lambda: npy(np.array([1.0, None]), objects=True),
    "pickle that runs code": lambda: pickle.dumps(Trap()),
    "npz": npz,
    "text": lambda: b"1.0\n2.0\n3.0\n",
    "image": lambda: b"\x89PNG\r\n\x1a\n" + bytes(99),
    "two dimensions": lambda: npy(np.ones((2, 3))),
    "no dimension": lambda: npy(np.array(5.0)),
    "no elements": lambda: npy(np.ones(0)),
    "complex": lambda: npy(np.ones(5, complex)),
    "bytes": lambda: npy(np.array([b"1.0", b"2.0"])),
    "fields of long names": lambda: npy(np.zeros(5, [("a" * 999 + "\n", float)])),
    "long doubles": lambda: npy(np.ones(5, np.longdouble)),
}
SEEMS = {
    "empty": "is empty",
    "pickle that runs code": "is a pickle",
    "npz": "is an archive",
    "text": "is text",
    "image": "of another format",
    "objects": "Python objects",
    "truncated array": "damaged",
    "two dimensions": "shape (2, 3)",
}
REMEDIES = ("numpy.save(", "numpy.ravel(", "with astype", "write the client's vector")
RIGHT = {name: np.array([0, 1, 1], name) for name in ("f8", "f4", ">f8", "i8", "u4", "?")}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", WRONG)
def test_file_without_a_vector_is_named_in_one_line(name: str, folder: Path) -> None:
    """Warnings are errors in these tests; the server is never reached."""
    (folder / "my vector.npy").write_bytes(WRONG[name]())
    create_identity(folder / "7.pem")
    files = ["--identity", "7.pem", "--vector", "my vector.npy"]
    ran = CliRunner().invoke(app, ["join", "http://127.0.0.1:1", "--client", "7", *files])
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (2, "", 1), ran.stderr
    assert "my vector.npy" in ran.stderr
    assert any(remedy in ran.stderr for remedy in REMEDIES)
    assert SEEMS.get(name, "") in ran.stderr
    assert len(ran.stderr) < 300
    assert not (folder / "trapped").exists()


@pytest.mark.parametrize("what", ["missing", "folder", "unreadable"])
def test_file_that_cannot_be_read_is_named(what: str, folder: Path) -> None:
    path = folder / "v.npy"
    if what == "folder":
        path.mkdir()
    if what == "unreadable":
        path.symlink_to(path)
    with pytest.raises(ParameterError, match=r"v\.npy"):
        read_vector(path)


@pytest.mark.parametrize("name", RIGHT)
def test_vector_of_numbers_is_read(name: str, folder: Path) -> None:
    np.save(folder / "v.npy", RIGHT[name])
    found = read_vector(folder / "v.npy")
    assert found.dtype == RIGHT[name].dtype
    assert found.tolist() == RIGHT[name].tolist()


def test_private_numbers_have_no_influence(folder: Path) -> None:
    """A client joins with any numbers."""
    np.save(folder / "v.npy", np.array([np.nan, np.inf, -0.0, 1e300, 5e-324]))
    assert read_vector(folder / "v.npy").size == 5
