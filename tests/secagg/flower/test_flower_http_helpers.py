"""`OneShot` with helpers that are served over HTTP on loopback."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import pytest

pytest.importorskip("httpx")

from flower_helpers import Party
from flower_nodes import NODES, assert_mean, run
from secagg import ParameterError
from secagg.flower import RemoteHelper
from secagg.flower.testing import LocalGrid
from secagg.http import serve_helper
from secagg.testing import make_identity

OPERATOR = make_identity(77)


@contextmanager
def served(party: Party, aggregator: Any = OPERATOR) -> Iterator[list[str]]:
    """Serve the helpers in a thread, whose event loop is not that of a sum; yield the URLs."""
    loop, urls, ready = asyncio.new_event_loop(), list[str](), threading.Event()
    over = asyncio.Event()

    async def serve() -> None:
        async with AsyncExitStack() as stack:
            for journal in party.journals:
                service = serve_helper(
                    journal, aggregator.public, registry=party.registry, port=0
                )
                urls.append(await stack.enter_async_context(service))
            ready.set()
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(60)
        yield urls
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


def remote(party: Party, urls: list[str], identity: Any = OPERATOR) -> list[RemoteHelper]:
    return [
        RemoteHelper(url, journal.public, identity=identity, patience=0.5)
        for url, journal in zip(urls, party.journals, strict=True)
    ]


def test_file_of_helpers_is_that_of_the_commands(party, tmp_path):
    with served(party) as urls:
        entries = [
            {"url": url, "suite": "x25519", "hpke": box.hex(), "ed25519": key.hex()}
            for url, (box, key) in zip(urls, (j.public for j in party.journals), strict=True)
        ]
        path = tmp_path / "helpers.json"
        path.write_text(json.dumps(entries))
        helpers = RemoteHelper.read(path, identity=OPERATOR)
        assert [helper.public for helper in helpers] == [j.public for j in party.journals]
        assert urls[0] in repr(helpers[0])
        # the same file names the helpers that a node trusts
        nodes = party.configs()
        for own in nodes.values():
            own["secagg-helpers"] = str(path)
        grid = LocalGrid(party.app(helpers=None), nodes)
        strategy = party.wrapped(helpers=helpers)
        assert_mean(run(grid, strategy).arrays, NODES)
        assert run(grid, strategy, rounds=2).arrays


def test_without_the_extra_it_is_named():
    """Nodes need the extra flower only."""
    code = (
        "import sys; sys.modules['prometheus_client'] = None\n"
        "import secagg, secagg.flower\n"
        "secagg.flower.OneShotMod()\n"
        "try:\n"
        "    secagg.flower.RemoteHelper('https://h:1', (b'', b''), identity=None)\n"
        "except secagg.MissingExtra as error:\n"
        "    assert error.name == 'prometheus_client' and 'secagg[http]' in str(error)\n"
        "else:\n"
        "    raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603


@pytest.mark.parametrize(
    "wrong", [{"url": "host"}, {"url": "http://192.0.2.1:1"}, {"identity": b"x"}], ids=str
)
def test_arguments_are_validated(journals, wrong, tmp_path):
    given = {"url": "https://host:8444", "public": journals[0].public, "identity": OPERATOR}
    with pytest.raises(ParameterError):
        RemoteHelper(**given | wrong)
    with pytest.raises(ParameterError):
        RemoteHelper.read(tmp_path / "helpers.json", identity=OPERATOR)
