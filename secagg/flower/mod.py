"""Mod of a node for the four exchanges, and the training of a node in either protocol."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from flwr.app import Context, Message, RecordDict
from flwr.clientapp.typing import ClientAppCallable

from secagg import Bounded, Client, ClientPolicy, FixedPoint, RoundParams
from secagg._check import check_kind
from secagg._secrets import without_frames
from secagg.client.client import answer_quietly
from secagg.client.inputs import Outcome, Sent, send_input
from secagg.encoding.clipping import is_lost
from secagg.errors import ParameterError, RemoteProtocolError
from secagg.flower.config import NodeIdentity, no_identity, node_identity, strictest
from secagg.flower.node import Guard, agreed, call_agreed, content_of, log_error, read_params
from secagg.flower.state import NodeState
from secagg.flower.vectors import Layout, clip_of
from secagg.flower.wire import RECORD, Plan, Task, answer_record, violation
from secagg.oneshot import OneShotParams
from secagg.protocol import Phase
from secagg.session.wire import REPORT

if TYPE_CHECKING:
    from secagg.privacy import PrivacyLedger

logger = logging.getLogger("flwr.secagg")


class Trainer:
    """Application of a node, and the places of the reply in the vector of a sum.

    After the beginning, nothing of the outcome raises an error.

    Parameters
    ----------
    task : Task
    plan : Plan
    params : RoundParams or OneShotParams
    message, context, call_next
        Arguments of the mod.

    Raises
    ------
    RemoteProtocolError
        The parameters have another number of elements than the message ("parameters").
    ParameterError
        The message has no model that can be summed.
    """

    def __init__(
        self,
        task: Task,
        plan: Plan,
        params: RoundParams | OneShotParams,
        message: Message,
        context: Context,
        call_next: ClientAppCallable,
    ) -> None:
        assert isinstance(params.encoding, FixedPoint | Bounded), "checked"  # noqa: S101
        self._layout = Layout(plan, message.content, clip_of(params.encoding))
        if self._layout.length != params.length:
            why = "the message has another number of elements"
            raise violation(task.phase, "parameters", why)
        self._largest, self._encoding = params.max_weight, params.encoding
        self._lost = False  # elements other than 0, all below half a step of the encoding
        self._call = (message, context, call_next)

    def outcome(self) -> Outcome:
        """Return the vector and weight of the application's reply, or the error of either.

        A `RemoteProtocolError` of the application is raised: the server broke the application's
        own protocol, and knows that.
        """
        try:
            reply = content_of(call_agreed(*self._call))
            vector, weight = self._layout.vector(reply, self._largest)
            # metrics follow the update
            self._lost = is_lost(vector[: self._layout.size], self._encoding)
            return Outcome(vector, weight)
        except RemoteProtocolError:
            raise
        except SystemExit:
            return Outcome(
                None, error=ParameterError("the app called sys.exit; raise an error")
            )
        except Exception as error:
            return Outcome(None, error=error)

    def note(self, sent: Sent, clipped: int) -> None:
        """Log in the node what became of the input; the server gets nothing of the log."""
        if self._lost and sent.error is None:
            logger.warning(
                "secagg: all elements of the update are below half a step of the encoding, so "
                "the sum loses them; raise fractional_bits at the server, or the learning rate"
            )
        if clipped and isinstance(self._encoding, Bounded):
            norm = self._encoding.norm
            logger.info("secagg: the update was longer than the norm %g and was cut", norm)
        elif clipped:
            logger.warning("secagg: clipped elements of the update: %d", clipped)
        if sent.lowered:
            logger.warning(
                "secagg: this node's weight was lowered to the sum's max_weight; raise it at "
                "the server: SecAgg(max_weight=…), or OneShot(max_weight=…)"
            )
        if sent.error is not None:
            try:
                _raise(sent.error)
            except Exception as error:
                log_error("zeros of weight 0 were sent in place of the update", error)


@without_frames
def _raise(error: Exception) -> None:
    """Raise an error without the frames that have the vector."""
    raise error


_UNSPENT = frozenset({Phase.ADVERTISE_KEYS, Phase.MASKED_INPUT})
"""Phases whose task a node answers only if the node's budget has room for the sum."""
_ONE_SHOT = (
    "this node's app has SecAggMod, and the server asks for a one-shot report: take OneShotMod "
    "in the app, or SecAgg on the server"
)


