"""Exchange of messages with nodes: one push, then pulls until all replied or a deadline."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

from flwr.app import Message
from flwr.serverapp import Grid

from secagg.errors import LinkError
from secagg.flower.dropouts import Dropouts
from secagg.flower.fixed_nodes import FixedNodes


class Exchanged(NamedTuple):
    """Replies to the messages of an exchange.

    Attributes
    ----------
    replies : dict of int to Message
        Replies with content, by the id of the node.
    errors : list of Message
        Replies of nodes or of the SuperLink that are errors.
    """

    replies: dict[int, Message]
    errors: list[Message]


def exchange(
    grid: Grid, messages: Mapping[int, Message], lost: Dropouts, timeout: float, poll: float
) -> Exchanged:
    """Send each node its message and return the replies that come in time.

    A reply belongs to the node whose message it answers. If it has another sender it is
    dropped, but for errors, which the SuperLink sends for a node.

    Parameters
    ----------
    grid : Grid
    messages : mapping of int to Message
        Messages by the id of the node.
    lost : Dropouts
        Gets the nodes without a reply that counts.
    timeout : float
        Seconds from the push to the end of the exchange, ≥ 0; there is at least one pull. On
        `FixedNodes` an exchange ends before if no reply can come.
    poll : float
        Seconds between two pulls, > 0.

    Raises
    ------
    LinkError
        The SuperLink took none of the messages ("push").
    """
    ids = list(grid.push_messages(list(messages.values())))
    if len(ids) != len(messages):  # Flower logs the reason: they are too large, for example
        raise LinkError(
            f"the SuperLink took {len(ids)} of {len(messages)} messages; see the log of the "
            "ServerApp, and send a smaller model if they are too large",
            check="push",
        )
    waiting = {pushed: node for pushed, node in zip(ids, messages, strict=True) if pushed}
    for node in sorted(set(messages) - set(waiting.values())):
        lost.add(node, "it is not connected", "without a connection")
    deadline = time.monotonic() + timeout
    found = Exchanged({}, [])
    while waiting:
        for reply in grid.pull_messages(list(waiting)):
            answered = reply.metadata.reply_to_message_id
            if answered in waiting:
                _sort(reply, waiting.pop(answered), found, lost)
        remaining = deadline - time.monotonic()
        lost_all = isinstance(grid, FixedNodes) and not grid.expects(waiting)
        if not waiting or remaining <= 0 or lost_all:
            break
        time.sleep(min(poll, remaining))
    for node in sorted(waiting.values()):
        lost.add(node, "it did not reply in time", "without a reply in time")
    return found


def _sort(reply: Message, node: int, found: Exchanged, lost: Dropouts) -> None:
    """Put a reply to the message of a node where it belongs."""
    if reply.has_error():
        lost.add_error(node, reply.error)
        found.errors.append(reply)
    elif reply.metadata.src_node_id != node:
        sender = reply.metadata.src_node_id
        lost.add(node, f"node {sender} replied for it", "with an invalid reply")
    else:
        found.replies[node] = reply
