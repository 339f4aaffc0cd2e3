"""Cases of Flower: its secret sharing, its masks, and a whole server of its SecAgg+."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
from flwr.app import Context, Message, RecordDict, UserConfig
from flwr.common.secure_aggregation.crypto.shamir import create_shares
from flwr.common.secure_aggregation.ndarrays_arithmetic import (
    parameters_addition,
    parameters_subtraction,
)
from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen

from benches.flower_rounds.app import secaggplus_client, secaggplus_server
from benches.speed.clock import Measure, timed
from secagg.flower.testing import LocalGrid

MODULUS = 1 << 32


def shares_of_bytes(n: int, threshold: int) -> Measure:
    """Return the measure of sharing a secret of 32 bytes."""
    secret = secrets.token_bytes(32)
    return timed(lambda: create_shares(secret, threshold, n))


def masks(keys: int, length: int, bits: int) -> Measure:
    """Return the measure of adding k masks modulo 2^32, in 64-bit words as Flower does."""
    del bits  # Flower's words have 64
    seeds = [secrets.token_bytes(32) for _ in range(keys)]

    def run() -> None:
        total = [np.zeros(length, np.int64)]
        for j, seed in enumerate(seeds):
            mask = pseudo_rand_gen(seed, MODULUS, [(length,)])
            total = (parameters_subtraction if j % 2 else parameters_addition)(total, mask)

    return timed(run)


class _Timed(LocalGrid):
    """Grid that adds up the seconds of the nodes and of their messages."""

    seconds = 0.0

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Send messages and return the replies, which are all there at once."""
        start = perf_counter()
        replies = list(super().send_and_receive(messages, timeout=timeout))
        self.seconds += perf_counter() - start
        return replies


def server(n: int, threshold: int, length: int, dropped: int) -> Measure:
    """Return the measure of Flower's server in a round on the complete graph.

    The seconds are those of the server's app without those of the nodes. Its threshold is
    ⌊n / 2⌋ + 1, the least; Flower rebuilds secrets from all shares that it has.
    """
    del threshold
    nodes = range(1, n + 1)

    def run() -> float:
        with TemporaryDirectory(prefix="secagg-speed-") as folder:
            logging.getLogger("flwr").setLevel(logging.ERROR)  # it logs every phase
            own: dict[int, UserConfig] = {
                u: {"partition-id": u - 1, "secagg-state-dir": folder} for u in nodes
            }
            grid = _Timed(secaggplus_client.app, own)
            for u in nodes[:dropped]:
                grid.drop(u, after=2)  # keys and shares
            config: UserConfig = {"nodes": n, "length": length, "rounds": 1, "folder": folder}
            config |= {"poll": 0.01, "timeout": 600.0}
            start = perf_counter()
            secaggplus_server.app(grid, Context(1, 1, {}, RecordDict(), config))
            seconds = perf_counter() - start - grid.seconds
            model = np.load(Path(folder) / "model-1.npy")
        assert model.any(), "Flower's round was halted"
        return seconds

    return run
