"""Grid that has all nodes from the beginning, and knows which replies are lost."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from secagg.errors import ParameterError


class FixedNodes(Grid):
    """Grid in one process: no node joins later, and a reply is known to come or not."""

    @abstractmethod
    def expects(self, message_ids: Iterable[str]) -> bool:
        """Return True if a reply to any of these messages has still to be pulled."""


def check_nodes(grid: FixedNodes, strategy: Strategy) -> None:
    """Raise `ParameterError` if a strategy would wait forever for more nodes."""
    nodes = len(list(grid.get_node_ids()))
    found = {
        name: getattr(strategy, name, 0)
        for name in ("min_available_nodes", "min_train_nodes", "min_evaluate_nodes")
    }
    wanted = {name: least for name, least in found.items() if least > nodes}
    if wanted:
        shown = " and ".join(f"{name}={least}" for name, least in wanted.items())
        raise ParameterError(
            f"the grid has {nodes} nodes, and no more can join it, but the strategy has "
            f"{shown}; give LocalGrid as many nodes, or lower what the strategy waits for"
        )
