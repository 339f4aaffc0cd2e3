"""Server of a sum whose clients are nodes: it knows which node is which client."""

from __future__ import annotations

from flwr.app import Message

from secagg import Registry, RoundParams, RoundResult, Server
from secagg.errors import RemoteProtocolError
from secagg.flower.dropouts import Dropouts
from secagg.flower.wire import read_answer
from secagg.protocol import Phase
from secagg.protocol.messages import AdvertiseKeys, decode


class NodeServer:
    """Server of one sum over nodes.

    In the semi-honest variant the id of a client is that of its node. In the active variant the
    node sends the id of its identity with its signed keys, and no other node can have it.

    Parameters
    ----------
    params : RoundParams
    registry : Registry, optional
        See `Server`.
    lost : Dropouts
        Gets the nodes whose replies are invalid.
    """

    def __init__(self, params: RoundParams, registry: Registry | None, lost: Dropouts) -> None:
        self._lost = lost
        self._server = Server(params, registry=registry)
        self._registry = registry
        self._nodes: dict[int, int] = {}  # by client
        self._clients: dict[int, int] = {}  # by node

    @property
    def phase(self) -> Phase:
        """Phase of the server."""
        return self._server.phase

    def receive(self, node: int, reply: Message) -> None:
        """Accept a node's reply; a node whose reply is invalid drops out."""
        large = self.phase is Phase.MASKED_INPUT
        try:
            data = read_answer(reply.content, large=large, sender=node, phase=self.phase)
            client = self._client(node, data)
            self._server.receive(client, data)
        except RemoteProtocolError as error:
            self._lost.add_invalid(node, error)
        else:
            self._nodes[client], self._clients[node] = node, client

    def close_round(self) -> dict[int, bytes]:
        """Close the phase; return the answers by node. See `Server.close_round`."""
        answers = self._server.close_round()
        return {self._nodes[client]: data for client, data in answers.items()}

    def result(self) -> RoundResult:
        """Return the sum; see `Server.result`."""
        return self._server.result()

    def _client(self, node: int, data: bytes) -> int:
        """Return the id of a node's client; in the active variant its first message has it."""
        if self._registry is None or node in self._clients:
            return self._clients.get(node, node)
        params = self._server.params
        client = decode(data, AdvertiseKeys, params, sender=node, phase=self.phase).sender
        if client not in self._registry:
            raise self._violation(node, "unknown client", "its identity is not registered")
        if client in self._nodes:
            why = f"node {self._nodes[client]} has the same identity; make one for each node"
            raise self._violation(node, "duplicate identity", why)
        return client

    def _violation(self, node: int, check: str, why: str) -> RemoteProtocolError:
        return RemoteProtocolError(why, sender=node, phase=self.phase, check=check)
