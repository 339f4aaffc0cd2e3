"""Member of a session: one coroutine that takes part in every round until the session ends."""

from __future__ import annotations

import hashlib
import logging
from contextlib import suppress
from functools import partial

from secagg._printable import printable
from secagg._secrets import without_frames
from secagg.client import Client, SealingKey
from secagg.client.client import answer_quietly
from secagg.client.inputs import Outcome, Sent, send_input
from secagg.encoding import Encoding, Vector
from secagg.encoding.clipping import LOSSES, is_lost, warn_of_losses
from secagg.errors import (
    ParameterError,
    RemoteProtocolError,
)
from secagg.oneshot import OneShotParams, OneShotPolicy
from secagg.oneshot.client import write_report
from secagg.protocol import (
    Bounds,
    ClientPolicy,
    CohortLedger,
    Identity,
    Phase,
    Registry,
    RoundParams,
)
from secagg.protocol.client_ids import ClientKey, identify
from secagg.protocol.identities import check_registry
from secagg.session.completed import Completed
from secagg.session.links import Link
from secagg.session.reporting import check_request
from secagg.session.thread import in_thread
from secagg.session.training import Train, outcome_of
from secagg.session.wire import (
    REPORT,
    Answer,
    AttemptName,
    Declined,
    Task,
    encode,
    message_digest,
    read_name,
    read_task,
    task_id,
)

logger = logging.getLogger("secagg.session")

_SHARED = "this identity is joined by another process; run each client once"
_HINTS = {
    "late": f"; it was slower than the deadline, or {_SHARED}",
    "repeated": f"; it was restarted, or {_SHARED}",
    "unbegun": f"; it was restarted, or {_SHARED}",
}
"""Causes for the member's log: of an answer that the server rejects, by the check, and of a
task of an attempt that this process did not begin."""


@without_frames
async def take_part(
    link: Link,
    client_id: ClientKey,
    train: Train,
    *,
    policy: ClientPolicy | None = None,
    identity: Identity | None = None,
    registry: Registry | None = None,
    ledger: CohortLedger | None = None,
    one_shot_policy: OneShotPolicy | None = None,
    encoding: Encoding | None = None,
) -> Completed:
    """Take part in all rounds of a session until it ends; return those completed.

    A round or one-shot sum is completed when this member's last answer was acknowledged. No
    member learns whether the server got the sum: the end of a session does not say it. A round
    does not count if the member sees a later attempt at it and does not complete that.

    A round whose server breaks the protocol is logged and left; the next one begins anew. A
    second attempt at a round sends the vector of the first, under new masks. All rounds have
    one `SealingKey`, which is forgotten when the session ends. A
    `ClippingWarning` has the number of elements of a vector that were clipped, if any.

    Whether and how the member answers does not depend on its numbers (docs/sessions.md, 5). If
    `train` fails, or its vector or weight is invalid, zeros of weight 0 are sent. The error is
    logged by its class, and raised when the session has ended. All rounds have the encoding
    and the largest weight of the first round, or those of the policies' `bounds`.

    Parameters
    ----------
    link : Link
        Connection to the session, as this client.
    client_id : int or str
    train : callable
        Function ``train(message, params)``, called when the vector is due. It returns the
        vector, or ``(vector, weight)`` in a weighted round. It is a coroutine function, or runs
        in a thread. For reasons that are not private, it may raise RemoteProtocolError to
        decline a round, or LocalProtocolError to leave the session.
    policy : ClientPolicy, optional
        Demands on every round; by default those of ``ClientPolicy()``.
    identity, registry, ledger
        See `Client`; for all rounds. The ledger is in memory: nothing stores it here.
    one_shot_policy : OneShotPolicy, optional
        Demands on every one-shot sum, with the `helpers` that this client trusts. None: a
        request for a report raises ParameterError and ends the session here.
    encoding : Encoding, optional
        This client's encoding, with its own `rounding` and `beyond_clip`; see
        `RoundParams.from_bytes`.

    Raises
    ------
    ParameterError, RemoteProtocolError
        The parameters of a round are unsafe, fail the policy or have other bounds than those of
        the first round; the server only hears that this client declined. The message has the
        remedy.
    Exception
        An error of the link. Or, after the end of the session, the first error of `train` or of
        a vector. The server gets no text of it.
    """
    member = _Member(
        client_id, train, policy, identity, registry, ledger, one_shot_policy, encoding
    )
    after = b""
    while (data := await link.next_task(after)) is not None:
        task = read_task(data)
        after = task.id
        try:
            answer = await member.answer(task)
        except Exception:
            with suppress(Exception):  # the first error counts
                await link.send(encode(Declined(task.id)))  # a reason could be private
            raise
        try:
            await link.send(encode(answer))
        except RemoteProtocolError as error:
            member.leave(error)
        else:
            member.sent()
    if member.failed is not None:  # not earlier: the server would see it
        raise member.failed
    return Completed((number for _, number in member.rounds), member.reports)


