"""Helper for one-shot sums, who checks boxes, reserves lists and opens masks of a batch."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np

from secagg._check import as_bytes, check_kind
from secagg._records import Records, Rows
from secagg._secrets import Confined, without_frames
from secagg.errors import ParameterError
from secagg.oneshot import messages, replies, seeds
from secagg.oneshot.journal import HelperJournal
from secagg.oneshot.layout import DIGEST_BYTES, ID_BYTES
from secagg.oneshot.messages import Kind, violation
from secagg.oneshot.opening import write_masks
from secagg.oneshot.params import OneShotParams
from secagg.oneshot.policy import OneShotPolicy, endorsement
from secagg.oneshot.seeds import SEED_BYTES
from secagg.protocol import Registry
from secagg.protocol.identities import check_registry
from secagg.protocol.masks import filled

MAX_LENGTH = 1 << 24
"""``max_length`` of a helper without a policy from the operator."""


def policy_of(min_clients: int | None, policy: OneShotPolicy | None) -> OneShotPolicy:
    """Return the policy of a helper, from the arguments of `Helper`.

    Raises
    ------
    ParameterError
        An argument is invalid, or the policy has `helpers`.
    """
    policy = OneShotPolicy(max_length=MAX_LENGTH) if policy is None else policy
    check_kind("policy", policy, OneShotPolicy, "a secagg.oneshot.OneShotPolicy")
    if policy.helpers is not None:
        raise ParameterError(
            "the policy has helpers, whose endorsements only clients get; leave them out at a "
            "helper"
        )
    return policy if min_clients is None else replace(policy, min_clients=min_clients)


class Helper(Confined):
    """Helper of a session, which gives each client's masks for a single list, never for two.

    Requests must come from the authenticated aggregator: a stranger could spend ids. Answers
    are confidential, since answers and the aggregator's total give the sum.

    Parameters
    ----------
    params : OneShotParams
    journal : HelperJournal
        Journal with this helper's keys, which are among the helpers' keys in `params`.
    registry : Registry, optional
        Public keys of all clients, from the application; required if security is "active". A
        helper with a registry serves no other sums, where all clients may be inventions.
    min_clients : int, optional
        The smallest list that this helper opens, 2 to 2^20, in place of the policy's number;
        ``params.min_clients`` counts too.
    policy : OneShotPolicy, optional
        Demands on the parameters. Under parameters that fail, the helper endorses, reserves and
        opens nothing. None: the defaults of `OneShotPolicy` with a `max_length` of 2^24. Memory
        grows with the length, and a long vector costs the aggregator nothing.

    Attributes
    ----------
    number : int
        Number of this helper, 1 to ℓ.

    Raises
    ------
    ParameterError
        An argument is invalid, or the journal's keys are not one pair of `params.helpers`.
    """

    _remedy = "make one with the journal in the process that needs it"

    def __init__(
        self,
        params: OneShotParams,
        journal: HelperJournal,
        *,
        registry: Registry | None = None,
        min_clients: int | None = None,
        policy: OneShotPolicy | None = None,
    ) -> None:
        check_kind("params", params, OneShotParams, "a secagg.oneshot.OneShotParams")
        check_kind("journal", journal, HelperJournal, "a secagg.oneshot.HelperJournal")
        self._policy = policy_of(min_clients, policy)
        if registry is not None and not params.active:
            raise ParameterError(
                "this helper has a registry and serves active sums only, but security is "
                f"{params.security!r}; take security='active', or a helper without a registry"
            )
        if registry is None and params.active:
            raise ParameterError(
                "this helper has no registry and serves semi-honest sums only, but security is "
                "'active'; give the helper the public keys of all clients, "
                "registry=secagg.Registry({id: identity.public, …})"
            )
        check_registry(params, registry)
        if journal.public not in params.helpers:
            raise ParameterError(
                "the keys of the journal are not those of a helper of these parameters; pass "
                "HelperJournal.public to OneShotParams(helpers=…)"
            )
        self.params = params
        self.number = params.helpers.index(journal.public) + 1
        self._journal = journal
        self._registry = registry
        self._least = max(self._policy.min_clients, params.min_clients)
        self._held = params.held_by(self.number)
        self._checked = Records(DIGEST_BYTES + SEED_BYTES * len(self._held))  # digest ‖ seeds
        self._checked_lock = threading.RLock()  # a handler of signals may check, too

    def __repr__(self) -> str:
        return f"<Helper {self.number}: {len(self._checked):,} clients checked>"

    def endorse(self) -> bytes:
        """Return this helper's signature of the parameters, 64 bytes.

        The signature states that the parameters have both keys of this helper. A client with
        ``OneShotPolicy(helpers=…)`` asks for the endorsements of all helpers.

        Raises
        ------
        ParameterError
            The parameters fail this helper's policy.
        """
        self._judge()
        return self._journal.identity.sign(endorsement(self.params))

    @without_frames
    def check(self, boxes: bytes) -> tuple[int, ...]:
        """Check the boxes of a chunk and return the ids of rejected boxes; reveal nothing.

        The aggregator drops the clients of rejected boxes. Nobody else can check the verdict. A
        chunk may come again, and the later of two reports of a client counts.

        Parameters
        ----------
        boxes : bytes
            A chunk of `Accumulator.boxes`.

        Raises
        ------
        RemoteProtocolError
            "length", "version", "encoding", "parameters" or "helper": `boxes` is not a chunk
            for this helper. Nothing was stored.
        """
        boxes = as_bytes(boxes, "a chunk of boxes")
        body = messages.body(boxes, Kind.BOXES, self.params, "check")
        size = self.params.layout.record(self.number)
        if len(body) < 2 or (len(body) - 2) % size:
            why = f"{len(boxes)} bytes; each client has {size} in a chunk for this helper"
            raise violation("check", "length", why)
        wanted = int.from_bytes(body[:2], "little")
        if wanted != self.number:
            why = f"the boxes are for helper {wanted}; this is helper {self.number}"
            raise violation("check", "helper", why)
        rejected = []
        for at in range(2, len(body), size):
            client_id, kept = self._verify(bytes(body[at : at + size]))
            if kept is None:
                rejected.append(client_id)
            else:
                with self._checked_lock:
                    self._checked[client_id] = kept
        return tuple(rejected)

    @without_frames
    def reserve(self, request: bytes) -> bytes:
        """Reserve the list of a request and return the reservation, signed if "active".

        The list is in the journal, on the disk, before this helper signs. The same list is
        reserved again at any time. Another list with a common client or the same batch never
        is.

        Parameters
        ----------
        request : bytes
            `Accumulator.request`.

        Raises
        ------
        ParameterError
            The parameters fail this helper's policy.
        RemoteProtocolError
            "length", "ids", …: malformed. "count": fewer clients than the minimum or more than
            n. "unchecked": a client's box was not checked or was rejected. "batch", "spent":
            the list differs from a reserved list with the same batch or a common client.
        JournalError
            The journal failed. Nothing was signed.
        """
        self._judge()
        asked, digest, _ = self._read(as_bytes(request, "a request"))
        # before the signature: after a crash the helper must still know the signed list
        self._journal.reserve(self.params.digest, asked.batch, digest, asked.ids)
        signature = b""
        if self.params.active:
            signature = self._journal.identity.sign(replies.reserved(digest))
        return replies.start(Kind.RESERVATION, self.params, self.number, digest) + signature

    @without_frames
    def open(self, request: bytes) -> bytes:
        """Reserve the list of a request and return the sums of the clients' masks.

        Parameters
        ----------
        request : bytes
            `Accumulator.request`, with the signatures of ``params.quorum`` helpers.

        Raises
        ------
        ParameterError, RemoteProtocolError
            As `reserve`. "signature": a signature is not the stated helper's over exactly this
            list. "quorum": too few helpers have signed.
        JournalError
            The journal failed. Nothing was opened.
        """
        self._judge()
        asked, digest, drawn = self._read(as_bytes(request, "a request"))
        # before the journal: a list without a quorum must spend no ids
        if self.params.quorum:
            for j, signature in asked.signatures.items():
                replies.check_signature(j, signature, self.params, digest, "open")
            if len(asked.signatures) < self.params.quorum:
                why = (
                    f"{len(asked.signatures)} helpers signed the list; it takes "
                    f"{self.params.quorum}; pass their answers of Helper.reserve to "
                    "Accumulator.request"
                )
                raise violation("open", "quorum", why)
        # also with a quorum: this helper may not be among the helpers that reserved the list
        self._journal.reserve(self.params.digest, asked.batch, digest, asked.ids)
        size = self.params.layout.packed

        def fill(packed: memoryview) -> None:
            for place, i in enumerate(self._held):
                own = drawn[:, SEED_BYTES * place : SEED_BYTES * (place + 1)]
                part = packed[size * place : size * (place + 1)]
                write_masks(part, asked.ids, own, i, digest, self.params)

        start = replies.start(Kind.ANSWER, self.params, self.number, digest)
        return filled([start], size * len(self._held), fill)[0]

    def _judge(self) -> None:
        """Raise `ParameterError` unless the parameters satisfy the policy.

        `check` does not judge: checks reveal nothing and cost no more for longer vectors.
        """
        registered = None if self._registry is None else len(self._registry)
        self._policy.check_at_helper(self.params, registered)

    def _verify(self, record: bytes) -> tuple[int, bytes | None]:
        """Return a client's id, and the report's digest and seeds; None for a rejected box."""
        size = self.params.layout.head
        head = messages.read_head(record[:size], self.params)
        client_id = head.client_id
        end = len(record) - self.params.layout.signature
        if self._registry is not None and not self._registry.verifies(
            client_id, head.content, record[end:]
        ):
            return client_id, None
        info = messages.box_info(head, self.number)
        found = self._journal.box_key.open(record[size:end], info)
        if found is None:
            return client_id, None
        # a client that gave two helpers different seeds would cost the whole batch its sum
        for place, i in enumerate(self._held):
            seed = found[SEED_BYTES * place : SEED_BYTES * (place + 1)]
            first = ID_BYTES + seeds.COMMITMENT_BYTES * (i - 1)
            stated = record[first : first + seeds.COMMITMENT_BYTES]
            if stated != seeds.commitment(seed, self.params.digest, client_id, i):
                return client_id, None
        return client_id, head.digest + found

    def _read(self, data: bytes) -> tuple[messages.Request, bytes, Rows]:
        """Return a request, D of the list, and the seeds that were kept of each report.

        D and the masks are of the same reports, also if another thread replaces a report by
        `check`.
        """
        asked = messages.read_request(data, self.params)
        if not self._least <= asked.ids.size <= self.params.n_clients:
            why = (
                f"{asked.ids.size} clients; this helper opens {self._least} to "
                f"{self.params.n_clients}"
            )
            raise violation("reserve", "count", why)
        try:
            with self._checked_lock:
                kept = self._checked.rows_of(asked.ids)
        except KeyError as missing:
            why = (
                "its box was not checked here, or was rejected; send its box to Helper.check, "
                "or, before the first request, take the report out with Accumulator.drop"
            )
            raise violation("reserve", "unchecked", why, sender=missing.args[0]) from None
        digests, drawn = np.hsplit(kept, [DIGEST_BYTES])
        digest = messages.list_digest(self.params, asked.batch, asked.ids, digests)
        return asked, digest, drawn
