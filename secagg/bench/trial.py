"""A round on random vectors, with its sum checked: what ``secagg simulate`` runs."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from secagg._check import check_integer
from secagg.encoding import FixedPoint
from secagg.errors import ParameterError, SecAggError
from secagg.protocol import ClientPolicy, Phase, RoundParams
from secagg.simulate import SimulatedRound, simulate_round

__all__ = ["RandomVectors", "dropouts", "peak_memory", "run"]

_LEAVING = (Phase.ADVERTISE_KEYS, Phase.SHARE_KEYS, Phase.MASKED_INPUT, Phase.UNMASKING)


class RandomVectors(Mapping[int, NDArray[np.float64]]):
    """Vectors made when they are looked up, the same each time, none of them kept.

    Parameters
    ----------
    clients, length : int
    clip : float
        Elements are uniform in [−clip, clip].
    seed : int
    """

    def __init__(self, clients: int, length: int, clip: float, seed: int) -> None:
        self._clients, self._length, self._clip, self._seed = clients, length, clip, seed

    def __getitem__(self, u: int) -> NDArray[np.float64]:
        """Make client u's vector."""
        if not 0 <= u < self._clients:
            raise KeyError(u)
        rng = np.random.default_rng([self._seed, u])
        return rng.uniform(-self._clip, self._clip, self._length)

    def __iter__(self) -> Iterator[int]:
        """Yield the ids."""
        return iter(range(self._clients))

    def __len__(self) -> int:
        """Return the number of clients."""
        return self._clients


def dropouts(clients: int, fraction: float, seed: int) -> dict[int, str]:
    """Draw which clients vanish, the whole part of the fraction, and before which message."""
    rng = np.random.default_rng([seed, clients])
    leaving = rng.permutation(clients)[: int(fraction * clients)]
    return {int(u): _LEAVING[rng.integers(len(_LEAVING))] for u in leaving}


def run(
    params: RoundParams,
    policy: ClientPolicy,
    dropout: float,
    seed: int,
    progress: Callable[[str, int, int], None],
) -> SimulatedRound:
    """Run a round on random vectors and add up the survivors' in plain integers as well.

    Parameters
    ----------
    params : RoundParams
        Unweighted, with a FixedPoint that rounds to nearest.
    policy : ClientPolicy
        Every client's.
    dropout : float
        The fraction of the clients that vanishes, each in a random phase.
    seed : int
        0 ≤ seed < 2^32.
    progress : callable
        As of ``simulate_round``.

    Raises
    ------
    ParameterError
        A value is out of range, or the policy refuses the parameters.
    TooFewSurvivors
        Too many dropped out.
    SecAggError
        The sum is not exact, which is a defect of this library.
    """
    check_integer("seed", seed, 0, (1 << 32) - 1)
    encoding = params.encoding
    if not isinstance(encoding, FixedPoint):
        raise ParameterError(f"encoding must be a FixedPoint, not {encoding!r}")
    vectors = RandomVectors(params.n_clients, params.length, encoding.clip, seed)
    result = simulate_round(
        vectors,
        params,
        dropouts=dropouts(params.n_clients, dropout, seed),
        policy=policy,
        progress=progress,
    )
    expected = np.zeros(params.length, dtype=np.int64)
    for u in result.survivors:
        expected += encoding.encode_integers(vectors[u])[0]
    if not np.array_equal(expected, result.integers):
        raise SecAggError("the sum is not exact: please report this, with the command")
    return result


def peak_memory() -> int:
    """Return the most bytes of memory that this process has held so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
