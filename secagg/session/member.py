"""Member of a session: a coroutine that takes part in every round until the session ends."""

from __future__ import annotations

import hashlib
import logging
from contextlib import suppress
from dataclasses import dataclass, field

from secagg._printable import printable
from secagg._secrets import without_frames
from secagg.client import Client, SealingKey
from secagg.client.client import answer_quietly
from secagg.client.inputs import Outcome, send_input
from secagg.encoding import Encoding, Vector
from secagg.errors import BudgetSpent, ParameterError, RemoteProtocolError
from secagg.oneshot import OneShotParams, OneShotPolicy
from secagg.oneshot.client import write_report
from secagg.privacy import PrivacyLedger
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
from secagg.protocol.params_bytes import SAME_RELEASE
from secagg.session import wire
from secagg.session.completed import Completed
from secagg.session.exchange import in_thread
from secagg.session.links import Link
from secagg.session.outcomes import Params
from secagg.session.training import Train, check_request, logger, note, outcome_of, violation
from secagg.session.wire import REPORT, Answer, AttemptName, Declined, Task

_waits = logging.getLogger("secagg.session.member")
"""Logger of waits, whose records are of no sum."""
_SHARED = "this identity is joined by another process; run each client once"
_HINTS = {
    "late": f"; it was slower than the deadline, or {_SHARED}",
    "repeated": f"; it was restarted, or {_SHARED}",
    "unbegun": f"; it was restarted, or {_SHARED}",
    "version": f"; {SAME_RELEASE}",
}
"""Causes or a remedy for the member's log: of an answer that the server rejects, by the check,
and of a task of an attempt that this process did not begin."""


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
    spending: PrivacyLedger | None = None,
    one_shot_policy: OneShotPolicy | None = None,
    encoding: Encoding | None = None,
) -> Completed:
    """Take part in all rounds of a session until the end; return the completed rounds.

    A round or one-shot sum is completed when this member's last answer was acknowledged. No
    member learns whether the server got the sum. A round does not count if the member sees a
    later attempt at the round and does not complete the later attempt.

    If the server breaks the protocol, the round is logged and left, and the next round begins
    anew. A second attempt at a round sends the vector of the first, under new masks. All rounds
    have one `SealingKey`, which is forgotten at the end. `ClippingWarning` counts clipped
    elements.

    No private number decides whether and how the member answers (docs/sessions.md, 5). If
    `train` fails, or gives an invalid vector or weight, zeros of weight 0 are sent. The class
    of the error is logged, and the error is raised when the session has ended. All rounds have
    the encoding and the largest weight of the first round, or of the policies' `bounds`.

    Parameters
    ----------
    link : Link
        Connection to the session, as this client.
    client_id : int or str
    train : callable
        Function ``train(message, params)``, called when the vector is due. `train` returns the
        vector, or ``(vector, weight)`` in a weighted round. A coroutine function, or else run
        in a thread. With the attribute ``each_attempt = True``, `train` is called again at a
        next attempt, to judge the attempt. For reasons that are not private, `train` may raise
        RemoteProtocolError to decline a round, or LocalProtocolError to leave the session.
    policy : ClientPolicy, optional
        Demands on every round; None: ``ClientPolicy()``.
    identity, registry, ledger
        See `Client`. The ledger stays in memory.
    spending : PrivacyLedger, optional
        Ledger of this client's data, whatever the session. A sum without room in the budget,
        or without noise, raises `BudgetSpent` before the training. The error has the rounds
        that this member completed before. See `PrivacyLedger` for the parties.
    one_shot_policy : OneShotPolicy, optional
        Demands on one-shot sums, with trusted `helpers`. None: a request for a report raises
        ParameterError.
    encoding : Encoding, optional
        Encoding with this client's `rounding` and `beyond_clip`; see `RoundParams.from_bytes`.

    Raises
    ------
    ParameterError, RemoteProtocolError
        The parameters of a round are unsafe, fail the policy or have other bounds than the
        first round. The server only hears that this client declined.
    Exception
        An error of the link. Or at the end, the first error of `train` or of a vector.
    """
    number, _ = identify(client_id)
    member = _Member(
        number, train, policy, identity, registry, ledger, spending, one_shot_policy, encoding
    )
    after = b""
    member.waits()
    while (data := await link.next_task(after)) is not None:
        task = wire.read_task(data)
        after = task.id
        try:
            answer = await member.answer(task)
        except Exception as error:
            with suppress(Exception):  # the first error counts
                await link.send(wire.encode(Declined(task.id)))  # a reason could be private
            if isinstance(error, BudgetSpent):
                error.completed = tuple(n for _, n in member.rounds), tuple(member.reports)
            raise
        try:
            await link.send(wire.encode(answer))
        except RemoteProtocolError as error:
            member.leave(error)
        else:
            member.sent()
        member.waits()
    if member.failed is not None:  # not earlier: the server would see it
        raise member.failed
    return Completed((number for _, number in member.rounds), member.reports)


