"""Errors, bytes and costs of noised means, for docs/differential-privacy.md.

``python -m benches.privacy`` simulates rounds of real clients and a real server, a vector of a
clipped norm for each client, and compares the sums with a trusted server that adds exact
Gaussian noise to the exact sum. Each row is a single round; bytes and errors need no quiet
machine. The costs are ratios in one process with one thread.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from benches.speed.clock import timed
from secagg import set_threads
from secagg.encoding import Ring
from secagg.oneshot.noise import adder
from secagg.privacy import Plan, plan
from secagg.privacy.gaussian import sigma_of
from secagg.protocol import ClientPolicy
from secagg.protocol.noise import Noise, Share
from secagg.simulate import simulate_round

CLIENTS, LENGTH, COLLUDERS = 1000, 100_000, 50
EPSILON, DELTA = 2.0, 1e-6
KINDS = ("equal", "one element", "random", "long")
RUNS = 15

Floats = NDArray[np.float64]


def planned(clients: int, length: int, survivors: float, *, count: bool = False) -> Plan:
    """Return the plan of a mean of vectors with norm 1, by the fraction of survivors."""
    return plan(
        clients,
        length,
        norm=1,
        epsilon=EPSILON,
        delta=DELTA,
        min_survivors=round(survivors * clients),
        colluders=clients * COLLUDERS // CLIENTS,
        count_clipped=count,
    )


@dataclass
class Vectors(Mapping[int, Floats]):
    """Vectors of all clients, computed at the look-up.

    All are the same vector of norm 1 ("equal"), the same with a single element ("one element"),
    or vectors of norm 1 that have nothing in common ("random"). "long" vectors have one
    direction and log-normal norms, half of them above 1.
    """

    kind: str
    clients: int
    length: int

    def __getitem__(self, client: int) -> Floats:
        shared = self.kind in ("equal", "long")
        vector = np.zeros(self.length)
        if self.kind == "one element":
            vector[self.length // 3] = 1
            return vector
        vector[:] = np.random.default_rng(0 if shared else client + 1).normal(size=self.length)
        vector /= np.linalg.norm(vector)
        return vector * self.norm(client)

    def norm(self, client: int) -> float:
        """Return the norm of a client's vector."""
        if self.kind != "long":
            return 1.0
        return float(np.random.default_rng([1, client]).lognormal(0, 0.5))

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.clients))

    def __len__(self) -> int:
        return self.clients


@dataclass(frozen=True)
class Row:
    """Figures of a noised sum.

    `ratio` is the error beside a trusted server's, `formula` the same of the plan. `bias` is
    the error along the exact sum, as a part of the exact sum, and `deviation` the standard
    deviation of this part. `sent` are the bytes of a client in all four exchanges.
    """

    kind: str
    survivors: int
    neighbours: int | None
    bits: int
    vector: int
    sent: int
    ratio: float
    formula: float
    bias: float
    deviation: float
    counted: float | None

    def __str__(self) -> str:
        graph = "complete graph" if self.neighbours is None else f"{self.neighbours} neighbours"
        counted = "" if self.counted is None else f", clipped vectors {self.counted:.0f}"
        return (
            f"{self.kind}, m = {self.survivors}, {graph}: {self.bits} bits, {self.vector:,} of "
            f"{self.sent:,} bytes, error / central {self.ratio:.4f} (formula "
            f"{self.formula:.4f}), bias {self.bias:+.5f} ± {self.deviation:.5f}{counted}"
        )


def measured(
    kind: str, plan: Plan, *, complete: bool = False, threshold: int | None = None
) -> Row:
    """Return the figures of a round in which no client drops out."""
    params = plan.params(
        session=os.urandom(8),
        neighbours=None if complete else "auto",
        threshold=threshold,
        suite="x25519",
    )
    vectors = Vectors(kind, plan.n_clients, plan.length)
    dropout = 1 - plan.min_survivors / plan.n_clients
    policy = ClientPolicy(colluders=plan.colluders, dropout=dropout)
    result = simulate_round(vectors, params, policy=policy)
    exact = np.zeros(plan.length)
    for client in result.survivors:
        vector = vectors[client]
        exact += vector / max(1.0, float(np.linalg.norm(vector)))
    error = result.sum - exact
    central = sigma_of(EPSILON, DELTA)
    size = float(np.linalg.norm(exact))
    return Row(
        kind=kind,
        survivors=params.min_survivors,
        neighbours=params.neighbours,
        bits=params.ring.bits,
        vector=plan.message,
        sent=max(result.bytes_up.values()),
        ratio=float(np.sqrt(np.mean(error**2))) / central,
        formula=plan.factors["total"],
        bias=float(error @ exact) / size**2,
        deviation=plan.factors["total"] * central / size,
        counted=result.clipped_vectors,
    )


def bias_of_clipping(clients: int) -> tuple[int, float]:
    """Return how many "long" vectors are clipped, and the part of their mean that is lost."""
    vectors = Vectors("long", clients, 1)
    norms = np.array([vectors.norm(client) for client in vectors])
    return int((norms > 1).sum()), 1 - float(np.minimum(norms, 1).mean() / norms.mean())


def costs(length: int) -> dict[str, float]:
    """Return a client's seconds for noise and rotation beside one-shot noise, one thread."""
    set_threads(1)
    one = planned(CLIENTS, length, 0.9)
    ring, key, vector = (
        Ring(1 << one.modulus_bits),
        os.urandom(16),
        Vectors("random", 1, length)[0],
    )
    share = Share(int(one.share * 256))
    rotated = one.encoding.of_round(b"", length)
    lanes, noised = ring.zeros(length), ring.zeros(rotated.elements)
    cases: dict[str, Callable[[], object]] = {
        "one-shot noise": lambda: adder(Noise(one.sigma), ring, key, length)(lanes),
        "shares of noise": lambda: share.adder(key, ring)(noised, 0),
        "rotation and rounding": lambda: rotated.encode(vector, ring),
    }
    clocks = {name: timed(call) for name, call in cases.items()}
    runs = [{name: clock() for name, clock in clocks.items()} for _ in range(RUNS)]
    set_threads(None)
    return {name: median(run[name] for run in runs) for name in clocks}


def main(arguments: list[str] | None = None) -> None:
    """Print all figures, or the rows that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row", choices=("mean", "threshold", "clipping", "cost"))
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--length", type=int, default=LENGTH)
    given = parser.parse_args(arguments)
    n, d = given.clients, given.length
    if given.row in (None, "mean"):
        rows = [measured(kind, planned(n, d, 0.9)) for kind in KINDS[:3]]
        print(*rows, f"mean {np.mean([row.ratio for row in rows]):.4f}", sep="\n", flush=True)
    if given.row in (None, "threshold"):
        fewest = round(0.7 * n)
        print("t = m:", measured("equal", planned(n, d, 0.7), complete=True, threshold=fewest))
    if given.row in (None, "clipping"):
        clipped, lost = bias_of_clipping(n)
        print(measured("long", planned(n, d, 0.9, count=True)))
        print(
            f"{clipped} of {n} vectors are clipped; the mean is {lost:.1%} shorter", flush=True
        )
    if given.row in (None, "cost"):
        found = costs(d)
        print(*(f"{name}: {seconds * 1e3:.2f} ms" for name, seconds in found.items()), sep="\n")
        base, *more = found.values()
        print(f"noise and rotation / one-shot noise: {sum(more) / base:.2f}")


if __name__ == "__main__":
    main()
