"""Logistic regression of 20 processes over HTTP, of which one dies and one is late."""

import asyncio
from multiprocessing import Process

import numpy as np

from secagg import FixedPoint, Identity, Registry, RoundParams, http, session

# real clients draw their identities themselves, and give away the public keys only
KEYS = Registry({u: Identity(bytes([u]) * 32).public for u in range(20)})
ROUND = RoundParams(n_clients=20, threshold=14, length=9, max_weight=99, encoding=FixedPoint(8))


# a client's own inputs, of which the last element is 1, times their noisy labels 1 or -1
def _examples_of(u: int) -> np.ndarray:
    x = np.random.default_rng(u).normal([0] * 8 + [1, 0], [1] * 8 + [0, 2], (20 + 4 * u, 10))
    return np.asarray(x[:, :9] * np.sign(x @ [*range(-4, 5), 1])[:, None])


# the gradient of each model that the server sends, if the round satisfies the client's policy
def _run_client(u: int, url: str) -> None:
    async def gradient(message: bytes, _: object) -> tuple[np.ndarray, int]:
        # process 2 ends in round 2, without a word; client 4 answers too late in round 4
        exit() if u == message[0] == 2 else await asyncio.sleep(12 * (u == message[0] == 4))
        z, model = _examples_of(u), np.frombuffer(message[1:])
        return (z / (1 + np.exp(z @ model))[:, None]).mean(0), len(z)

    asyncio.run(http.join(url, u, gradient, identity=Identity(bytes([u]) * 32)))


async def _main(w: np.ndarray) -> None:
    async with http.serve(sums := session.Session(KEYS, deadlines=10), KEYS, port=0) as at:
        for u in KEYS:
            Process(target=_run_client, args=(u, at.url), daemon=True).start()
        for i in range(20):
            w = w + 4 * (result := await sums.round(ROUND, bytes([i]) + w.tobytes())).mean
            print(result, np.mean(np.vstack([*map(_examples_of, range(20))]) @ w > 0).round(3))


if __name__ == "__main__":
    asyncio.run(_main(np.zeros(9)))
