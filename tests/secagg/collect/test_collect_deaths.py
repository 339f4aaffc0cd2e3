"""Commands of a collection that are killed in earnest, under load and at steps of helpers."""

from __future__ import annotations

import asyncio
import http.client
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cli_processes import MAIN, ROOT, address, process
from collect_parts import Collected, Databases
from oneshot_parties import Parties, parties, registry_for
from secagg import LinkError, RemoteProtocolError
from secagg.collect import Asking, Closer, State, Worker
from secagg.collect.close import result
from secagg.collect.database import unsigned
from secagg.http import HttpHelper
from secagg.http.helper_link import reach_helpers
from secagg.oneshot import OneShotParams
from secagg.oneshot.helper_files import HelperEntry
from secagg.protocol.key_files import registry_to_json
from secagg.session.exchange import Thread
from secagg.testing import make_identity

SUPPORT = ROOT / "tests" / "support"
CLIENTS = range(30)
REGISTRY = registry_to_json({u: make_identity(u).public for u in CLIENTS})


class Senders:
    """Clients that send the same bytes again and again, and note what was acknowledged."""

    def __init__(self, path: str, sent: dict[int, bytes]) -> None:
        self.path, self.sent = path, sent
        self.port, self.up, self.stopping = 0, threading.Event(), False
        self.acknowledged = set[int]()

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Return a context in which four threads send."""
        with ThreadPoolExecutor(4) as threads:
            done = [threads.submit(self._send, list(self.sent)[at::4]) for at in range(4)]
            try:
                yield
            finally:
                self.stopping = True
                self.up.set()
        for one in done:
            one.result()

    def _send(self, clients: list[int]) -> None:
        while not self.stopping:
            self.up.wait()
            for u in clients:
                if self.post(u):
                    self.acknowledged.add(u)

    def post(self, u: int) -> bool:
        """Return whether a client's report was acknowledged."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", self.path, self.sent[u])
            return connection.getresponse().status == 204
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


@pytest.mark.large
@pytest.mark.parametrize("deaths", [[24], pytest.param(range(5, 65), marks=pytest.mark.slow)])
async def test_serve_that_is_killed_under_load_loses_nothing(
    new_database: Callable[[], Databases], tmp_path: Path, deaths: list[int]
) -> None:
    """Before a statement of its database: most are inside a transaction."""
    databases = new_database()
    (tmp_path / "r.json").write_text(REGISTRY)
    with parties(n_clients=len(CLIENTS)) as made:
        collected = Collected(databases.open(), made)
        path = f"/v1/parameters/{made.params.digest.hex()}/reports"
        senders = Senders(path, {u: made.report(u) for u in CLIENTS})
        command = (
            "collect",
            "serve",
            databases.where,
            "--registry",
            tmp_path / "r.json",
            "--port",
        )

        def stored() -> set[int]:
            with collected.database.transaction() as tx:
                rows = tx._fetch("SELECT id FROM secagg_clients", ())
            return {unsigned(int(str(u))) for (u,) in rows}

        with senders.sending():
            for at in deaths:
                killed = process(*command, 0, main=(SUPPORT / "collect_killed.py", at))
                with killed as serving:
                    senders.port = urlsplit(address(serving, "collection")).port or 0
                    senders.up.set()
                    assert serving.wait(60) == -signal.SIGKILL
                    senders.up.clear()
                assert senders.acknowledged <= stored()
        with process(*command, 0) as serving:
            senders.port = urlsplit(address(serving, "collection")).port or 0
            assert all(senders.post(u) for u in CLIENTS), "each client can repeat"
        assert stored() == set(CLIENTS)
        collected.close()
        await collected.finish()
        found = result(collected.database, 0)
        assert found is not None
        assert found.integers.tolist() == made.expected(CLIENTS)
    databases.close()


STEPS = [(step, when) for step in ("check", "reserve", "open") for when in ("before", "after")]


@pytest.mark.large
@pytest.mark.parametrize("deaths", [STEPS[3:4], pytest.param(STEPS, marks=pytest.mark.slow)])
async def test_helper_that_is_killed_goes_on_from_its_journal(
    tmp_path: Path, deaths: list[tuple[str, str]]
) -> None:
    """The collection's process waits for the next process of the helper."""
    (tmp_path / "r.json").write_text(REGISTRY)
    aggregator = make_identity(99)
    more = "--aggregator", aggregator.public.hex(), "--corrupt", 0
    known = "--registry", tmp_path / "r.json"
    made = Parties(tmp_path, 3)  # t = 2 of 3, so all reserve
    made.close()  # the processes open the journals
    journals = [journal.path for journal in made.journals]
    databases = Databases(str(tmp_path / "reports"))
    collected = Collected(databases.open(), made, slices=1)
    collected.report(0, 1, 2)
    collected.close()

    async def finish() -> None:
        """Do what the commands do: try again until the sum is there."""
        asking, known, thread = Asking(reach), registry_for(made.params), Thread()
        worker = Worker(collected.database, asking, known, thread=thread)
        closer = Closer(collected.database, asking, known, thread)
        while collected.state() != State.DONE:
            try:
                await worker.step()
                await closer.step(0)
            except (LinkError, RemoteProtocolError) as error:
                assert error.check in ("helpers", "patience")
        thread.close()

    def reach(params: OneShotParams) -> AbstractAsyncContextManager[list[HttpHelper]]:
        return reach_helpers(
            entries, params, identity=aggregator, authority=None, patience=60.0
        )

    with ExitStack() as stack:

        def start(journal: Path, port: int, *script: object) -> subprocess.Popen[str]:
            main = (SUPPORT / "helper_killed.py", *script) if script else MAIN
            command = "helper", "serve", journal, "--port", port, *more, *known
            return stack.enter_context(process(*command, main=main))

        second = start(journals[1], 0, *deaths[0])
        started = start(journals[0], 0), second, start(journals[2], 0)
        urls = [address(one, "helper") for one in started]
        keys = zip(urls, made.params.helpers, strict=True)
        entries = [HelperEntry(url, made.params.suite, *key) for url, key in keys]
        finished = asyncio.ensure_future(finish())
        for death in (*deaths[1:], ()):
            assert await asyncio.to_thread(second.wait, 60) == -signal.SIGKILL
            second = start(journals[1], urlsplit(urls[1]).port or 0, *death)
        await finished
    found = result(collected.database, 0)
    assert found is not None
    assert found.integers.tolist() == made.expected(range(3))
    databases.close()
