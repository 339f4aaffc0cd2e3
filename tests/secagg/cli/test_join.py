"""`secagg join` at a server whose session has ended, and with a key of another client."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from secagg import Registry, http
from secagg.cli import app
from secagg.cli.files import create_identity
from secagg.session import Session


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Server of alice and bob, whose keys are in the folder; its session is over."""
    registry = Registry(
        {name: create_identity(tmp_path / f"{name}.pem").public for name in ("alice", "bob")}
    )
    np.save(tmp_path / "v.npy", np.ones(2))
    addresses, ended, loop = list[str](), asyncio.Event(), asyncio.new_event_loop()
    ready = threading.Event()

    async def run() -> None:
        session = Session(registry)
        async with http.serve(session, registry, port=0) as at:
            await session.close()
            addresses.append(at.url)
            ready.set()
            await ended.wait()

    server = threading.Thread(target=lambda: loop.run_until_complete(run()))
    server.start()
    assert ready.wait(60)
    yield addresses[0]
    loop.call_soon_threadsafe(ended.set)
    server.join()
    loop.close()


def join(url: str, folder: Path, client: str, key: str, *more: str) -> Result:
    files = ("--identity", folder / f"{key}.pem", "--vector", folder / "v.npy")
    return CliRunner().invoke(
        app, list(map(str, ("join", url, "--client", client, *files, *more)))
    )


def test_client_that_was_in_no_sum_does_not_succeed(url, tmp_path):
    ran = join(url, tmp_path, "alice", "alice", "--json")
    assert ran.exit_code == 2
    assert json.loads(ran.stdout) == {"client": "alice", "sums": 0}
    assert "client alice was in no sum" in ran.stderr


@pytest.mark.parametrize(("client", "key"), [("alice", "bob"), ("eve", "alice")])
def test_refused_client_gets_what_to_check(url, tmp_path, client, key):
    ran = join(url, tmp_path, client, key)
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert f"{key}.pem is the key of --client {client}, and" in ran.stderr
