"""Logistic regression of 20 processes over TCP, of which one is killed and one is late."""

import signal
import time
from contextlib import suppress
from dataclasses import replace
from multiprocessing import Process, connection

import numpy as np

import secagg

model, SCHEMA = secagg.flatten({"coef": np.zeros(8), "intercept": np.zeros(1)})
FIXED = secagg.FixedPoint(8)
PARAMS = secagg.RoundParams(n_clients=20, threshold=14, length=9, encoding=FIXED, max_weight=99)


# a client's own inputs, of which the last element is 1, and their noisy labels
def _examples_of(u: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(u).normal([0] * 8 + [1, 0], [1] * 8 + [0, 2], (20 + 4 * u, 10))
    return x[:, :9], x @ [*range(-4, 5), 1] > 0


# the gradient of each model that the server sends, if the round satisfies the client's policy
def _run_client(u: int, address: tuple[str, int]) -> None:
    server, (inputs, labels) = connection.Client(address), _examples_of(u)
    while message := server.recv_bytes():
        if message.startswith(b"round"):  # then the round's parameters, and the model
            client = secagg.Client(u, secagg.RoundParams.from_bytes(message[5:-72]))
            wrong = labels - 1 / (1 + np.exp(-inputs @ np.frombuffer(message[-72:])))
        elif (u, client.params.session[-1]) in ((3, 2), (7, 4)):
            signal.raise_signal(signal.SIGKILL) if u == 3 else time.sleep(12)
            continue  # it is too late for an answer in this round
        server.send_bytes(client.answer(message, wrong @ inputs / len(wrong), len(wrong)))


if __name__ == "__main__":
    listener, peers = connection.Listener(("127.0.0.1", 0), backlog=20), {}
    for u in range(20):
        Process(target=_run_client, args=(u, listener.address), daemon=True).start()
        peers[u] = listener.accept()
    inputs, labels = map(np.concatenate, zip(*map(_examples_of, range(20)), strict=True))
    for number in range(20):
        server = secagg.Server(replace(PARAMS, session=SCHEMA.digest + bytes([number])))
        outgoing = dict.fromkeys(peers, b"round" + server.params.to_bytes() + model.tobytes())
        while outgoing:
            deadline = time.monotonic() + 10
            for u, message in outgoing.items():
                with suppress(OSError):  # the client is gone
                    peers[u].send_bytes(message)
            for u in outgoing:
                with suppress(EOFError, OSError, secagg.RemoteProtocolError):
                    if peers[u].poll(max(0, deadline - time.monotonic())):
                        server.receive(u, peers[u].recv_bytes())
            outgoing = server.close_round()
        model = model + 4 * server.result().mean
        print(server.result(), f"accuracy {np.mean((inputs @ model > 0) == labels):.3f}")
