"""Guard of a node's application, and the steps that both mods of nodes share.

Every reply of a guarded node is a message of the protocol, a record of declared metrics, or an
error without text of the application. The shared steps read the parameters and the plan of a
sum, and call the application with agreed data only.
"""

from __future__ import annotations

import builtins
import copy
import logging
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TypeVar

from flwr.app import DEFAULT_TTL, Context, Error, Message, Metadata, MetricRecord, RecordDict
from flwr.clientapp.typing import ClientAppCallable
from flwr.common.constant import SUPERLINK_NODE_ID
from flwr.supercore.date import now

from secagg import Bounded, FixedPoint, RoundParams, errors
from secagg.errors import ParameterError, PrecisionWarning, SecAggError
from secagg.flower.wire import (
    ERROR,
    RAISED,
    RECORD,
    REFUSED,
    Plan,
    Task,
    content_digest,
    read_plan,
    read_task,
    run_name,
    violation,
)
from secagg.oneshot import OneShotParams
from secagg.protocol.shape import Shape
from secagg.session.wire import AttemptName, read_name

logger = logging.getLogger("flwr.secagg")

P = TypeVar("P", RoundParams, OneShotParams)

_PROTOCOL_ONLY = (
    "this node trains under secure aggregation only; wrap the strategy: SecAgg(FedAvg(), ...) "
    "for SecAggMod, OneShot(FedAvg(), ...) for OneShotMod"
)
_REFUSALS = {
    "evaluate": (
        "this node answers evaluate messages of SecAgg(evaluate={...}) or "
        "OneShot(evaluate={...}) only; a mod with public=[...] answers others, too"
    ),
    "query": "this node answers no query messages; a mod with public=[...] does",
}
"""Reasons for the refusal of messages without the protocol, except train messages."""
_UNDECLARED = (
    "this node sends declared metrics only; its own log names the metric, to be declared in "
    "public=[...] of the mod or left out of the reply"
)
_METRICS = "metrics"
"""Name of the record of declared metrics."""


class Guard(ABC):
    """Mod that answers the tasks of a protocol, and refuses all other messages.

    Exceptions are messages whose replies the application declares public; see `SecAggMod`.
    """

    def __init__(self, public: Iterable[str]) -> None:
        if isinstance(public, str):
            raise ParameterError(f"public must be names of metrics, such as ({public!r},)")
        self._public = frozenset(public)

    def __call__(
        self, message: Message, context: Context, call_next: ClientAppCallable
    ) -> Message:
        """Return the reply to a message; no error of the application is raised.

        The reason for an error is in the log of the node only, because the reason could be
        private. The server gets the class of the error, or the nearest base class of Python or
        secagg.
        """
        reply: RecordDict | Error
        kind = message.metadata.message_type.partition(".")[0]
        try:
            task = read_task(message.content)
            if task is not None:
                reply = self._answer(task, message, context, call_next)
            elif self._public and kind in ("evaluate", "query"):
                # nobody agreed on this message, and a later vector could depend on the state
                own = copy.deepcopy(context.state)
                reply = self._declared(content_of(call_next(*shown(message, context, own))))
            else:
                why = _REFUSALS.get(kind, _PROTOCOL_ONLY)
                logger.warning("secagg: refused %r without the protocol: %s", kind, why)
                reply = Error(REFUSED, ERROR + why)
        except Exception as error:
            log_error(f"{message.metadata.message_type!r} failed", error)
            reply = Error(RAISED, ERROR + _public_class(error))
        return Message(reply, reply_to=message)

    @abstractmethod
    def _answer(
        self, task: Task, message: Message, context: Context, call_next: ClientAppCallable
    ) -> RecordDict:
        """Return the protocol's answer to a task."""

    def _declared(self, content: RecordDict) -> RecordDict | Error:
        """Return the record of metrics if all are declared public, or an error."""
        record = content.get(_METRICS)
        if set(content) != {_METRICS} or not isinstance(record, MetricRecord):
            logger.warning("secagg: refused a reply; send one MetricRecord %r", _METRICS)
            return Error(REFUSED, ERROR + _UNDECLARED)
        # a list under a declared name could have the whole update
        single = {key for key, value in record.items() if not isinstance(value, list)}
        if undeclared := set(record) - (single & self._public):
            logger.warning(
                "secagg: refused a reply with the metrics %s, which are not declared public as "
                "single numbers; add their names to public=[...] of the mod, or leave them out "
                "of the reply",
                sorted(undeclared),
            )
            return Error(REFUSED, ERROR + _UNDECLARED)
        return RecordDict({_METRICS: record})