class _Member:
    """Member of a session: its client in the present round, and memory of earlier rounds."""

    def __init__(
        self,
        client_id: ClientKey,
        train: Train,
        policy: ClientPolicy | None,
        identity: Identity | None,
        registry: Registry | None,
        ledger: CohortLedger | None,
        one_shot_policy: OneShotPolicy | None,
        encoding: Encoding | None,
    ) -> None:
        if one_shot_policy is not None and one_shot_policy.helpers is None:
            # the server relays the parameters here, and could have chosen the helpers' keys
            raise ParameterError(
                "one_shot_policy has no helpers, and the parameters come from the server; pass "
                "OneShotPolicy(helpers={the Ed25519 key of each})"
            )
        self.rounds: dict[tuple[bytes, int], None] = {}  # run and number of each
        self.reports: list[int] = []
        self.failed: Exception | None = None
        self._id, _ = identify(client_id)
        self._train, self._encoding = train, encoding
        self._identity, self._registry = identity, registry
        self._one_shot_policy = one_shot_policy
        self._new_client = partial(
            Client,
            self._id,
            policy=policy,
            identity=identity,
            registry=registry,
            ledger=ledger,
            sealing_key=SealingKey(self._id),
        )
        self._client: Client | None = None
        self._reported: int | None = None  # number of a one-shot sum
        self._name: AttemptName | None = None  # of the present attempt
        self._unbegun: tuple[int, int] | None = None  # round and attempt, of the last log line
        # of each run of a session; not in a file as `Spent` is, so that a restarted member can
        # be in the next attempt
        self._latest: dict[bytes, AttemptName] = {}
        self._used: set[bytes] = set()  # digests of one-shot parameters
        self._trained: tuple[object, Outcome] | None = None
        self._bounds: Bounds | None = None

    async def answer(self, task: Task) -> Answer | Declined:
        """Return the answer to a task; it raises errors that the application must see."""
        if task.step == REPORT:
            return await self._report(task)
        first = task.step == Phase.ADVERTISE_KEYS
        client = self._proposed(task) if first else None
        try:
            if client is not None:
                self._begin(task, client)
            return await self._step(task)
        except RemoteProtocolError as error:
            self.leave(error)
            return Declined(task.id)

    def sent(self) -> None:
        """Count a round whose last answer was acknowledged."""
        if self._reported is not None:
            self.reports.append(self._reported)
            self._reported = None
        elif self._client and self._name and self._client.phase is Phase.FINISHED:
            self.rounds[self._name[:2]] = None
            self._client = None

    def leave(self, error: RemoteProtocolError) -> None:
        """Leave the present attempt, because of an error on either side, and log it."""
        self._client, self._reported = None, None
        self._log_left(error.phase, error.check)

    def _note_unbegun(self, task: Task) -> None:
        """Log, once, a task of an attempt that another process of this client began."""
        attempt = (task.number, task.attempt)
        begun = self._name is not None and self._name[1:3] == attempt
        if not begun and attempt != self._unbegun:
            self._unbegun = attempt
            self._log_left(printable(task.step), "unbegun")

    def _log_left(self, phase: str, check: str) -> None:
        hint = _HINTS.get(check, "")
        logger.warning(
            "client %d left the attempt: %s, check %s%s",
            self._id,
            phase,
            check,
            hint,
            extra={"client": self._id, "phase": phase, "check": check, "hint": hint},
        )

    def _proposed(self, task: Task) -> Client:
        """Return a client for the parameters of a task; raise if they fail its policy."""
        self._client = None
        params = RoundParams.from_bytes(task.params, self._encoding)
        client = self._new_client(params)
        self._fix_bounds(params)
        return client

    def _fix_bounds(self, params: RoundParams | OneShotParams) -> None:
        """Fix the bounds of all inputs at the first parameters that the policy accepts."""
        if self._bounds is None:
            self._bounds = Bounds.of(params)
        self._bounds.check(params)

    def _begin(self, task: Task, client: Client) -> None:
        """Begin an attempt, unless this client was in it before."""
        params = client.params
        name = read_name(params.session)
        if name is None or (name.number, name.attempt) != (task.number, task.attempt):
            raise _violation(task, "session", "the parameters are of another attempt")
        # a second masked input of one attempt could be of another cohort
        last = self._latest.get(name.run)
        if last is not None and name[:3] <= last[:3]:
            raise _violation(task, "session", "this client was in this attempt before")
        self._client, self._name, self._latest[name.run] = client, name, name
        self.rounds.pop(name[:2], None)  # so the attempt before had no sum

    async def _report(self, task: Task) -> Answer | Declined:
        """Return the report of a one-shot sum, or decline if this client has reported."""
        self._client, policy = None, self._one_shot_policy
        if policy is None:
            raise ParameterError(
                "the server asks for a report of a one-shot sum, and one_shot_policy is "
                "missing; pass take_part(one_shot_policy=OneShotPolicy(helpers=…))"
            )
        params = OneShotParams.from_bytes(task.params, self._encoding)
        if params.active == (self._identity is None):
            # transports that sign requests have an identity, and pass it on with a registry
            check_registry(params, self._registry)
        try:
            signed = check_request(task, params, policy, self._identity)
            self._fix_bounds(params)
            if params.digest in self._used:  # two reports in one session have related masks
                return Declined(task.id)
            self._used.add(params.digest)  # before the training: a failed one counts, too
            outcome = await outcome_of(self._train, task.message, params)
        except RemoteProtocolError as error:
            self.leave(error)
            return Declined(task.id)

        def write(vector: Vector, weight: int | None, _: bool) -> tuple[bytes, int]:
            return write_report(
                vector,
                params,
                self._id,
                weight,
                identity=self._identity,
                policy=policy,
                endorsements=signed,
            )

        (made, clipped), sent = await in_thread(lambda: send_input(write, outcome, params))
        self._note(outcome, sent, clipped, params)
        self._reported = task.number
        return Answer(task.id, made)

    async def _step(self, task: Task) -> Answer | Declined:
        client = self._client
        if client is None or task.id != self._due(task, client):
            self._note_unbegun(task)
            return Declined(task.id)
        if client.phase is not Phase.MASKED_INPUT:
            return Answer(task.id, await in_thread(lambda: client.answer(task.data)))
        outcome = await self._input(task, client.params)

        def send(vector: Vector, weight: int | None, lowered: bool) -> bytes:
            return answer_quietly(client, task.data, vector, weight, lowered=lowered)

        answer, sent = await in_thread(lambda: send_input(send, outcome, client.params))
        self._note(outcome, sent, client.clipped, client.params)
        return Answer(task.id, answer)

    def _note(
        self,
        outcome: Outcome,
        sent: Sent,
        clipped: int,
        params: RoundParams | OneShotParams,
    ) -> None:
        """Tell this member's own side what became of its input; raise nothing now."""
        error = sent.error
        try:
            if error is None and (vector := outcome.vector) is not None:
                lost = is_lost(vector, params.encoding)
                warn_of_losses(params.encoding, clipped, vector.size, lost, stacklevel=1)
        except LOSSES as warning:  # an error by the application's filter
            error = error or warning
        if sent.lowered:
            logger.warning("client %d lowered its weight to max_weight", self._id)
        if sent.error is not None:
            kind = type(sent.error).__name__  # its text could be private
            # no error: where errors of a log reach the server, it would see this one
            logger.warning("client %d sent zeros in place of its vector: %s", self._id, kind)
        self.failed = self.failed or error

    def _due(self, task: Task, client: Client) -> bytes:
        return task_id(client.params.digest, task.number, task.attempt, client.phase)

    async def _input(self, task: Task, params: RoundParams) -> Outcome:
        """Return the outcome of training, which attempts at one round have in common."""
        assert self._name is not None, "set with the client"  # noqa: S101
        # each client trained on a message of its own would make the sum one client's vector
        if message_digest(task.message) != self._name.message:
            raise _violation(task, "message", "the message is not that of the parameters")
        fixed = params.to_bytes().removesuffix(params.session)
        about = (self._name[:2], fixed, hashlib.sha256(task.message).digest())
        if self._trained is None or self._trained[0] != about:
            self._trained = None
            self._trained = (about, await outcome_of(self._train, task.message, params))
        return self._trained[1]


def _violation(task: Task, check: str, why: str) -> RemoteProtocolError:
    return RemoteProtocolError(why, sender=None, phase=task.step, check=check)
