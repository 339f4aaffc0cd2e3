"""Client of the protocol, with one method for each round of the paper.

After a mistake of the caller the client is unchanged, and the call can be repeated. An invalid
message of the server ends the client, which then drops its secrets.
"""

from __future__ import annotations

import os
import struct
from dataclasses import replace

from secagg._check import as_bytes, check_kind
from secagg._filled import filled
from secagg._forks import process
from secagg._hedging import Hedged
from secagg._secrets import without_frames
from secagg.client.checks import (
    check_agreement,
    check_ledger,
    check_roster,
    check_senders,
    check_survivors,
    check_unmask_request,
    reject,
)
from secagg.client.lifecycle import OneLife
from secagg.client.masked_input import Input, masks_of
from secagg.client.sealing import open_from, seal_for
from secagg.client.sealing_key import SealingKey
from secagg.client.states import Advertised, Ended, Entrusted, New, Shared
from secagg.encoding import Entropy, Vector
from secagg.encoding.clipping import warn_of_losses
from secagg.errors import ParameterError
from secagg.protocol import ClientPolicy, Identity, Phase, Registry, RoundParams, keys
from secagg.protocol.client_ids import ClientKey, identify
from secagg.protocol.identities import (
    check_identity,
    hedging_secret,
    signed_keys,
    signed_survivors,
)
from secagg.protocol.ledger import CohortLedger, open_page
from secagg.protocol.messages import (
    AdvertiseKeys,
    ConsistencyRequest,
    ConsistencySignature,
    MaskedInput,
    Roster,
    ShareKeys,
    Shares,
    UnmaskRequest,
    UnmaskShares,
    decode,
    encode,
    pack_ids,
    start,
)
from secagg.protocol.phases import out_of_order

