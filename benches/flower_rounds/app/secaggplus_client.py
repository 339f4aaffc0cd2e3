"""Nodes of Flower's SecAgg+, on its legacy API."""

from __future__ import annotations

from flwr.app import Context
from flwr.client import Client, NumPyClient
from flwr.client.mod import secaggplus_mod
from flwr.clientapp import ClientApp
from flwr.common import NDArrays, Scalar

from .work import trained


class Node(NumPyClient):
    """Client with the local work of all variants."""

    def __init__(self, context: Context) -> None:
        self._config = context.node_config

    def fit(
        self, parameters: NDArrays, config: dict[str, Scalar]
    ) -> tuple[NDArrays, int, dict[str, Scalar]]:
        """Return the model after training, and the weight."""
        number = int(config["server-round"])
        model, weight = trained(parameters[0], number, self._config)
        return [model], weight, {}


def client_fn(context: Context) -> Client:
    """Return the client of a node."""
    return Node(context).to_client()


app = ClientApp(client_fn, mods=[secaggplus_mod])
