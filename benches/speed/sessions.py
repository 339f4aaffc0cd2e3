"""Case of a session: a client's first round and its later ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from statistics import median
from time import thread_time
from unittest.mock import patch

import numpy as np

from benches.plain import CLIP
from benches.speed.clock import Measure
from secagg import Client, FixedPoint, RoundParams
from secagg.session import LocalLink, Session, take_part

ROUNDS = 4
WATCHED = 0


def client(n: int, neighbours: int, length: int, *, later: bool) -> Measure:
    """Return the measure of a client in the first round of a session, or in the later ones.

    The seconds are those of the processor in the client's steps; of three later rounds, the
    median.
    """
    params = RoundParams(
        n_clients=n,
        threshold=-(-2 * (neighbours + 1) // 3),
        length=length,
        encoding=FixedPoint(CLIP),
        neighbours=neighbours,
        suite="x25519",  # as in the figures of earlier releases
    )

    def run() -> float:
        rounds = asyncio.run(_seconds(params))
        return median(rounds[1:]) if later else rounds[0]

    return run


async def _seconds(params: RoundParams) -> list[float]:
    """Run a session of all clients in this process; return a client's seconds in each round."""
    vector = np.random.default_rng(0).uniform(-CLIP, CLIP, params.length)
    seconds: list[float] = []
    with patch.object(Client, "answer", _counted(Client.answer, seconds)):
        async with Session(range(params.n_clients)) as session:
            members = [
                asyncio.create_task(take_part(LocalLink(session, u), u, lambda *_: vector))
                for u in range(params.n_clients)
            ]
            for _ in range(ROUNDS):
                seconds.append(0.0)
                await session.round(params)
        await asyncio.gather(*members)
    return seconds


def _counted(answer: Callable[..., bytes], seconds: list[float]) -> Callable[..., bytes]:
    """Return a method that adds the watched client's time to the last of `seconds`."""

    def counted(self: Client, *data: object) -> bytes:
        start = thread_time()
        answered = answer(self, *data)
        if self.client_id == WATCHED:
            seconds[-1] += thread_time() - start
        return answered

    return counted