_USER = 8
"""Frames from a warning of `Client._mask` to the caller of `Client.answer`."""


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
    entropy : callable, optional
        Source of secret bytes; replace it only to replay a round in a test.

    Attributes
    ----------
    phase : Phase
        The message that this client sends next.
    client_id : int
        The id of the client, also of a client with a name.
    clipped : int
        Number of clipped elements of the vector; 0 before round 2.

    Raises
    ------
    ParameterError
        An argument has a wrong type or range, or `params` do not satisfy the policy. Or the
        identity or registry is missing, not allowed or does not match. Or there is a ledger on
        a graph, a kind without a ledger, or the sealing key of another client.
    """

    @without_frames
    def __init__(
        self,
        client_id: ClientKey,
        params: RoundParams,
        *,
        policy: ClientPolicy | None = None,
        identity: Identity | None = None,
        registry: Registry | None = None,
        ledger: CohortLedger | None = None,
        kind: str = "",
        sealing_key: SealingKey | None = None,
        entropy: Entropy = os.urandom,
    ) -> None:
        own_id, _ = identify(client_id)
        check_kind("params", params, RoundParams, "a secagg.RoundParams")
        if policy is not None:
            check_kind("policy", policy, ClientPolicy, "a secagg.ClientPolicy")
        super().__init__(own_id, params)
        self.policy = policy or ClientPolicy()
        check_identity(self.client_id, params, identity, registry)
        self.policy.check(params, 0 if registry is None else len(registry))
        self._page = open_page(ledger, kind)
        if sealing_key is not None:
            check_kind("sealing_key", sealing_key, SealingKey, "a secagg.SealingKey")
            if sealing_key.client_id != own_id:
                raise ParameterError(
                    f"sealing_key is of client {sealing_key.client_id}, and this is client "
                    f"{own_id}; give each client its own"
                )
        if ledger is not None and params.neighbours is not None:
            raise ParameterError(
                f"neighbours is {params.neighbours}: a client on a graph sees only its "
                "neighbours and cannot compare cohorts; give the ledger to the server"
            )
        self._identity = identity
        self._registry = registry
        self._sealing_key = sealing_key
        self._entropy = entropy

    def __repr__(self) -> str:
        return f"Client({self.client_id}, phase={self.phase})"

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
        LocalProtocolError
            The client has ended, was forked, or is in use by another thread.
        RemoteProtocolError
            The message breaks the protocol or this client's policy; the client has ended.
        """
        match self.phase:
            case Phase.ADVERTISE_KEYS:
                return self.advertise_keys()
            case Phase.SHARE_KEYS:
                return self.share_keys(data)
            case Phase.MASKED_INPUT:
                if vector is None:
                    raise ParameterError(
                        "no vector was given in phase masked_input; call answer(data, vector)"
                    )
                return self._masked(data, vector, weight, lowered)
            case Phase.CONSISTENCY_CHECK:
                return self.check_consistency(data)
            case Phase.UNMASKING:
                return self.unmask(data)
            case ended:
                raise out_of_order("answer", ended)

    @without_frames
    def advertise_keys(self) -> bytes:
        """Round 0: return the public keys of the pairs c_u, new or kept, and s_u, always new.

        The methods of all rounds raise the errors of `answer`. They also raise
        `LocalProtocolError` if the client is in the phase of another round.
        """
        return self._guarded(self._advertise)

    @without_frames
    def share_keys(self, roster: bytes) -> bytes:
        """Round 1: return shares of b_u and of the seed of s_u, sealed for each holder."""
        return self._guarded(lambda: self._share(as_bytes(roster)))

    @without_frames
    def masked_input(
        self,
        shares: bytes,
        vector: Vector,
        weight: int | None = None,
        *,
        lowered: bool = False,
    ) -> bytes:
        """Round 2: encode the vector, add all its masks and return the masked input y_u."""
        return self._masked(shares, vector, weight, lowered)

    @without_frames
    def check_consistency(self, survivors: bytes) -> bytes:
        """Round 3, active variant only: return a signature over U3, the survivors to sum."""
        return self._guarded(lambda: self._sign(as_bytes(survivors)))

    @without_frames
    def unmask(self, request: bytes) -> bytes:
        """Round 4: return shares of the survivors' b and of the dropped-out clients' s.

        An invalid request ends the client and reveals nothing.
        """
        return self._guarded(lambda: self._reveal(as_bytes(request)))

    def _masked(self, data: bytes, vector: Vector, weight: int | None, lowered: bool) -> bytes:
        return self._guarded(
            lambda: self._mask(as_bytes(data), vector, weight, lowered, warn=True)
        )

    def _advertise(self) -> bytes:
        self._due(Phase.ADVERTISE_KEYS, New, "advertise_keys")
        self._process = process()  # first: a fork meanwhile has the secrets, too
        digest = self.params.digest
        secret = hedging_secret(self._identity)
        sealing = self._sealing_key or SealingKey(self.client_id)
        sealing.draw(lambda: self._hedged(b"sealing seed", secret, digest)(keys.SEED_BYTES))
        mask_pair = keys.KeyPair.generate(self._hedged(b"masking seed", secret, digest))
        # the state alone keeps the sealing key from now on, and drops it after round 1
        self._state, self._sealing_key = Advertised(self._next(), sealing, mask_pair), None
        public = (sealing.pair.public, mask_pair.public)
        signature = self._signature(signed_keys(digest, self.client_id, *public))
        own = self.params.to_bytes()
        return encode(AdvertiseKeys(self.client_id, own, *public, signature))

    def _share(self, data: bytes) -> bytes:
        state = self._due(Phase.SHARE_KEYS, Advertised, "share_keys")
        roster = decode(data, Roster, self.params, sender=None, phase=self.phase)
        me = self.client_id
        own_keys = (me, state.sealing.pair.public, state.mask_pair.public)
        holders = check_roster(roster, self.params, self.policy, own_keys, self._registry)
        session = keys.session_id(self.params.digest, roster.digest)
        # b must stay secret when the server rebuilds the masking seed, which cannot hedge b
        seed = self._hedged(b"b", state.sealing.pair.seed, session)(keys.SEED_BYTES)
        threshold = self.params.threshold
        coefficients = self._hedged(
            b"shares",
            seed + state.mask_pair.seed,
            session,
            struct.pack("<Q", threshold) + pack_ids(tuple(holders)),
        )
        made = seal_for(holders, state, seed, me, session, threshold, coefficients)
        self._state = Shared(
            self._next(), session, seed, made.own_share, made.mask_keys, made.opening
        )
        commitment = keys.commitment(seed, session, me)
        return encode(ShareKeys(me, session, commitment, made.sealed))

    def _mask(
        self, data: bytes, vector: Vector, weight: int | None, lowered: bool, *, warn: bool
    ) -> bytes:
        state = self._due(Phase.MASKED_INPUT, Shared, "masked_input")
        given = Input(vector, weight, self.params, self._entropy, lowered=lowered)
        message = decode(data, Shares, self.params, sender=None, phase=self.phase)
        self._check_session(message, state.session)
        senders = check_senders(
            message.senders, state.opening, self.params, self.policy, self.client_id
        )
        opened = open_from(senders, message.sealed, state, self.client_id)
        masks = masks_of(state, self.client_id, senders)
        size = self.params.ring.packed_bytes(self.params.elements)
        head = start(MaskedInput(self.client_id, state.session, b""), size)
        masked, clipped = filled([head], size, lambda packed: given.write(packed, masks))
        if warn:  # before the state changes: an application may make errors of warnings
            warn_of_losses(vector, clipped, self.params.encoding, stacklevel=_USER)
        self._state = Entrusted(self._next(), state.session, *opened)
        self.clipped = clipped
        return masked

    def _sign(self, data: bytes) -> bytes:
        state = self._due(Phase.CONSISTENCY_CHECK, Entrusted, "check_consistency")
        me, session, params = self.client_id, state.session, self.params
        message = decode(data, ConsistencyRequest, params, sender=None, phase=self.phase)
        self._check_session(message, session)
        check_survivors(message, state.self_shares, params, self.policy, me)
        # last: a request that fails another check must not leave a cohort in the ledger
        check_ledger(self._page, message.survivors, self.phase)
        signature = self._signature(signed_survivors(session, me, message.survivors))
        self._state = replace(state, phase=self._next(), signed=message.survivors)
        return encode(ConsistencySignature(me, session, signature))

    def _reveal(self, data: bytes) -> bytes:
        state = self._due(Phase.UNMASKING, Entrusted, "unmask")
        me, session, params, policy = self.client_id, state.session, self.params, self.policy
        message = decode(data, UnmaskRequest, params, sender=None, phase=self.phase)
        self._check_session(message, session)
        request = (message.survivors, message.dropped)
        survivors, dropped = check_unmask_request(
            request, state.self_shares, params, policy, me
        )
        check_agreement(message, state.signed, session, params, policy, self._registry)
        check_ledger(self._page, message.survivors, self.phase)
        revealed = [state.self_shares[v] for v in survivors]
        revealed += [state.mask_shares[v] for v in dropped]
        # the secrets go before the answer leaves, so that no second request is answered
        self._state = Ended(self._next())
        return encode(UnmaskShares(me, session, b"".join(revealed)))

    def _hedged(
        self, purpose: bytes, secret: bytes, context: bytes, more: bytes = b""
    ) -> Entropy:
        """Return the source of random bytes for a purpose (docs/protocol.md, §5.13)."""
        about = context + struct.pack("<Q", self.client_id) + more
        return Hedged(self._entropy, secret, b"secagg/2 hedged " + purpose + about)

    def _signature(self, content: bytes) -> bytes:
        return b"" if self._identity is None else self._identity.sign(content)

    def _check_session(
        self, message: Shares | ConsistencyRequest | UnmaskRequest, session: bytes
    ) -> None:
        if message.session != session:
            reject(self.phase, "session", "the message belongs to another session")


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
    return client._guarded(
        lambda: client._mask(as_bytes(data), vector, weight, lowered, warn=False)
    )
