"""Mod of a node: it answers the protocol's messages, and lets nothing else out.

Every reply of a node with this mod is a message of the protocol, a record of declared metrics,
or an error without text of the application.
"""

from __future__ import annotations

import builtins
import logging
from collections.abc import Iterable

from flwr.app import (
    Context,
    Error,
    Message,
    MetricRecord,
    RecordDict,
)
from flwr.clientapp.typing import ClientAppCallable

from secagg import Client, ClientPolicy, FixedPoint, RoundParams, errors
from secagg._check import check_kind
from secagg._secrets import without_frames
from secagg.errors import ParameterError, RemoteProtocolError
from secagg.flower.identity import IDENTITY_KEY, NodeIdentity, node_identity
from secagg.flower.policy import strictest
from secagg.flower.state import NodeState
from secagg.flower.vectors import Floats, Layout
from secagg.flower.wire import (
    RECORD,
    Task,
    answer_record,
    content_digest,
    read_plan,
    read_task,
    run_name,
)
from secagg.protocol import Phase
from secagg.session.wire import read_name

__all__ = ["SecAggMod"]

logger = logging.getLogger("flwr.secagg")

_RAISED, _REFUSED = 2, 6
"""Flower's codes for an exception of the app, and for a mod that refuses a message."""
_PROTOCOL_ONLY = "secagg: this node trains under secure aggregation only"
_UNDECLARED = "secagg: this node sends declared metrics only"
_METRICS = "metrics"
"""Name of the record of declared metrics."""


class SecAggMod:
    """Mod that masks all updates of a node: ``ClientApp(mods=[SecAggMod(policy)])``.

    It must be the first mod, because mods before it see what it does not. It answers the
    messages of `SecAgg`, and calls the application's function for the vector only. All other
    messages are refused, but for those whose replies are declared public.

    Parameters
    ----------
    policy : ClientPolicy, optional
        Demands on every sum; by default those of ``ClientPolicy()``. The node's configuration
        can make them stricter; see docs/flower.md.
    public : iterable of str
        Names of the metrics that replies to evaluate and query messages may have in the clear,
        the number of examples included, as single numbers in a record ``"metrics"``. Empty: all
        such messages are refused, unless `SecAgg` sums their metrics.

    Raises
    ------
    ParameterError
        An argument is of the wrong type.
    """

    def __init__(
        self, policy: ClientPolicy | None = None, *, public: Iterable[str] = ()
    ) -> None:
        if policy is not None:
            check_kind("policy", policy, ClientPolicy, "a secagg.ClientPolicy")
        if isinstance(public, str):
            raise ParameterError(f"public must be names of metrics, such as ({public!r},)")
        self._policy, self._public = policy or ClientPolicy(), frozenset(public)

    def __call__(
        self, message: Message, context: Context, call_next: ClientAppCallable
    ) -> Message:
        """Return the reply to a message; it raises no error of the application.

        The reason for an error is in the log of the node only, because it could be private. The
        server gets the class of the error, or the nearest one of Python or secagg.
        """
        received = dict(vars(message.metadata))
        try:
            reply = self._reply(message, context, call_next)
        except Exception as error:
            logger.exception("secagg: a %s message failed", message.metadata.message_type)
            reply = Error(_RAISED, f"secagg: {_public_class(error)}")
        # a reply has the group and type of its message, which the application can change
        vars(message.metadata).update(received)
        return Message(reply, reply_to=message)

    def _reply(
        self, message: Message, context: Context, call_next: ClientAppCallable
    ) -> RecordDict | Error:
        task = read_task(message.content)
        if task is not None:
            return self._answer(task, message, context, call_next)
        kind = message.metadata.message_type.partition(".")[0]
        if not self._public or kind not in ("evaluate", "query"):
            logger.warning("secagg: refused a %s message without the protocol", kind)
            return Error(_REFUSED, _PROTOCOL_ONLY)
        return self._declared(_content(call_next(message, context)))

    def _declared(self, content: RecordDict) -> RecordDict | Error:
        """Return the record of metrics if all are declared public, or an error."""
        record = content.get(_METRICS)
        if set(content) != {_METRICS} or not isinstance(record, MetricRecord):
            logger.warning("secagg: refused a reply; send one MetricRecord %r", _METRICS)
            return Error(_REFUSED, _UNDECLARED)
        single = {key for key, value in record.items() if not isinstance(value, list)}
        if undeclared := set(record) - (single & self._public):
            logger.warning(
                "secagg: refused a reply; declare %s public, as single numbers",
                sorted(undeclared),
            )
            return Error(_REFUSED, _UNDECLARED)
        return RecordDict({_METRICS: record})

    @without_frames
    def _answer(
        self, task: Task, message: Message, context: Context, call_next: ClientAppCallable
    ) -> RecordDict:
        """Return the client's answer to a task; its next state is stored before."""
        params = RoundParams.from_bytes(task.params)
        name = read_name(params.session)
        if name is None or name.run != run_name(context.run_id) or name.attempt != 0:
            raise violation(
                task.phase, "session", "the parameters are not of a sum of this run"
            )
        policy = strictest(self._policy, context.node_config)
        own = node_identity(context.node_config)
        client = new_client(context.node_id, params, policy, own)
        state = NodeState(context, None if own is None else own.client_id)
        vector, weight = None, None
        if task.phase is Phase.ADVERTISE_KEYS:
            state.begin(name.number)
        else:
            state.check()
            if task.phase is Phase.MASKED_INPUT:  # first: no key of the client is in memory
                vector, weight = trained(
                    task, params, name.message, message, context, call_next
                )
            state.restore(client)
        if client.phase is not task.phase:
            raise violation(task.phase, "phase", f"{client.phase} is due")
        answer = client.answer(task.data, vector, weight)
        state.suspend(client)
        large = task.phase is Phase.MASKED_INPUT
        if large and client.clipped:
            logger.warning("secagg: %d elements of the update were clipped", client.clipped)
        return RecordDict({RECORD: answer_record(answer, large=large)})


