"""`secagg report`: no number decides whether a client reports, and errors name parameters."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from starlette.requests import Request
from test_collect_client import VECTOR, policy_of, send, served

from cli_processes import invoke
from collect_parts import Collected, Databases
from oneshot_parties import Parties, parties
from secagg import FixedPoint, Integers, LinkError, RemoteProtocolError
from secagg.cli import requests
from secagg.collect import batches, service
from secagg.collect.close import result
from secagg.http import Offer, get_offer
from secagg.http.problems import Problem
from secagg.session import bind

SECRET = 987654
"""A number that no message may have."""


@pytest.fixture
def databases(ram_path: Path) -> Iterator[Databases]:
    """A database in a file: these tests are about clients."""
    made = Databases(str(ram_path / "reports"))
    yield made
    made.close()


def command_of(made: Parties, url: str, vector: Path, client: object = "a") -> list[object]:
    """Return the command that reports the vector of a file."""
    helpers = vector.parent / "helpers.json"
    entries = [
        {"url": "https://h", "suite": "x25519", "hpke": one.hex(), "ed25519": other.hex()}
        for one, other in made.params.helpers
    ]
    helpers.write_text(json.dumps(entries))
    encoding = made.params.encoding
    if isinstance(encoding, Integers):
        clip: tuple[object, ...] = "--integers", "--clip", encoding.max
    else:
        assert isinstance(encoding, FixedPoint)
        clip = "--clip", encoding.clip
    least = "--min-clients", made.params.min_clients, "--patience", 0.3
    files = "--vector", vector, "--helpers", helpers
    return ["report", url, "--client", client, *clip, *least, *files]


def array(*values: object) -> bytes:
    file = io.BytesIO()
    np.save(file, np.array(values))
    return file.getvalue()


def row(text: object) -> bytes:
    return f"a,b,c,d\n{SECRET},2,3,{text}\n".encode()


INTEGERS: dict[str, bytes] = {
    "NaN.csv": row("NaN"),
    "empty.csv": row(""),
    "fraction.csv": row(1.5),
    "negative.csv": row(-1),
    "beyond 2^62.csv": row(1 << 62 | 1),
    "beyond 64 bits.csv": row(1 << 64),
    "thousands.csv": row('"1,000"'),
    "text.csv": row("n/a"),
    "NaN.npy": array(SECRET, np.nan, 3, 4),
    "infinite.npy": array(SECRET, np.inf, 3, 4),
    "fraction.npy": array(SECRET, 1.5, 3, 4),
    "negative.npy": array(SECRET, -1, 3, 4),
    "negative float.npy": array(SECRET, -1.0, 3, 4),
    "beyond 2^62.npy": array(*[np.uint64(1 << 63)] * 4),
    "beyond the clip.npy": array(SECRET, 2, 3, 4),
}
FLOATS = {
    "NaN.csv": row("NaN"),
    "empty.csv": row(""),
    "infinite.csv": row("-inf"),
    "beyond float64.csv": row("1e400"),
    "decimal comma.csv": row('"1,5"'),
    "NaN.npy": array(SECRET, np.nan, 3, 4),
    "infinite.npy": array(SECRET, np.inf, 3, 4),
}
OF_ANOTHER_KIND = {"int64.npy": array(1, 2, 3, 4), "float64.npy": array(1.0, 2, 3, 4)}
FORM = {
    "two rows.csv": row(1) + b"1,2,3,4\n",
    "short row.csv": b"a,b,c,d\n1,2,3\n",
    "no header.csv": b"1,2,3,4\n1,2,3,4\n",
    "other columns.csv": b"a,b,d,c\n1,2,3,4\n",
    "short.npy": array(1, 2, 3),
    "two axes.npy": array([1, 2, 3, 4]),
    "text.npy": array("1", "2", "3", "4"),
    "none.npy": b"",
}


@pytest.mark.parametrize("files", [INTEGERS, FLOATS], ids=["integers", "floats"])
async def test_check52_command_reports_whatever_the_numbers_are(
    databases: Databases, tmp_path: Path, files: dict[str, bytes]
) -> None:
    """Zeros take the place of numbers that the sum does not take; the command fails later."""
    columns = requests.Request(columns=("a", "b", "c", "d")).to_bytes()
    changes = {
        "encoding": Integers(100) if files is INTEGERS else FixedPoint(8.0),
        "security": "semi-honest",
        "session": bind(b"one", columns),
        "n_clients": 20,
        "min_clients": 6,
    }
    with parties(**changes) as made:
        collected = Collected(databases.open(), made, endorsed=True, message=columns)
        async with served(collected) as url:
            for name, content in (files | OF_ANOTHER_KIND | FORM).items():
                (tmp_path / name).write_bytes(content)
                command = command_of(made, url, tmp_path / name, name)
                done = await asyncio.to_thread(invoke, *command)
                assert done.exit_code == (0 if name in OF_ANOTHER_KIND else 2), done.output
                said = " ".join(done.stderr.split())
                assert ("zeros are stored in its place" in said) == (name in files), said
                assert str(SECRET) not in said
        with collected.database.transaction() as tx:
            assert batches.get(tx, 0).reports == len(files) + 2
        collected.close()
        await collected.finish()
        found = result(collected.database, 0)
        assert found is not None
        assert found.sum.tolist() == [2, 4, 6, 8]


@pytest.mark.parametrize(
    ("status", "check"),
    [(404, "parameters"), (409, "id"), (410, "closed"), (422, "signature"), (500, "patience")],
)
async def test_error_names_the_parameters_of_a_report_that_may_be_stored(
    databases: Databases,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    status: int,
    check: str,
) -> None:
    """A collection that lies stores the report, answers so, and then offers others."""

    class Liar(service.Service):
        async def report(self, request: Request) -> NoReturn:
            await super().report(request)
            raise Problem(status, check, "report under the next parameters")

    monkeypatch.setattr(service, "Service", Liar)
    changes: dict[str, Any] = {"security": "semi-honest", "min_clients": 4}
    with parties(session=bind(b"one", b""), **changes) as made:
        collected, digest = Collected(databases.open(), made, endorsed=True), made.params.digest
        async with served(collected) as url:
            with pytest.raises((LinkError, RemoteProtocolError)) as caught:
                await send(made, url, 1)
            assert caught.value.check == check  # type: ignore[union-attr]
            assert str(caught.value).endswith(f"no other parameters than digest={digest.hex()}")
            np.save(tmp_path / "v.npy", VECTOR)
            done = await asyncio.to_thread(invoke, *command_of(made, url, tmp_path / "v.npy"))
            assert done.exit_code == 2
            assert " ".join(done.stderr.split()).endswith(f" --parameters {digest.hex()}")
            # nor is a client that tries again sent on to others
            with pytest.raises(LinkError) as caught:
                await get_offer(url, policy=policy_of(made), digest=b"x" * 32, patience=0.3)
            assert str(caught.value).endswith(f"digest={b'x'.hex() * 32}")
        with collected.database.transaction() as tx:
            assert batches.get(tx, 0).reports == 2


def test_interrupted_command_names_the_parameters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A collection that never answers makes its clients' users end the command."""
    with parties() as made:

        async def offered(*_: object, **__: object) -> Offer:
            return Offer(made.params, (), b"")

        async def hanging(*_: object, **__: object) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()

        monkeypatch.setattr("secagg.http.get_offer", offered)
        monkeypatch.setattr("secagg.http.send_report", hanging)
        np.save(tmp_path / "v.npy", VECTOR)
        done = invoke(*command_of(made, "http://localhost", tmp_path / "v.npy"))
        assert done.exit_code == 130
        assert f"--parameters {made.params.digest.hex()}" in " ".join(done.stderr.split())
