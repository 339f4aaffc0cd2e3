"""Message and Context as the application of a node sees them.

All clients of a sum agree on all data that decide a vector. The server can send each node
another value for the rest of a message. An application that read the rest would let the server
single a node out. So a new Message and a new Context have only agreed data and the node's own.
"""

from __future__ import annotations

from flwr.app import DEFAULT_TTL, Context, Message, Metadata, RecordDict
from flwr.clientapp.typing import ClientAppCallable
from flwr.common.constant import SUPERLINK_NODE_ID
from flwr.supercore.date import now

from secagg.flower.wire import RECORD


def call_agreed(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Return the reply of an application to a message on which all clients of a sum agree.

    The application can keep any data in the state of the Context. The suspended client in that
    state is hidden: otherwise, an application that clears the state would drop out.
    """
    suspended = context.state.pop(RECORD, None)
    received, own = shown(message, context, context.state)
    try:
        return call_next(received, own)
    finally:
        # also after an error: an application can have put another RecordDict there
        context.state = own.state
        if suspended is not None:
            context.state[RECORD] = suspended


def shown(message: Message, context: Context, state: RecordDict) -> tuple[Message, Context]:
    """Return message and Context for an application.

    The message has the same type, group and records, without the protocol's record. The Context
    has the data of run and node; the run's configuration is sorted.
    """
    sent = message.metadata
    # constants for all else: ids and times of a message are the server's choice for one node
    metadata = Metadata(
        run_id=context.run_id,
        message_id="",
        src_node_id=SUPERLINK_NODE_ID,
        dst_node_id=context.node_id,
        reply_to_message_id="",
        group_id=sent.group_id,
        created_at=now().timestamp(),
        ttl=DEFAULT_TTL,
        message_type=sent.message_type,
    )
    # no digest has the order of the records
    records = dict(sorted(message.content.items()))
    records.pop(RECORD, None)
    # the documented forms take ids of the process, which a simulation does not set
    received: Message = Message(RecordDict(records), metadata=metadata)  # type: ignore[call-overload]
    configuration = dict(sorted(context.run_config.items()))
    own = Context(context.run_id, context.node_id, context.node_config, state, configuration)
    return received, own