class SecAggMod(Guard):
    """Mod that masks all updates of a node: ``ClientApp(mods=[SecAggMod(policy)])``.

    `SecAggMod` must be the first mod: mods before the first mod see messages and replies that
    `SecAggMod` does not see. The mod answers the messages of `SecAgg`, and calls the
    application's function for the vector only. All other messages are refused, except messages
    with replies that are declared public. If the function fails or has no valid update, zeros
    of weight 0 are sent; the reason is in the node's log.

    Parameters
    ----------
    policy : ClientPolicy, optional
        Demands on every sum, by default ``ClientPolicy()``. The node's configuration can make
        the demands stricter; see docs/flower.md.
    public : iterable of str
        Names of the metrics that replies to evaluate and query messages may have in the clear,
        the number of examples included, as single numbers in a record ``"metrics"``. Empty: all
        such messages are refused, unless `SecAgg` sums the metrics.

    Raises
    ------
    ParameterError
        An argument is of the wrong type.
    """

    def __init__(
        self, policy: ClientPolicy | None = None, *, public: Iterable[str] = ()
    ) -> None:
        super().__init__(public)
        if policy is not None:
            check_kind("policy", policy, ClientPolicy, "a secagg.ClientPolicy")
        self._policy = policy or ClientPolicy()

    @without_frames
    def _answer(
        self, task: Task, message: Message, context: Context, call_next: ClientAppCallable
    ) -> RecordDict:
        """Return the client's answer to a task, after storing the client's next state."""
        if task.phase == REPORT:
            raise violation(task.phase, "phase", _ONE_SHOT)
        params, name = read_params(task, RoundParams.from_bytes, context)
        policy = strictest(self._policy, context.node_config)
        own = node_identity(context.node_config)
        state = NodeState(context, None if own is None else own.client_id)
        ledger = state.ledger()
        client = new_client(context.node_id, params, policy, own, ledger)
        # before the sum fixes bounds, and again before the training
        if ledger is not None and task.phase in _UNSPENT:
            ledger.check(params)
        state.fix(params, policy.bounds)
        if task.phase == Phase.ADVERTISE_KEYS:
            state.begin(name.number)
            answer = client.answer(task.data)
        else:
            state.check(task.phase)
            trainer = outcome = None
            if task.phase == Phase.MASKED_INPUT:  # first: no key of the client is in memory
                plan = agreed(task, params, name.message, message, context)
                trainer = Trainer(task, plan, params, message, context, call_next)
                state.fix(params, policy.bounds, plan)
                outcome = trainer.outcome()
            state.restore(client)
            # again: the first check read the phase that stands unprotected beside the state
            if client.phase != task.phase:
                raise violation(task.phase, "phase", f"{client.phase} is due")
            if trainer is None or outcome is None:
                answer = client.answer(task.data)
            else:
                answer, sent = send_input(
                    lambda vector, weight, lowered: answer_quietly(
                        client, task.data, vector, weight, lowered=lowered
                    ),
                    outcome,
                    params,
                )
                trainer.note(sent, client.clipped)
        state.suspend(client)
        large = task.phase == Phase.MASKED_INPUT
        return RecordDict({RECORD: answer_record(answer, large=large)})


def new_client(
    node: int,
    params: RoundParams,
    policy: ClientPolicy,
    own: NodeIdentity | None,
    ledger: PrivacyLedger | None,
) -> Client:
    """Return a client of a sum, with the node's identity and ledger, if the node has them."""
    if own is None and not params.active:
        return Client(node, params, policy=policy, spending=ledger)
    if own is None:
        raise no_identity()
    client_id, identity, registry = own
    return Client(
        client_id,
        params,
        policy=policy,
        identity=identity,
        registry=registry,
        spending=ledger,
    )
