"""Secure aggregation for Flower: a mod for the nodes and a wrapper for the strategy.

The mod masks the node's update. The wrapper of an averaging strategy sums the masked updates of
a round. The strategy sees one reply with the mean in place of the nodes' replies.

- `SecAggMod` and `SecAgg` take four exchanges. A new process answers each message to a node.
  So between two messages the client is suspended in the node's Context, under a one-time key in
  the node's folder.
- `OneShotMod` and `OneShot` take one exchange. Helpers, which the nodes trust, open the sum.

docs/flower-messages.md specifies the messages, docs/flower.md the checks of a node.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from secagg._lazily import lazily
from secagg.errors import MissingExtra

if TYPE_CHECKING:
    from secagg.flower.grid import SecureGrid
    from secagg.flower.helpers import RemoteHelper
    from secagg.flower.mod import SecAggMod
    from secagg.flower.one_shot import OneShot
    from secagg.flower.one_shot_mod import OneShotMod
    from secagg.flower.strategy import SecAgg

__all__ = ["OneShot", "OneShotMod", "RemoteHelper", "SecAgg", "SecAggMod", "SecureGrid"]

if find_spec("flwr") is None:
    raise MissingExtra(
        "secagg.flower needs flwr, which is not installed: pip install 'secagg[flower]'",
        name="flwr",
    )

if not TYPE_CHECKING:  # a node's process starts for each message and imports its mod alone
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "grid": ("SecureGrid",),
            "helpers": ("RemoteHelper",),
            "mod": ("SecAggMod",),
            "one_shot": ("OneShot",),
            "one_shot_mod": ("OneShotMod",),
            "strategy": ("SecAgg",),
        },
    )