def log_error(what: str, error: Exception) -> None:
    """Log an error in the node: one line for this package's errors, others with traceback."""
    if isinstance(error, SecAggError):
        logger.error("secagg: %s: %s: %s", what, type(error).__name__, error)
    else:
        logger.error("secagg: %s", what, exc_info=error)


def read_params(
    task: Task, read: Callable[[bytes], P], context: Context
) -> tuple[P, AttemptName]:
    """Return the parameters of a task, and the name of the sum from ``params.session``.

    Raises
    ------
    RemoteProtocolError
        "session": the session is not of a sum of this run. "parameters": the sum is neither a
        weighted sum of floats, nor an unweighted sum of bounded norms or with noise.
    """
    # the server was warned of the precision; a node would repeat the warning in each exchange
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)
        params = read(task.params)
    name = read_name(params.session)
    if name is None or name.run != run_name(context.run_id) or name.attempt != 0:
        raise violation(task.phase, "session", "the parameters are not of a sum of this run")
    floats = isinstance(params.encoding, FixedPoint)
    weighted = params.max_weight is not None or params.noise is not None
    if not (floats and weighted) and not isinstance(params.encoding, Bounded):
        raise violation(task.phase, "parameters", "they are not of a weighted sum of floats")
    return params, name


def agreed(
    task: Task, params: Shape, digest: bytes, message: Message, context: Context
) -> Plan:
    """Return the plan of a sum, for a message that all clients of the sum agreed on.

    Parameters
    ----------
    task : Task
    params : RoundParams or OneShotParams
        Parameters of the sum.
    digest : bytes
        Digest in the name of the sum.
    message : Message
    context : Context
        Context of the node, with the run's configuration.

    Raises
    ------
    RemoteProtocolError
        The message or the run's configuration has another digest ("message"), or the plan is
        invalid or has another weight than the parameters ("plan").
    """
    plan = read_plan(task.plan)
    if (plan.weight is None) != (params.max_weight is None):
        raise violation(task.phase, "plan", "it has a weight, or has none, unlike the sum")
    # each client trained on a message of its own would make the sum one client's vector
    if content_digest(message, task.plan, context.run_config) != digest:
        why = (
            "the digest of message, plan and run's configuration is not the server's, and a "
            "digest does not say which key differs; compare context.run_config here, with the "
            f"keys {sorted(context.run_config)}, and at the server, and leave both as they are"
        )
        raise violation(task.phase, "message", why)
    return plan


def content_of(reply: object) -> RecordDict:
    """Return an application's records; the text of an application's error goes no further."""
    if not isinstance(reply, Message):
        raise ParameterError(
            f"the application returned {type(reply).__name__} in place of a Message; end its "
            "function with return Message(RecordDict({...}), reply_to=message)"
        )
    if reply.has_error():
        raise ParameterError(
            f"the application replied with an error: {reply.error.reason}; see its own log"
        )
    return reply.content


def _public_class(error: Exception) -> str:
    """Return the name of an error's class, or of the first base class of Python or secagg.

    The application chooses the name of any other class, and can make that name of data.
    """
    return next(
        kind.__name__
        for kind in type(error).__mro__
        if any(getattr(module, kind.__name__, None) is kind for module in (builtins, errors))
    )


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
    """Return message and Context as an application sees them.

    All clients of a sum agree on all data that decide a vector. The server can send each node
    another value for the rest of a message. An application that read the rest would let the
    server single a node out. So both are new, with agreed data and the node's own only.

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
