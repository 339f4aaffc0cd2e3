"""Round over TCP between a server and eight client processes, one of which is killed.

To use ``secagg`` in your own system, do the same three things: carry bytes, keep a clock, and
call ``close_round`` when every client has answered or the time is up.

    python examples/over_sockets.py
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import time
from multiprocessing.connection import Client as connect
from multiprocessing.connection import Connection, wait

import numpy as np

import secagg

PARAMS = secagg.RoundParams(
    n_clients=8,
    threshold=5,
    length=1000,
    encoding=secagg.FixedPoint(clip=8.0),
    session=b"over sockets, round 1",
)
PATIENCE = 30.0  # seconds for all clients together to answer in a phase


def run_client(client_id: int, address: tuple[str, int]) -> None:
    """Take part in one round; client 3 dies after it shared its keys, before its input."""
    client = secagg.Client(client_id, PARAMS)
    vector = np.full(PARAMS.length, float(client_id))
    with connect(address) as server:
        server.send_bytes(client_id.to_bytes(8, "little"))
        server.send_bytes(client.answer(b""))
        while client.phase is not secagg.Phase.FINISHED:
            data = server.recv_bytes()
            if client_id == 3 and client.phase is secagg.Phase.MASKED_INPUT:
                os.kill(os.getpid(), signal.SIGKILL)
            server.send_bytes(client.answer(data, vector))


def run_server(listener: socket.socket) -> secagg.RoundResult:
    """Collect messages, close the round and send the answers, until the sum is known."""
    server = secagg.Server(PARAMS)
    peers = accept_all(listener)
    while server.phase is not secagg.Phase.FINISHED:
        collect(server, peers)
        for client_id, data in server.close_round().items():
            try:
                peers[client_id].send_bytes(data)
            except OSError as error:
                print(f"client {client_id} is gone: {error!r}")
    return server.result()


def accept_all(listener: socket.socket) -> dict[int, Connection]:
    """Accept connections until every client has sent its id or the time is up."""
    peers: dict[int, Connection] = {}
    nameless: list[Connection] = []
    missing, deadline = PARAMS.n_clients, time.monotonic() + PATIENCE
    while missing and (ready := wait([listener, *nameless], deadline - time.monotonic())):
        if listener in ready:
            nameless.append(Connection(listener.accept()[0].detach()))
        for peer in set(nameless).intersection(ready):
            nameless.remove(peer)
            missing -= 1
            try:
                peers[int.from_bytes(peer.recv_bytes(), "little")] = peer
            except (EOFError, OSError) as error:
                print(f"a client connected and was gone: {error!r}")
    if missing:
        print(f"going on with {len(peers)} clients: no other client connected")
    return peers


def collect(server: secagg.Server, peers: dict[int, Connection]) -> None:
    """Pass the clients' messages to the server as they come, until the time is up."""
    waiting = {peers[u]: u for u in server.waiting or peers}
    deadline = time.monotonic() + PATIENCE
    while waiting and (ready := wait(waiting, deadline - time.monotonic())):
        for peer in set(waiting).intersection(ready):
            client_id = waiting.pop(peer)
            try:
                server.receive(client_id, peer.recv_bytes())
            except (EOFError, OSError, secagg.RemoteProtocolError) as error:
                print(f"going on without client {client_id}: {error!r}")
    if waiting:
        print(f"going on without clients {sorted(waiting.values())}: their time is up")


def main() -> secagg.RoundResult:
    """Start the clients and run the server in this process."""
    # all clients may connect at once; a shorter queue would drop connections
    with socket.create_server(("127.0.0.1", 0), backlog=PARAMS.n_clients) as listener:
        processes = [
            multiprocessing.Process(
                target=run_client, args=(client_id, listener.getsockname()), daemon=True
            )
            for client_id in range(PARAMS.n_clients)
        ]
        for process in processes:
            process.start()
        result = run_server(listener)
        for process in processes:
            process.join()
    return result


if __name__ == "__main__":
    result = main()
    print(f"survivors {result.survivors}, first element of their sum {result.sum[0]:.3f}")
