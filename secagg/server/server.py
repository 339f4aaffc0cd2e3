"""Server of the protocol, without a secret: the server learns one sum.

The application passes every message to ``receive`` and calls ``close_round`` when all have come
or at a time-out. `stages`, `sharing`, `masking` and `unmasking` have the phases, and `NEXT`
their order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress

from cryptography.hazmat.primitives.poly1305 import Poly1305

from secagg._check import as_bytes, check_kind
from secagg._secrets import Exclusive
from secagg.encoding import Entropy
from secagg.errors import (
    JournalError,
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
    TooFewSurvivors,
    Verdict,
)
from secagg.graph import SEED_BYTES
from secagg.protocol import NEXT, ClientPolicy, Phase, Registry, RoundParams, kem
from secagg.protocol.client_ids import ClientKey, identify
from secagg.protocol.identities import check_registry
from secagg.protocol.ledger import CohortLedger, open_page
from secagg.protocol.messages import pack_ids
from secagg.protocol.phases import out_of_order
from secagg.server.log import Entry, Log, check_log, first_entry, seed_of
from secagg.server.masking import Masking
from secagg.server.result import RoundResult
from secagg.server.sharing import Sharing
from secagg.server.stages import Advertising, Consistency, Stage
from secagg.server.summed import Summed
from secagg.server.unmasking import Over, Unmasking


class Server:
    """Server of a single session, from the clients' keys to the sum.

    In each phase call `receive` with every message, then `close_round`, and send the answers.

    Parameters
    ----------
    params : RoundParams
        Parameters of the round, the same as every client's.
    registry : Registry, optional
        Public identity keys. Required if `security` is "active", an error otherwise.
    policy : ClientPolicy, optional
        Policy of the clients, by default ``ClientPolicy()``. In the active variant more
        complaints than colluders convict a dealer; nothing else depends on the policy.
    journal : Log, optional
        A new ``Journal`` for these parameters. Every accepted message and every close of a
        phase is stored there before the call returns, so `resume` can continue the round.
    ledger : CohortLedger, optional
        Cohorts of earlier rounds. The server does not ask for a sum if the ledger has a cohort
        too close to the survivors. Store ``ledger.to_bytes()`` before you send the answers of
        `close_round`.
    kind : str
        Label of the kind of input in the ledger.
    graph_seed : bytes, optional
        32 secret uniform bytes that order the clients on the graph. With the bytes of an
        earlier round most clients keep their neighbours, so a `SealingKey` helps. The clients'
        ids must not be chosen after these bytes. None: fresh bytes.
    entropy : callable, optional
        Source of the random graph; replaced only to replay a round in a test.

    Raises
    ------
    ParameterError
        An argument is of the wrong type, or `graph_seed` has not 32 bytes. Or the registry is
        missing or not allowed, the journal is for other parameters, or there is a kind without
        a ledger. Or the suite is "hybrid", and the installed cryptography lacks ML-KEM.
    JournalError
        The journal already has entries, or cannot be written.
    """

    def __init__(
        self,
        params: RoundParams,
        *,
        registry: Registry | None = None,
        policy: ClientPolicy | None = None,
        journal: Log | None = None,
        ledger: CohortLedger | None = None,
        kind: str = "",
        graph_seed: bytes | None = None,
        entropy: Entropy = os.urandom,
    ) -> None:
        check_kind("params", params, RoundParams, "a secagg.RoundParams")
        check_registry(params, registry)
        if policy is not None:
            check_kind("policy", policy, ClientPolicy, "a secagg.ClientPolicy")
        if params.suite == "hybrid":
            kem.require()
        if journal is not None:
            check_log(journal, params)
        self.params = params
        self._page = open_page(ledger, kind)
        seed = entropy(SEED_BYTES) if graph_seed is None else as_bytes(graph_seed, "graph_seed")
        if len(seed) != SEED_BYTES:
            raise ParameterError(
                f"graph_seed has {len(seed)} bytes; pass {SEED_BYTES} secret random bytes"
            )
        self._stage: Stage | Over = Advertising(params, registry, seed, policy)
        self._journal, self._entries = journal, 0
        if journal is not None:
            self._write(first_entry(seed, self._page))
        self._exclusive = Exclusive()
        self._received: set[int] = set()
        self._names: dict[int, str] = {}
        # tags of every accepted message, to recognise a repeated message; under a secret key
        # Poly1305 is as good as a digest here and six times faster
        self._accepted: dict[int, set[bytes]] = {}
        self._tag_key = entropy(32)

    @classmethod
    def resume(
        cls,
        journal: Log,
        *,
        registry: Registry | None = None,
        policy: ClientPolicy | None = None,
        ledger: CohortLedger | None = None,
        kind: str = "",
        graph_seed: bytes | None = None,
    ) -> Server:
        """Return the server that wrote a journal, in the server's last state.

        The journal's messages pass the same checks again, so the server gives the same answers
        and the same sum, or fails in the same way. Send the `outbox` again. Clients without an
        acknowledgement of their message should send the message again.

        Parameters
        ----------
        journal : Log
            Journal of the server. If the journal has no entry, the round begins.
        registry : Registry, optional
            The registry of the first server, because a journal does not contain a registry.
        policy : ClientPolicy, optional
            The policy of the first server, for the same verdicts.
        ledger, kind
            Ledger and kind of the first server. A recorded cohort is not counted again.
        graph_seed : bytes, optional
            As in `Server`, for a round that begins; a journal with entries has the seed.

        Raises
        ------
        ParameterError
            `journal` is not a journal, the registry is missing or not allowed, or the first
            server had no ledger or another kind.
        JournalError
            The journal cannot be read, or its entries are not a server's.
        """
        check_log(journal)
        entries = journal.entries()
        first = next(entries, None)
        server = cls(
            journal.params,
            registry=registry,
            policy=policy,
            journal=journal if first is None else None,
            ledger=ledger,
            kind=kind,
            graph_seed=graph_seed,
        )
        if first is None:
            return server
        seed = seed_of(first, server._page)
        server._stage = Advertising(journal.params, registry, seed, policy)
        number = 1
        for number, entry in enumerate(entries, start=2):
            server._replay(number, entry)
        # after the replay, which would write every entry a second time
        server._journal, server._entries = journal, number
        return server

    def __repr__(self) -> str:
        """Show the phase and the number of messages received in this phase."""
        return f"Server(phase={self.phase}, received={len(self._received)})"

    @property
    def phase(self) -> Phase:
        """The message that the server collects now, or ``FINISHED`` or ``FAILED``."""
        return self._stage.phase

    @property
    def waiting(self) -> frozenset[int]:
        """Ids of clients with a message still missing; empty in round 0, open to all."""
        return frozenset(self._stage.expected or ()) - self._received

    @property
    def outbox(self) -> dict[int, bytes]:
        """The answers of the last `close_round`, by client; send them again after a resume."""
        return dict(self._stage.asks)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Proofs against clients that were found until now, also of a round that has failed.

        A resumed server lacks proofs made of messages that the first server rejected.
        """
        return self._stage.verdicts

    def receive(self, client_id: ClientKey, data: bytes) -> None:
        """Validate and accept a client's message; a repetition of the same bytes is ignored.

        Parameters
        ----------
        client_id : int or str
            Id of the sender, 0 ≤ id < 2^64, or the name, as authenticated by the transport.
        data : bytes
            The client's message.

        Raises
        ------
        ParameterError
            The id is not an int in this range or a name, or the message is not bytes.
        RemoteProtocolError
            The message is invalid; the server has not changed.
        LocalProtocolError
            The round is over, or another thread uses the server.
        JournalError
            The message could not be stored. The server has ended; resume the server.
        """
        u, name = identify(client_id)
        data = as_bytes(data)
        with self._exclusive:
            stage = self._running("receive")
            known = self._names.get(u, name)
            why = f"{name!r} has the id of {known!r}; rename one of them"
            stage.require(name is None or known == name, u, "sender", why)
            # before the other checks: a repeated message of an earlier phase breaks no rule
            tag = Poly1305.generate_tag(self._tag_key, data)
            if tag in self._accepted.get(u, ()):
                return
            due = stage.expected is None or u in stage.expected
            why = "this client is not in the round, or an earlier message of it was missing"
            stage.require(due, u, "unknown client", why)
            why = "another message of this client was accepted; run each client in one process"
            stage.require(u not in self._received, u, "repeated", why)
            try:
                stage.take(u, data)
                # after all checks, so that a replay of the journal rejects no message
                self._write((u, data))
                self._received.add(u)
                if name is not None:  # unknown after a resume, because a journal has ids only
                    self._names[u] = name
                self._accepted.setdefault(u, set()).add(tag)
            except RemoteProtocolError:
                raise
            except BaseException:  # neither rejected nor known to be stored: it must end
                self._stage = Over(None, resumable=self._journal is not None)
                raise

    def close_round(self) -> dict[int, bytes]:
        """Close the phase with the messages received, and return the answers by client id.

        A client without an answer takes no further part in the round. After the last phase
        there are no answers: call `result`.

        Raises
        ------
        TooFewSurvivors
            Too few messages came, or the ledger has a cohort too close to the survivors.
            Nothing has been unmasked, and the server has ended.
        RemoteProtocolError
            Too many shares are wrong, or the sum is impossible for the survivors' vectors. The
            server has ended without a result.
        LocalProtocolError
            The round is over, or another thread uses the server.
        JournalError
            The close could not be stored. The server has ended; resume the server.
        """
        with self._exclusive:
            stage = self._running("close_round")
            stage.asks = {}  # already sent; frees the memory
            try:
                # first, because a close cannot be rejected: a failed one must not be retried
                self._write((None, b""))
                closed = stage.close()
                # before any share is asked for: the sum over too close a cohort stays masked.
                # A cohort that was closed before a resume, or signed, is in the ledger already
                if self._page is not None and isinstance(closed, Summed):
                    self._page.require(pack_ids(list(closed.asked)), stage.phase)
                self._stage = _STAGES[NEXT[self.params.security][stage.phase]](closed)
                self._received = set()
            except (TooFewSurvivors, RemoteProtocolError) as error:
                # a resumed server would fail, too
                error.verdicts = stage.verdicts
                if isinstance(error, TooFewSurvivors):
                    error.disputes = stage.disputes
                self._stage = Over(None, verdicts=stage.verdicts)
                raise
            except BaseException:
                self._stage = Over(None, resumable=self._journal is not None)
                raise
            return self.outbox

    def result(self) -> RoundResult:
        """Return the sum and the survivors.

        Raises
        ------
        LocalProtocolError
            The round is not finished, or has failed.
        """
        if not isinstance(self._stage, Over) or self._stage.result is None:
            raise LocalProtocolError(
                f"there is no result in phase {self.phase}; close every phase of the round "
                "first"
            )
        return self._stage.result

    def _write(self, entry: Entry) -> None:
        if self._journal is not None:
            self._journal.append(self._entries, entry)
            self._entries += 1

    def _replay(self, number: int, entry: Entry) -> None:
        client_id, data = entry
        try:
            if client_id is not None:
                self.receive(client_id, data)
                return
            # the first server failed here, too
            with suppress(TooFewSurvivors, RemoteProtocolError):
                self.close_round()
        except (RemoteProtocolError, LocalProtocolError) as error:
            raise JournalError(f"entry {number} of the journal is rejected: {error}") from error

    def _running(self, call: str) -> Stage:
        if isinstance(self._stage, Over):
            raise out_of_order(call, self.phase, resumable=self._stage.resumable)
        return self._stage


_STAGES: Mapping[Phase, Callable[..., Stage | Over]] = {
    **{stage.phase: stage for stage in (Sharing, Masking, Consistency, Unmasking)},
    Phase.FINISHED: Over,
}
"""Class of each phase's stage. The argument is the value from `close` of the stage before."""
