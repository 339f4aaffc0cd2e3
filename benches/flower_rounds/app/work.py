"""Local work of the nodes, the same under every variant, and the parameters of the sums."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

CLIP, MAX_WEIGHT = 8.0, 1000
"""Defaults of Flower's SecAgg+, which `SecAgg` gets, too."""
EXAMPLES, SCALE = "examples", "scale"
"""Keys of a node's weight, and of a factor of its updates, in the configurations of faults."""

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]


def weight(partition: int) -> int:
    """Return the number of examples of a node."""
    return 10 + partition


def drawn(partition: int, number: int, length: int) -> F64:
    """Return a node's update in a round, in [−0.5, 0.5)."""
    return np.random.default_rng([partition, number]).uniform(-0.5, 0.5, length)


def trained(model: F32, number: int, config: Mapping[str, object]) -> tuple[F32, int]:
    """Return the model after a node's training in a round, and the node's weight.

    Parameters
    ----------
    model : ndarray of float32, shape (d,)
    number : int
        Number of the round, from 1.
    config : mapping
        Configuration of the node.
    """
    partition = int(str(config["partition-id"]))
    update = float(str(config.get(SCALE, 1))) * drawn(partition, number, model.size)
    return model + update.astype(np.float32), int(str(config.get(EXAMPLES, weight(partition))))


def mean(partitions: Iterable[int], number: int, length: int) -> F64:
    """Return the weighted mean of the updates of some nodes in a round."""
    nodes = list(partitions)
    total = sum(weight(node) * drawn(node, number, length) for node in nodes)
    return np.asarray(total / sum(map(weight, nodes)))
