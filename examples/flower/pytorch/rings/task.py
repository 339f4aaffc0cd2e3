"""Network and data: points on two rings around the origin, drawn by each node for itself."""

from __future__ import annotations

import torch
from torch import Tensor, nn

torch.set_num_threads(1)  # many nodes share a machine when they are simulated


def new_net() -> nn.Sequential:
    """Return the network that all nodes begin with."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))


def load_data(seed: int) -> tuple[Tensor, Tensor]:
    """Return 60 to 99 points, shape (n, 2), and the ring of each, 0 or 1."""
    draw = torch.Generator().manual_seed(seed)
    n = 60 + seed % 40
    ring = torch.randint(2, (n,), generator=draw)
    angle = torch.rand(n, generator=draw) * 6.28
    radius = 1 + ring + 0.2 * torch.randn(n, generator=draw)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1), ring


def train(net: nn.Sequential, points: Tensor, ring: Tensor) -> None:
    """Train the network on a node's points."""
    adam = torch.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(40):
        adam.zero_grad()
        nn.functional.cross_entropy(net(points), ring).backward()
        adam.step()


def accuracy(net: nn.Sequential, points: Tensor, ring: Tensor) -> float:
    """Return the part of the points whose ring the network finds."""
    return float((net(points).argmax(dim=1) == ring).float().mean())
