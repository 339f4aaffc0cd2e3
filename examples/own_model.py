"""Logistic regression of 20 processes over TCP, of which one is killed and one is late."""

import signal
import time
from contextlib import suppress
from dataclasses import replace
from multiprocessing import Process, connection

import numpy as np

import secagg

model, SCHEMA = secagg.flatten({"coef": np.zeros(8), "intercept": np.zeros(1)})
# RoundParams.to_bytes will let the server send these, and each client judge them
PARAMS = secagg.RoundParams(
    n_clients=20, threshold=14, length=9, encoding=secagg.FixedPoint(8.0), max_weight=100
)


def examples_of(u: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a client's own inputs, of which the last element is 1, and their labels."""
    rng = np.random.default_rng(u)
    inputs = rng.normal([0] * 8 + [1], [1] * 8 + [0], (20 + 4 * u, 9))
    return inputs, inputs @ np.arange(-4, 5) + rng.logistic(size=len(inputs)) > 0


def run_client(u: int, address: tuple[str, int]) -> None:
    """Send the masked gradient of every model that the server sends."""
    server, (inputs, labels) = connection.Client(address), examples_of(u)
    for number in range(20):
        wrong = labels - 1 / (1 + np.exp(-inputs @ np.frombuffer(server.recv_bytes())))
        client = secagg.Client(u, replace(PARAMS, session=SCHEMA.digest + bytes([number])))
        server.send_bytes(client.answer(b""))
        while client.phase is not secagg.Phase.FINISHED:
            request = server.recv_bytes()
            if (u, number, client.phase) == (3, 2, "masked_input"):
                signal.raise_signal(signal.SIGKILL)
            if (u, number, client.phase) == (7, 4, "masked_input"):
                break  # an answer would be too late: wait for the next round
            server.send_bytes(client.answer(request, wrong @ inputs / len(wrong), len(wrong)))


if __name__ == "__main__":
    listener, peers = connection.Listener(("127.0.0.1", 0)), {}
    for u in range(20):
        Process(target=run_client, args=(u, listener.address), daemon=True).start()
        peers[u] = listener.accept()
    inputs, labels = map(np.concatenate, zip(*map(examples_of, range(20)), strict=True))
    for number in range(20):
        server = secagg.Server(replace(PARAMS, session=SCHEMA.digest + bytes([number])))
        requests, deadline = dict.fromkeys(peers, model.tobytes()), time.monotonic() + 3
        while requests:
            for u, data in requests.items():
                with suppress(OSError):  # the client is gone
                    peers[u].send_bytes(data)
            for u in requests:
                with suppress(EOFError, OSError, secagg.RemoteProtocolError):
                    if peers[u].poll(max(0, deadline - time.monotonic())):
                        server.receive(u, peers[u].recv_bytes())
            requests, deadline = server.close_round(), time.monotonic() + 3
        model = model + 4 * server.result().mean
        print(server.result(), f"accuracy {np.mean((inputs @ model > 0) == labels):.3f}")
