"""Vectors of `secagg join`: files with arrays of numbers, by the numbers of sums."""

from __future__ import annotations

import asyncio
import io
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from secagg import Integers, LocalProtocolError, ParameterError, RoundParams
from secagg.cli import app
from secagg.cli.files import create_identity, read_vector
from secagg.cli.vectors import Vectors, number_of
from secagg.oneshot import OneShotParams
from secagg.session import LocalLink, Session, bind, take_part
from support.oneshot_parties import Parties

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
    "truncated array": lambda: npy(GOOD)[:-1],
    "header without an end": lambda: with_header("{'descr': ("),
    "huge shape": lambda: header("'<f8'", "(1000000000000000,)"),
    "objects": lambda: npy(np.array([1.0, None]), objects=True),
    "pickle that runs code": lambda: pickle.dumps(Trap()),
    "npz": npz,
    "text": lambda: b"1.0\n2.0\n3.0\n",
    "image": lambda: b"\x89PNG\r\n\x1a\n" + bytes(99),
    "two dimensions": lambda: npy(np.ones((2, 3))),
    "no elements": lambda: npy(np.ones(0)),
    "complex": lambda: npy(np.ones(5, complex)),
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


def test_file_that_cannot_be_read_is_named(folder: Path) -> None:
    with pytest.raises(ParameterError, match=folder.name):
        read_vector(folder)


@pytest.mark.parametrize("name", RIGHT)
def test_vector_of_numbers_is_read(name: str, folder: Path) -> None:
    np.save(folder / "v.npy", RIGHT[name])
    found = read_vector(folder / "v.npy")
    assert found.dtype == RIGHT[name].dtype
    assert found.tolist() == RIGHT[name].tolist()


def test_private_numbers_have_no_influence(folder: Path) -> None:
    """Only `secagg join` judges NaN, before it connects."""
    np.save(folder / "v.npy", np.array([np.nan, np.inf, -0.0, 1e300, 5e-324]))
    assert read_vector(folder / "v.npy").size == 5


PARAMS = RoundParams(n_clients=4, threshold=3, length=2, encoding=Integers(9), session=b"s")


def vectors(folder: Path, count: int, length: int = 2) -> Vectors:
    """Return the vectors of a client, of which number i is (i + 1, i + 1, …)."""
    paths = [folder / f"{i}.npy" for i in range(count)]
    for i, path in enumerate(paths):
        np.save(path, np.full(length, i + 1))
    return Vectors(paths, integers=True)


@pytest.fixture
def one_shot(tmp_path: Path) -> OneShotParams:
    parties = Parties(tmp_path, security="semi-honest", session=bind(b"s", number_of(1)))
    parties.close()
    return parties.params


def test_client_that_starts_again_sends_the_vector_of_the_sum_under_way(tmp_path):
    async def run() -> list[list[int]]:
        session, sums = Session(range(4), deadlines=60), []
        members = {}

        def start(u: int) -> None:
            train = vectors(tmp_path, 3)
            members[u] = asyncio.create_task(take_part(LocalLink(session, u), u, train))

        for u in range(4):
            start(u)
        for number in range(3):
            sums.append((await session.round(PARAMS)).sum.tolist())
            if number == 0:
                members[2].cancel()
                start(2)
        await session.close()
        assert [await members[u] for u in (0, 1, 2, 3)] == [3, 3, 2, 3]
        return sums

    assert asyncio.run(run()) == [[4, 4], [8, 8], [12, 12]]


def test_one_shot_sums_are_numbered_by_their_message(tmp_path, one_shot):
    train = vectors(tmp_path, 3, 4)
    assert [train(number_of(i), one_shot).tolist() for i in (1, 2)] == [[2] * 4, [3] * 4]
    with pytest.raises(LocalProtocolError, match=r"sum 3, .* sums 0 to 2"):
        train(number_of(3), one_shot)
    with pytest.raises(LocalProtocolError, match="sum 1 again"):
        train(number_of(1), one_shot)


def test_message_of_another_application_has_no_number(tmp_path, one_shot):
    alone, several = vectors(tmp_path, 1, 4), vectors(tmp_path, 2, 4)
    assert alone(b"a model", one_shot).tolist() == [1] * 4
    with pytest.raises(LocalProtocolError, match=r"sum 1, .* sum 0 only"):
        alone(number_of(1), one_shot)
    with pytest.raises(LocalProtocolError, match="does not number"):
        several(b"a model", one_shot)
    with pytest.raises(LocalProtocolError, match="sum 0 again"):
        alone(b"a model", one_shot)