@dataclass(eq=False, repr=False)
class _Member:
    """Member of a session: the client of the present round, and memory of earlier rounds."""

    id: int
    train: Train
    policy: ClientPolicy | None
    identity: Identity | None
    registry: Registry | None
    ledger: CohortLedger | None
    spending: PrivacyLedger | None
    one_shot_policy: OneShotPolicy | None
    encoding: Encoding | None
    rounds: dict[tuple[bytes, int], None] = field(default_factory=dict)  # run and number
    reports: list[int] = field(default_factory=list)
    failed: Exception | None = None
    _client: Client | None = None
    _asked: int = 0  # number of the last task's sum
    _reported: int | None = None  # number of a one-shot sum
    _name: AttemptName | None = None  # of the present attempt
    _waiting: tuple[int, int | None] | None = None  # of the last log line
    _unbegun: tuple[int, int] | None = None  # round and attempt, of the last log line
    # of each run of a session; not in a file as the numbers of `secagg.vault.files.spend` are,
    # so that a restarted member can be in the next attempt
    _latest: dict[bytes, AttemptName] = field(default_factory=dict)
    _used: set[bytes] = field(default_factory=set)  # digests of one-shot parameters
    _trained: tuple[object, Outcome] | None = None
    _bounds: Bounds | None = None

    def __post_init__(self) -> None:
        if self.one_shot_policy is not None and self.one_shot_policy.helpers is None:
            # the server relays the parameters here, and could have chosen the helpers' keys
            raise ParameterError(
                "one_shot_policy has no helpers, and the parameters come from the server; pass "
                "OneShotPolicy(helpers={the Ed25519 key of each})"
            )
        self._sealing_key = SealingKey(self.id)

    async def answer(self, task: Task) -> Answer | Declined:
        """Return the answer to a task, or raise an error that the application must see."""
        self._asked = task.number
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

    def waits(self) -> None:
        """Log, once, that this client waits for a next sum, or for the server in a sum."""
        done = len(self.rounds) + len(self.reports)
        number = self._name[1] if self._client and self._name else None
        if (done, number) == self._waiting:
            return
        self._waiting = (done, number)
        extra = {"event": "MemberWaits", "client": self.id, "sums": done, "number": number}
        what = "a sum to begin" if number is None else f"the server in sum {number}"
        _waits.info("client %d waits for %s", self.id, what, extra=extra)

    def sent(self) -> None:
        """Count a round after the acknowledgement of the last answer."""
        if self._reported is not None:
            self.reports.append(self._reported)
            self._reported = None
        # before its last answer arrives, the server has no sum of this round
        elif self._client and self._name and self._client.phase is Phase.FINISHED:
            self.rounds[self._name[:2]] = None
            self._client = None

    def leave(self, error: RemoteProtocolError) -> None:
        """Leave the present attempt, because of an error on either side, and log the error."""
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
        where = {"client": self.id, "number": self._asked}
        extra = where | {"phase": phase, "check": check, "hint": hint}
        text = "client %d left the attempt: %s, check %s%s"
        logger.warning(text, self.id, phase, check, hint, extra=extra)

    def _proposed(self, task: Task) -> Client:
        """Return a client for the parameters of a task; raise if the policy rejects them."""
        self._client = None
        params = RoundParams.from_bytes(task.params, self.encoding)
        client = Client(
            self.id,
            params,
            policy=self.policy,
            identity=self.identity,
            registry=self.registry,
            ledger=self.ledger,
            spending=self.spending,
            sealing_key=self._sealing_key,
        )
        self._fix_bounds(params)
        return client

    def _fix_bounds(self, params: Params) -> None:
        """Fix the bounds of all inputs at the first parameters that the policy accepts."""
        if self._bounds is None:
            self._bounds = Bounds.of(params)
        self._bounds.check(params)

    def _begin(self, task: Task, client: Client) -> None:
        """Begin an attempt, unless this client was in the attempt before."""
        params = client.params
        name = wire.read_name(params.session)
        if name is None or (name.number, name.attempt) != (task.number, task.attempt):
            raise violation(task, "session", "the parameters are of another attempt")
        # a second masked input of one attempt could be of another cohort
        last = self._latest.get(name.run)
        if last is not None and name[:3] <= last[:3]:
            raise violation(task, "session", "this client was in this attempt before")
        self._client, self._name, self._latest[name.run] = client, name, name
        self.rounds.pop(name[:2], None)  # so the attempt before had no sum

    async def _report(self, task: Task) -> Answer | Declined:
        """Return the report for the task's sum, or decline if this client has reported."""
        self._client, policy = None, self.one_shot_policy
        if policy is None:
            raise ParameterError(
                "the server asks for a report of a one-shot sum, and one_shot_policy is "
                "missing; pass take_part(one_shot_policy=OneShotPolicy(helpers=…))"
            )
        params = OneShotParams.from_bytes(task.params, self.encoding)
        if params.active == (self.identity is None):
            # transports that sign requests have an identity, and pass it on with a registry
            check_registry(params, self.registry)
        try:
            signed = check_request(task, params, policy, self.identity)
            self._fix_bounds(params)
            if params.digest in self._used:  # two reports in one session have related masks
                return Declined(task.id)
            if (spending := self.spending) is not None:  # the reason is public
                await in_thread(lambda: spending.check(params))
            self._used.add(params.digest)  # before the training: a failed one counts, too
            outcome = await outcome_of(self.train, task.message, params)
        except RemoteProtocolError as error:
            self.leave(error)
            return Declined(task.id)

        if spending is not None:  # once, also if zeros must be sent
            await in_thread(lambda: spending.spend(params))

        def write(vector: Vector, weight: int | None, _: bool) -> tuple[bytes, int]:
            return write_report(vector, params, self.id, weight, self.identity, policy, signed)

        (made, clipped), sent = await in_thread(lambda: send_input(write, outcome, params))
        lost = note(self.id, outcome, sent, clipped, params)
        self.failed = self.failed or lost
        self._reported = task.number
        return Answer(task.id, made)

    async def _step(self, task: Task) -> Answer | Declined:
        client = self._client
        due = client and wire.task_id(
            client.params.digest, task.number, task.attempt, client.phase
        )
        if client is None or task.id != due:
            self._note_unbegun(task)
            return Declined(task.id)
        if client.phase is not Phase.MASKED_INPUT:
            return Answer(task.id, await in_thread(lambda: client.answer(task.data)))
        outcome = await self._input(task, client.params)

        def send(vector: Vector, weight: int | None, lowered: bool) -> bytes:
            return answer_quietly(client, task.data, vector, weight, lowered=lowered)

        answer, sent = await in_thread(lambda: send_input(send, outcome, client.params))
        lost = note(self.id, outcome, sent, client.clipped, client.params)
        self.failed = self.failed or lost
        return Answer(task.id, answer)

    async def _input(self, task: Task, params: RoundParams) -> Outcome:
        """Return the outcome of training, which attempts at one round mostly have in common."""
        assert self._name is not None, "set with the client"  # noqa: S101
        # each client trained on a message of its own would make the sum one client's vector
        if wire.message_digest(task.message) != self._name.message:
            raise violation(task, "message", "the message is not that of the parameters")
        fixed = params.to_bytes().removesuffix(params.session)
        anew: bool = getattr(self.train, "each_attempt", False)
        name = self._name if anew else self._name[:2]
        about = (name, fixed, hashlib.sha256(task.message).digest())
        if self._trained is None or self._trained[0] != about:
            self._trained = None
            self._trained = (about, await outcome_of(self.train, task.message, params))
        return self._trained[1]
