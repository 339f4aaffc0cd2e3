"""Clients of which each message is sent by a new process, as on platforms that start one.

A client is suspended after each message and restored for the next. Its state may be stored
anywhere, because it is encrypted. The key is in a vault, a file of the client's machine. An
older state does not open any more: it could send a second vector under the same masks.

    python examples/suspended_clients.py
"""

from __future__ import annotations

import multiprocessing
import tempfile
from pathlib import Path

import numpy as np

import secagg

PARAMS = secagg.RoundParams(
    n_clients=5,
    threshold=3,
    length=1000,
    encoding=secagg.FixedPoint(clip=8.0),
    session=b"suspended, round 1",
)


def take_turn(folder: Path, u: int, message: bytes) -> bytes | str:
    """Answer one message of the server as client `u`, in a process of its own."""
    client = secagg.Client(u, PARAMS)
    vault = secagg.Vault(folder / f"{u}.key")
    state = folder / f"{u}.state"
    try:
        if state.exists():
            client.restore(state.read_bytes(), vault)
    except secagg.VaultError as error:
        return error.check  # this client drops out of the round
    answer = client.answer(message, np.full(PARAMS.length, float(u)))
    if client.phase is not secagg.Phase.FINISHED:
        state.write_bytes(client.suspend(vault))
    return answer  # is sent when the new key is on the disk


def main(folder: Path) -> None:
    """Run the server, and a new process for each message of a client."""
    server = secagg.Server(PARAMS)
    inbox = dict.fromkeys(range(PARAMS.n_clients), b"")
    older = b""
    with multiprocessing.Pool(2, maxtasksperchild=1) as pool:
        while server.phase is not secagg.Phase.FINISHED:
            masking = server.phase is secagg.Phase.MASKED_INPUT
            if masking:
                older = (folder / "1.state").read_bytes()
            turns = [(folder, u, message) for u, message in inbox.items()]
            for (_, u, _), answer in zip(turns, pool.starmap(take_turn, turns, 1), strict=True):
                assert isinstance(answer, bytes)
                server.receive(u, answer)
            if masking:  # somebody puts the older state of client 1 back
                latest = (folder / "1.state").read_bytes()
                (folder / "1.state").write_bytes(older)
                print("older state of client 1:", pool.apply(take_turn, (folder, 1, inbox[1])))
                (folder / "1.state").write_bytes(latest)
            inbox = server.close_round()
    result = server.result()
    print(f"survivors {result.survivors}, first element of their sum {result.sum[0]:.3f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary))
