"""Updates and weights of the nodes, by the number of their partition."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from secagg.privacy import Plan, plan


def weight(partition: int) -> int:
    return 10 + partition


def update(partition: int, number: int, length: int) -> np.ndarray:
    """Update of a node in a round, in [−0.5, 0.5)."""
    return np.random.default_rng([partition, number]).uniform(-0.5, 0.5, length)


def mean(partitions: Iterable[int], number: int, length: int) -> np.ndarray:
    """Weighted mean of the updates of a round."""
    nodes = list(partitions)
    total = sum(weight(node) * update(node, number, length) for node in nodes)
    return total / sum(map(weight, nodes))


def planned(length: int, epsilon: float) -> Plan:
    """Plan of one sum of five nodes, whose updates all fit into the norm."""
    return plan(5, length, norm=0.5 * length**0.5, epsilon=epsilon, delta=1e-5)


def mark(folder: str, name: str) -> None:
    """Leave a mark for the test."""
    Path(folder, name).touch()
