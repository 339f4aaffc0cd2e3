"""The end of `secagg collect serve`: a report under way is answered after its commit."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from cli_processes import address, process
from collect_parts import Collected, Databases
from oneshot_parties import parties
from secagg.collect import batches

PAGE = "https://app.example"


@pytest.mark.large
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_report_under_way_is_answered_after_its_commit(
    new_database: Callable[[], Databases], number: signal.Signals
) -> None:
    databases = new_database()
    more = ("--port", 0, "--operator-port", 0, "--origin", PAGE)
    serve = ("collect", "serve", databases.where, *more)
    with parties(security="semi-honest") as made:
        collected = Collected(databases.open(), made)
        content = made.report(1)
        head = (
            f"POST /v1/parameters/{made.params.digest.hex()}/reports HTTP/1.1\r\nHost: x\r\n"
            f"Origin: {PAGE}\r\n"
            f"Content-Length: {len(content)}\r\nExpect: 100-continue\r\n\r\n"
        )
        with process(*serve) as serving:
            at = urlsplit(address(serving, "collection"))
            place = str(at.hostname), int(at.port or 0)
            with socket.create_connection(place) as client:
                client.sendall(head.encode())
                assert b" 100 " in client.recv(4096), "the request is under way"
                with collected.database.transaction() as tx:
                    tx.run("UPDATE secagg_batches SET reports = reports")
                    client.sendall(content)
                    serving.send_signal(number)
                    with suppress(ConnectionError):
                        while True:
                            socket.create_connection(place).close()
                    client.setblocking(False)
                    with pytest.raises(BlockingIOError):
                        client.recv(4096)
                client.setblocking(True)
                answer = client.recv(4096)
                assert b" 204 " in answer
                assert PAGE.encode() in answer
            assert serving.wait(60) == 0
        with collected.database.transaction() as tx:
            assert batches.get(tx, 0).reports == 1
    databases.close()
