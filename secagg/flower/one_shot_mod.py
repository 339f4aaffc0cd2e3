"""Mod of a node for one-shot sums."""

from __future__ import annotations

from collections.abc import Iterable

from flwr.app import Context, Message, RecordDict
from flwr.clientapp.typing import ClientAppCallable

from secagg._check import check_kind
from secagg._secrets import without_frames
from secagg.client.inputs import send_input
from secagg.flower.config import no_identity, node_identity, strictest_one_shot
from secagg.flower.mod import Trainer
from secagg.flower.node import Guard, agreed, read_params
from secagg.flower.state import NodeState
from secagg.flower.wire import RECORD, Task, answer_record, violation
from secagg.oneshot import OneShotParams, OneShotPolicy
from secagg.oneshot.client import check_signer, write_report
from secagg.session.wire import REPORT, endorsements_of

_FOUR_EXCHANGES = (
    "this node's app has OneShotMod, and the server asks for a sum in four exchanges: take "
    "SecAggMod in the app, or OneShot on the server"
)


class OneShotMod(Guard):
    """Mod that makes a report of each update of a node, for `OneShot` and its helpers.

    `OneShotMod` must be the first mod of ``ClientApp(mods=[OneShotMod(policy)])``, and refuses
    the same messages as `SecAggMod`. The node sends nothing unless the node trusts all helpers
    of a sum. Trusted are the helpers of the policy, or of ``secagg-helpers`` in the node's own
    configuration. If both name helpers, only the helpers in both are trusted.

    Parameters
    ----------
    policy : OneShotPolicy, optional
        Demands on every sum, by default ``OneShotPolicy()``. The node's configuration can make
        the demands stricter; see docs/flower.md.
    public : iterable of str
        Names of the metrics that replies to evaluate and query messages may have in the clear;
        see `SecAggMod`.

    Raises
    ------
    ParameterError
        An argument is of the wrong type.
    """

    def __init__(
        self, policy: OneShotPolicy | None = None, *, public: Iterable[str] = ()
    ) -> None:
        super().__init__(public)
        if policy is not None:
            check_kind("policy", policy, OneShotPolicy, "a secagg.oneshot.OneShotPolicy")
        self._policy = policy or OneShotPolicy()

    @without_frames
    def _answer(
        self, task: Task, message: Message, context: Context, call_next: ClientAppCallable
    ) -> RecordDict:
        """Return the node's report; the number of the sum is stored before the training."""
        if task.phase != REPORT:
            raise violation(task.phase, "phase", _FOUR_EXCHANGES)
        params, name = read_params(task, OneShotParams.from_bytes, context)
        policy = strictest_one_shot(self._policy, context.node_config)
        endorsements = endorsements_of(task.data)
        policy.check(params, endorsements)
        own = node_identity(context.node_config)
        if own is None and params.active:
            raise no_identity()
        client, identity, _ = own or (context.node_id, None, None)
        check_signer(params, identity)
        plan = agreed(task, params, name.message, message, context)
        trainer = Trainer(task, plan, params, message, context, call_next)
        state = NodeState(context, client)
        ledger = state.ledger()
        if ledger is not None:  # before the sum fixes bounds
            ledger.check(params)
        state.fix(params, policy.bounds, plan)
        # after all checks, so that a rejected task spends no number; before the training, so
        # that a process that is killed there never reports twice
        state.begin(name.number, REPORT)
        if ledger is not None:
            ledger.spend(params)
        (report, clipped), sent = send_input(
            lambda vector, weight, _: write_report(
                vector,
                params,
                client,
                weight,
                identity=identity,
                policy=policy,
                endorsements=endorsements,
            ),
            trainer.outcome(),
            params,
        )
        trainer.note(sent, clipped)
        return RecordDict({RECORD: answer_record(report, large=True)})