def new_client(
    node: int, params: RoundParams, policy: ClientPolicy, own: NodeIdentity | None
) -> Client:
    """Return a client of a sum, with the node's identity in the active variant only."""
    if not params.active:
        return Client(node, params, policy=policy)
    if own is None:
        raise ParameterError(
            f"security is 'active', and the node's configuration has no {IDENTITY_KEY}; set it "
            "to a key file of secagg identity keygen"
        )
    client_id, identity, registry = own
    return Client(client_id, params, policy=policy, identity=identity, registry=registry)


def trained(
    task: Task,
    params: RoundParams,
    digest: bytes,
    message: Message,
    context: Context,
    call_next: ClientAppCallable,
) -> tuple[Floats, int]:
    """Return vector and weight that the application computes for a message of a `digest`.

    Raises
    ------
    RemoteProtocolError
        The message is not the one that all clients of the sum agreed on, or the encoding or
        the length of the parameters does not fit the message.
    ParameterError
        The reply of the application does not fit the plan.
    """
    plan = read_plan(task.plan)
    # each client trained on a message of its own would make the sum one client's vector
    if content_digest(message, task.plan) != digest:
        raise violation(task.phase, "message", "the message is not that of the parameters")
    if not isinstance(params.encoding, FixedPoint) or params.max_weight is None:
        raise violation(task.phase, "parameters", "they are not of a weighted sum of floats")
    records = {key: record for key, record in message.content.items() if key != RECORD}
    content = RecordDict(records)
    layout = Layout(plan, content, params.encoding.clip)
    if layout.length != params.length:
        raise violation(task.phase, "parameters", "the message has another number of elements")
    message.content = content  # inner mods expect the application's records only
    return layout.vector(_content(call_next(message, context)))


def _content(reply: Message) -> RecordDict:
    """Return an application's records; the text of an error of it goes no further."""
    if reply.has_error():
        raise ParameterError(
            f"the application replied with an error: {reply.error.reason}; see its own log"
        )
    return reply.content


def _public_class(error: Exception) -> str:
    """Return the name of an error's class, or of its first base class of Python or secagg.

    The name of any other class is the application's, which can make it of data.
    """
    return next(
        kind.__name__
        for kind in type(error).__mro__
        if any(getattr(module, kind.__name__, None) is kind for module in (builtins, errors))
    )


def violation(phase: str, check: str, why: str) -> RemoteProtocolError:
    """Return the error for a message of the server that fails a check."""
    return RemoteProtocolError(why, sender=None, phase=phase, check=check)
