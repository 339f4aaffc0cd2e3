"""Encrypted sum: the aggregator reads nothing, the key holder sees only the sum.

Key holder, aggregator and six clients are separate processes. One client dies before it sends.
"""

import os
import signal
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection

import numpy as np

import secagg

CLIENTS = 6
PACKING = secagg.Packing(
    encoding=secagg.FixedPoint(clip=8.0), length=1000, summands=CLIENTS, session=b"round 1"
)


def client(number: int, public: bytes, to_aggregator: Connection) -> None:
    """Encrypt one vector and send it."""
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    key = secagg.paillier.PublicKey.from_bytes(public)
    vector = np.full(PACKING.length, number / 4)
    to_aggregator.send_bytes(key.encrypt_vector(vector, PACKING).to_bytes())


def aggregate(public: bytes, from_clients: list[Connection], to_holder: Connection) -> None:
    """Add the encrypted vectors and send their sum to the key holder."""
    key = secagg.paillier.PublicKey.from_bytes(public)
    vectors = []
    for connection in from_clients:
        try:
            vectors.append(key.load_vector(connection.recv_bytes(), PACKING))
        except (EOFError, secagg.RemoteProtocolError):
            continue  # dead or invalid: leave this client out of the sum
    if vectors:
        to_holder.send_bytes(sum(vectors).to_bytes())


def main() -> None:
    """Start all other processes, and be the key holder."""
    key = secagg.paillier.generate_keypair()
    public = key.public_key.to_bytes()
    ends = [Pipe(duplex=False) for _ in range(CLIENTS)]
    from_aggregator, to_holder = Pipe(duplex=False)
    processes = [
        Process(target=client, args=(number, public, ends[number][1]))
        for number in range(CLIENTS)
    ]
    processes.append(Process(target=aggregate, args=(public, [r for r, _ in ends], to_holder)))
    for process in processes[:CLIENTS]:
        process.start()
    for _, sending in ends:
        sending.close()  # so that a client's death closes its connection
    processes[-1].start()
    to_holder.close()
    total = key.public_key.load_vector(from_aggregator.recv_bytes(), PACKING, summands=None)
    if total.added < 3:
        raise SystemExit("a sum of so few would give them away")
    result = key.decrypt_vector(total)
    for process in processes:
        process.join()
    print(f"sum of {result.summands} vectors; its first element is {result.sum[0]:.3f}")


if __name__ == "__main__":
    main()
