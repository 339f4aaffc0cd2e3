"""Server that is killed in the middle of a round, and a second server that resumes the round.

In addition to ``over_sockets``, the server has a journal. It acknowledges a message only when
``receive`` has returned. A client without an acknowledgement sends its message again, to the
next server. ``server.outbox`` has the messages that the clients may not have received.

    python examples/resumable_server.py
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

import secagg

PARAMS = secagg.RoundParams(
    n_clients=5,
    threshold=3,
    length=1000,
    encoding=secagg.FixedPoint(clip=8.0),
    session=b"resumable, round 1",
)


def run_server(path: Path, network: Connection, dies_after: int | None) -> None:
    """Resume the round in the journal, or start one; die after `dies_after` messages."""
    use = secagg.Journal.open if path.exists() else secagg.Journal.create
    with use(path, PARAMS) as journal:
        server = secagg.Server.resume(journal)
        network.send(server.outbox)
        while server.phase is not secagg.Phase.FINISHED:
            client_id, message = network.recv()
            if message is None:  # every client has answered, or the time is up
                network.send(server.close_round())
                continue
            server.receive(client_id, message)
            dies_after = None if dies_after is None else dies_after - 1
            if dies_after == 0:
                os.kill(os.getpid(), signal.SIGKILL)  # accepted but not acknowledged
            network.send("accepted")
        result = server.result()
        network.send((result.survivors, float(result.sum[0])))


class ServerProcess:
    """Server in its own process, and the clients' end of the connection to it."""

    def __init__(self, path: Path, dies_after: int | None = None) -> None:
        self.network, theirs = multiprocessing.Pipe()
        arguments = (path, theirs, dies_after)
        self.process = multiprocessing.Process(target=run_server, args=arguments, daemon=True)
        self.process.start()
        theirs.close()  # so that the server's death closes the connection
        self.outbox = self.network.recv()


def main(path: Path, dies_after: int = 12) -> None:
    """Run the clients and the network; start a second server when the first dies.

    The first server dies after `dies_after` messages. The twelfth is the second masked input.
    """
    clients = {u: secagg.Client(u, PARAMS) for u in range(PARAMS.n_clients)}
    vectors = {u: np.full(PARAMS.length, float(u)) for u in clients}
    server = ServerProcess(path, dies_after)
    inbox = dict.fromkeys(clients, b"")
    while inbox:
        for u, data in inbox.items():
            message = clients[u].answer(data, vectors[u])
            server.network.send((u, message))
            try:
                server.network.recv()
            except (EOFError, OSError):
                print(f"the server died; client {u} got no answer and sends again")
                server.process.join()
                server = ServerProcess(path)
                assert server.outbox.get(u, b"") == data  # empty before the first close
                server.network.send((u, message))
                server.network.recv()
        server.network.send((0, None))
        inbox = server.network.recv()
    survivors, first = server.network.recv()
    print(f"survivors {survivors}, first element of their sum {first:.3f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder) / "round-1.journal")
