"""Client of the protocol, with one method for each round of the paper.

After a mistake of the caller the client is unchanged, and the call can be repeated. An invalid
message of the server ends the client, which then drops its secrets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

from secagg._check import as_bytes
from secagg._secrets import without_frames
from secagg.client import checks
from secagg.client.complaints import signed_answer
from secagg.client.lifecycle import OneLife
from secagg.client.masked_input import Input
from secagg.client.opening import receive
from secagg.client.sharing import Sources, seal_for
from secagg.client.spending import check_allowed, spend
from secagg.client.states import (
    Advertised,
    ClientState,
    Ended,
    Entrusted,
    New,
    SealingKey,
    Shared,
)
from secagg.encoding import Vector
from secagg.encoding.clipping import is_lost, warn_of_losses
from secagg.errors import ParameterError, RemoteProtocolError
from secagg.protocol import NEXT, Phase, identities, keys, messages
from secagg.protocol.kem import SEED_BYTES as KEM_SEED_BYTES
from secagg.protocol.kem import KemPair
from secagg.protocol.masks import MaskSum, filled
from secagg.protocol.pair_masks import subtracts
from secagg.protocol.phases import out_of_order

_USER = 6
"""Frames from a warning of `Client._mask` to the caller of `Client.answer`."""
M = TypeVar("M", messages.Shares, messages.ConsistencyRequest, messages.UnmaskRequest)


class Client(OneLife):
    """One client in one round. Pass every message of the server to `answer`.

    A client cannot be copied: a copy could send another vector under the same masks. To
    continue in another process, `suspend` the client, and `restore` its state there.

    Parameters
    ----------
    client_id : int or str
        u, the id of the client, 0 ≤ u < 2^64, or the client's name (see
        `secagg.client_id`). Different for every client of the round.
    params : RoundParams
        Parameters of the round, the same as the server's.
    policy : ClientPolicy, optional
        Demands of this client on every round; by default ``ClientPolicy()``.
    identity : Identity, optional
        Signing key of this client. Required if `security` is "active", an error otherwise.
    registry : Registry, optional
        Public identity keys of all clients, from the application and never from the server.
        Required if `security` is "active", an error otherwise.
    ledger : CohortLedger, optional
        Cohorts of this client's earlier rounds. Allowed on the complete graph only: a client on
        a graph sees just its neighbours, which differ in every round. Store
        ``ledger.to_bytes()`` before you send the answers of the last two phases.
    kind : str
        Label of the kind of input in the ledger.
    sealing_key : SealingKey, optional
        Sealing key of this client for all rounds of a session, which makes the later rounds
        faster. None: a new sealing key for this round alone.
    spending : Spending, optional
        Account of this client's privacy, such as a `secagg.privacy.PrivacyLedger`, for all
        clients with the same data. Sums without noise, or beyond the account, raise
        `BudgetSpent`: before the keys, or before the masked input. The loss is spent before the
        masked input exists outside this client. It holds against the parties that
        `secagg.privacy.against` names.
    entropy : callable, optional
        Source of secret bytes; replace it only to replay a round in a test.

    Attributes
    ----------
    phase : Phase
        The message that this client sends next.
    client_id : int
        The id of the client, also of a client with a name.
    clipped : int
        Number of clipped elements of the vector; 0 before round 2. With `secagg.Bounded`, 1 if
        the vector was clipped.

    Raises
    ------
    ParameterError
        An argument has a wrong type or range, or `params` do not satisfy the policy. Or the
        identity or registry is missing, not allowed or does not match. Or there is a ledger on
        a graph, a kind without a ledger, or the sealing key of another client. Or the suite is
        "hybrid", and the installed cryptography lacks ML-KEM.
    """

    @without_frames
    def answer(
        self,
        data: bytes,
        vector: Vector | None = None,
        weight: int | None = None,
        *,
        lowered: bool = False,
    ) -> bytes:
        """Return this client's reply to a message of the server, in any phase.

        Parameters
        ----------
        data : bytes
            The server's message; ignored in round 0, which has no such message (pass ``b""``).
        vector : array, shape (d,), optional
            The client's input, in a dtype of the encoding. Needed in phase masked_input and
            ignored in all other phases.
        weight : int, optional
            Factor of the vector, 0 ≤ weight ≤ max_weight. Needed in phase masked_input if the
            parameters have a max_weight, and an error in that phase if they have none.
        lowered : bool
            True: the caller lowered the weight to max_weight. With ``params.count_clipped`` the
            weight then counts as one clipped element, if an element of the vector is unclipped.

        Warns
        -----
        ClippingWarning
            Elements of the vector were clipped; the message has their number.
        PrecisionWarning
            All elements are below half a step of the encoding, and some elements are not 0.

        Raises
        ------
        ParameterError
            The vector or weight is missing or invalid, or the message is not bytes. The client
            is unchanged: correct the argument and call again.
        BudgetSpent
            `spending` has no room for this sum; a ParameterError. The client is unchanged.
        LocalProtocolError
            The client has ended, was forked, or is in use by another thread.
        RemoteProtocolError
            The message breaks the protocol or this client's policy; the client has ended.
        """
        phase = self.phase
        if phase not in _STEPS:
            raise out_of_order("answer", phase)
        if phase is not Phase.MASKED_INPUT:
            return self._run(phase, b"" if phase is Phase.ADVERTISE_KEYS else data)
        if vector is None:
            raise ParameterError(
                "no vector was given in phase masked_input; call answer(data, vector)"
            )
        return self._run(phase, data, vector=vector, weight=weight, lowered=lowered)

    @without_frames
    def advertise_keys(self) -> bytes:
        """Round 0: return the public keys of the pairs c_u, new or kept, and s_u, always new.

        The methods of all rounds raise the errors of `answer`. They also raise
        `LocalProtocolError` if the client is in the phase of another round.
        """
        return self._run(Phase.ADVERTISE_KEYS, b"")

    @without_frames
    def share_keys(self, roster: bytes) -> bytes:
        """Round 1: return shares of b_u and of the seed of s_u, sealed for each holder."""
        return self._run(Phase.SHARE_KEYS, roster)

    @without_frames
    def masked_input(
        self, shares: bytes, vector: Vector, weight: int | None = None, *, lowered: bool = False
    ) -> bytes:
        """Round 2: encode the vector, add all its masks and return the masked input y_u."""
        given = {"vector": vector, "weight": weight, "lowered": lowered}
        return self._run(Phase.MASKED_INPUT, shares, **given)

    @without_frames
    def check_consistency(self, survivors: bytes) -> bytes:
        """Round 3, active variant only: return a signature over U3, the survivors to sum."""
        return self._run(Phase.CONSISTENCY_CHECK, survivors)

    @without_frames
    def unmask(self, request: bytes) -> bytes:
        """Round 4: return shares of the survivors' b and of the dropped-out clients' s.

        An invalid request ends the client and reveals nothing.
        """
        return self._run(Phase.UNMASKING, request)

    def _run(self, phase: Phase, data: bytes, **given: object) -> bytes:
        """Return the message of a phase, if the phase is due; only `_mask` takes more.

        The client ends if the step of the phase raises RemoteProtocolError.
        """
        call, kind, step = _STEPS[phase]
        data = as_bytes(data)
        with self._exclusive:
            state = self._state
            if state.phase is not phase or not isinstance(state, kind):
                raise out_of_order(call, state.phase)
            try:
                return step(self, state, data, **given)
            except RemoteProtocolError:
                self._state = Ended(Phase.FAILED)
                raise

    def _advertise(self, state: New, _data: bytes) -> bytes:
        if self._spending is not None:
            check_allowed(self._spending, self.params)
        self._exclusive.bind()  # first: a fork meanwhile has the secrets, too
        digest = self.params.digest
        secret = identities.hedging_secret(self._identity)
        sealing = self._sealing_key or SealingKey(self.client_id)
        sealing.draw(lambda: self._hedged(b"sealing seed", secret, digest)(keys.SEED_BYTES))
        drawn = self._hedged(b"masking seed", secret, digest)(keys.SEED_BYTES)
        mask_pair, kem_pair = keys.KeyPair.masking(drawn), None
        if self.params.suite == "hybrid":  # new also where the sealing pair is kept
            drawn = self._hedged(b"kem seed", secret, digest)(KEM_SEED_BYTES)
            kem_pair = KemPair(drawn)
        # the state alone keeps the sealing key from now on, and drops it after round 1
        due = NEXT[self.params.security][state.phase]
        advertised = Advertised(due, sealing, mask_pair, kem_pair)
        self._state, self._sealing_key = advertised, None
        publics, signature = advertised.publics, b""
        if self._identity is not None:
            signed = identities.signed_keys(digest, self.client_id, publics)
            signature = self._identity.sign(signed)
        own = self.params.to_bytes()
        return messages.encode(messages.AdvertiseKeys(self.client_id, own, *publics, signature))

    def _share(self, state: Advertised, data: bytes) -> bytes:
        me, params, kind = self.client_id, self.params, messages.Roster
        roster = messages.decode(data, kind, params, sender=None, phase=state.phase)
        own_keys = (me, state.publics)
        holders = checks.check_roster(roster, params, self.policy, own_keys, self._registry)
        session = keys.session_id(params.digest, roster.digest)
        due = NEXT[params.security][state.phase]
        sources = Sources(self._hedged, self._encapsulate)
        self._state, message = seal_for(
            holders, state, me, session, params, due, self._identity, sources
        )
        return messages.encode(message)

    def _mask(
        self,
        state: Shared,
        data: bytes,
        vector: Vector,
        weight: int | None,
        lowered: bool,
        warn: bool = True,
    ) -> bytes:
        me, params = self.client_id, self.params
        given = Input(vector, weight, params, self._entropy, lowered=lowered)
        message = self._read(data, messages.Shares, state)
        holders = state.peers.ids.tolist()
        senders = checks.check_senders(message.senders, holders, params, self.policy, me)
        received = receive(senders, message, state, me, params, self._identity, self._registry)
        masks = MaskSum()
        masks.add(keys.self_mask_key(state.seed, state.session, me))
        masks.add(received.mask_keys, negate=subtracts(me, received.ids))
        noise = None
        if params.share is not None:
            # drawn anew at each call: the same noise twice would cancel in a difference
            secret = identities.hedging_secret(self._identity)
            key = self._hedged(b"noise", secret, state.session)(keys.MASK_KEY_BYTES)
            noise = params.share.adder(key, params.ring)
        size = params.ring.packed_bytes(params.elements)
        head = messages.start(received.message, size)
        write = partial(given.write, masks=masks, noise=noise)
        masked, clipped = filled([head], size, write)
        if warn:  # before the state changes: an application may make errors of warnings
            lost = is_lost(vector, params.encoding)
            warn_of_losses(params.encoding, clipped, vector.size, lost, stacklevel=_USER)
        if self._spending is not None:
            # last of all that can fail: for an invalid vector, which a door replaces by zeros,
            # as much is spent as for any other
            spend(self._spending, params)
        due = NEXT[params.security][state.phase]
        self._state = Entrusted(due, state.session, received.self_shares, received.mask_shares)
        self.clipped = clipped
        return masked

    def _sign(self, state: Entrusted, data: bytes) -> bytes:
        me, session = self.client_id, state.session
        survivors = self._read(data, messages.ConsistencyRequest, state).survivors
        checks.check_survivors(survivors, state.self_shares, self.params, self.policy, me)
        # last: a request that fails another check must not leave a cohort in the ledger
        if self._page is not None:
            checks.check_ledger(self._page, survivors, state.phase)
        assert self._identity is not None, "see `check_identity`"  # noqa: S101
        signature = self._identity.sign(identities.signed_survivors(session, me, survivors))
        due = NEXT[self.params.security][state.phase]
        self._state = replace(state, phase=due, signed=survivors)
        return messages.encode(messages.ConsistencySignature(me, session, signature))

    def _reveal(self, state: Entrusted, data: bytes) -> bytes:
        me, session, params, policy = self.client_id, state.session, self.params, self.policy
        message = self._read(data, messages.UnmaskRequest, state)
        request = (message.survivors, message.dropped)
        survivors, dropped = checks.check_unmask_request(
            request, state.self_shares, params, policy, me
        )
        checks.check_agreement(message, state.signed, session, params, policy, self._registry)
        if self._page is not None:
            checks.check_ledger(self._page, message.survivors, state.phase)
        revealed = [state.self_shares[v] for v in survivors]
        revealed += [state.mask_shares[v] for v in dropped]
        shares, answer = b"".join(revealed), b""
        if self._identity is not None:
            answer = self._identity.sign(signed_answer(session, me, survivors, dropped, shares))
        # the secrets go before the answer leaves, so that no second request is answered
        self._state = Ended(NEXT[params.security][state.phase])
        return messages.encode(messages.UnmaskShares(me, session, shares, answer))

    def _read(self, data: bytes, kind: type[M], state: Shared | Entrusted) -> M:
        """Return a message of this client's session."""
        message = messages.decode(data, kind, self.params, sender=None, phase=state.phase)
        if message.session != state.session:
            checks.reject(state.phase, "session", "the message belongs to another session")
        return message


@without_frames
def answer_quietly(
    client: Client,
    data: bytes,
    vector: Vector | None = None,
    weight: int | None = None,
    *,
    lowered: bool = False,
) -> bytes:
    """Return ``client.answer`` without warnings, for doors that warn in their own way.

    A filter that makes errors of warnings must not change the answer at a door.
    """
    if client.phase is not Phase.MASKED_INPUT or vector is None:
        return client.answer(data, vector, weight, lowered=lowered)
    given = {"vector": vector, "weight": weight, "lowered": lowered, "warn": False}
    return client._run(Phase.MASKED_INPUT, data, **given)


_STEPS: Mapping[Phase, tuple[str, type[ClientState], Callable[..., bytes]]] = {
    Phase.ADVERTISE_KEYS: ("advertise_keys", New, Client._advertise),
    Phase.SHARE_KEYS: ("share_keys", Advertised, Client._share),
    Phase.MASKED_INPUT: ("masked_input", Shared, Client._mask),
    Phase.CONSISTENCY_CHECK: ("check_consistency", Entrusted, Client._sign),
    Phase.UNMASKING: ("unmask", Entrusted, Client._reveal),
}
"""Public method of each phase, class of the client's state, and function of the message."""
