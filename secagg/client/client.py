"""The client of the protocol: bytes in, bytes out, one method for each round of the paper.

A client lives for one session and cannot be copied or stored: a second life could send
another vector under the same masks. A mistake of the caller leaves it where it was; a
violation by the server ends it, and its secrets are dropped.
"""

from __future__ import annotations

import os

from secagg import _fast
from secagg._check import as_bytes, check_integer, check_kind
from secagg.client.checks import (
    check_agreement,
    check_roster,
    check_senders,
    check_survivors,
    check_unmask_request,
)
from secagg.client.lifecycle import OneLife
from secagg.client.masked_input import add_masks, encode_input
from secagg.client.sealing import open_from, seal_for
from secagg.client.states import Advertised, Agreed, Ended, Masked, New, Shared
from secagg.encoding import Entropy, Vector
from secagg.protocol import ClientPolicy, Identity, Phase, Registry, RoundParams, keys
from secagg.protocol.identities import check_identity, signed_keys, signed_survivors
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
)

__all__ = ["Client"]


class Client(OneLife):
    """One client u in one session.

    Parameters
    ----------
    client_id : int
        0 ≤ u < 2^64, unique in the cohort.
    params : RoundParams
        The same as the server's.
    policy : ClientPolicy, optional
        What this client insists on, whatever the server asks.
    identity : Identity, optional
        Its signing key; required exactly when the parameters say "active".
    registry : Registry, optional
        The public keys of all who may take part, its own among them; likewise. From the
        application, never from the server.
    entropy : callable, optional
        Source of secret bytes; replace it only to replay a round in a test.

    Attributes
    ----------
    phase : Phase
        The message this client sends next.
    clipped : int
        Elements of its vector that were clipped, once the masked input is made.

    Raises
    ------
    ParameterError
        An argument is of the wrong type, the id is out of range, the parameters fall short of
        the policy, or the identity or registry is missing, not wanted or does not match.
        Nothing secret has been computed then.
    """

    def __init__(
        self,
        client_id: int,
        params: RoundParams,
        *,
        policy: ClientPolicy | None = None,
        identity: Identity | None = None,
        registry: Registry | None = None,
        entropy: Entropy = os.urandom,
    ) -> None:
        super().__init__()
        check_integer("client_id", client_id, 0, (1 << 64) - 1)
        check_kind("params", params, RoundParams, "a secagg.RoundParams")
        if policy is not None:
            check_kind("policy", policy, ClientPolicy, "a secagg.ClientPolicy")
        self.client_id = int(client_id)
        self.params = params
        self.policy = policy or ClientPolicy()
        self.policy.check(params)
        check_identity(self.client_id, params, identity, registry)
        self.clipped = 0
        self._identity = identity
        self._registry = registry
        self._entropy = entropy

    def __repr__(self) -> str:
        """Show where the client stands and nothing it holds."""
        return f"Client({self.client_id}, phase={self.phase})"

    def advertise_keys(self) -> bytes:
        """Round 0: make fresh key pairs c_u and s_u and return their public halves.

        Raises
        ------
        LocalProtocolError
            Called out of order.
        """
        return self._guarded(self._advertise)

    def share_keys(self, roster: bytes) -> bytes:
        """Round 1: share b_u and s_u's seed among the holders, sealed for each of them.

        Parameters
        ----------
        roster : bytes
            What the server sent.

        Raises
        ------
        LocalProtocolError
            Called out of order.
        RemoteProtocolError
            The roster breaks the protocol or this client's policy; the client has ended.
        """
        return self._guarded(lambda: self._share(as_bytes(roster)))

    def masked_input(self, shares: bytes, vector: Vector, weight: int | None = None) -> bytes:
        """Round 2: return y_u, the encoded vector under all its masks.

        Parameters
        ----------
        shares : bytes
            What the server sent.
        vector : array, shape (d,)
            Of the dtype the encoding asks for.
        weight : int, optional
            0 ≤ weight ≤ max_weight; required exactly when the parameters have a max_weight.

        Raises
        ------
        ParameterError
            The vector or the weight is refused; nothing has changed, call again.
        LocalProtocolError
            Called out of order.
        RemoteProtocolError
            The shares break the protocol or this client's policy; the client has ended.
        """
        return self._guarded(lambda: self._mask(as_bytes(shares), vector, weight))

    def check_consistency(self, survivors: bytes) -> bytes:
        """Round 3, active variant: sign U3, the survivors whose inputs are to be summed.

        Parameters
        ----------
        survivors : bytes
            What the server sent.

        Raises
        ------
        LocalProtocolError
            Called out of order, or in the semi-honest variant.
        RemoteProtocolError
            The survivors break the protocol or this client's policy; the client has ended.
        """
        return self._guarded(lambda: self._sign(as_bytes(survivors)))

    def unmask(self, request: bytes) -> bytes:
        """Round 4: give b-shares of the survivors and s-shares of the dropped, once.

        Parameters
        ----------
        request : bytes
            What the server sent.

        Raises
        ------
        LocalProtocolError
            Called out of order, also when it is called a second time.
        RemoteProtocolError
            The request breaks the protocol or this client's policy; the client has ended and
            has revealed nothing.
        """
        return self._guarded(lambda: self._reveal(as_bytes(request)))

    def _advertise(self) -> bytes:
        self._due(New, "advertise_keys")
        seal_pair = keys.KeyPair.generate(self._entropy)
        mask_pair = keys.KeyPair.generate(self._entropy)
        self._state = Advertised(seal_pair, mask_pair)
        self._stay_in_this_process()
        public = (seal_pair.public, mask_pair.public)
        digest = self.params.digest
        signature = self._signature(signed_keys(digest, self.client_id, *public))
        return encode(AdvertiseKeys(self.client_id, digest, *public, signature))

    def _share(self, data: bytes) -> bytes:
        state = self._due(Advertised, "share_keys")
        roster = decode(data, Roster, self.params, sender=None, phase=self.phase)
        me = self.client_id
        own_keys = (me, state.seal_pair.public, state.mask_pair.public)
        holders = check_roster(roster, self.params, self.policy, own_keys, self._registry)
        session = keys.session_id(self.params.digest, roster.digest)
        seed = self._entropy(keys.SEED_BYTES)
        own_share, sealed, opening = seal_for(
            holders, state, seed, me, session, self.params.threshold, self._entropy
        )
        publics = {v: mask_public for v, (_, mask_public) in holders.items()}
        self._state = Shared(session, state.mask_pair, seed, own_share, publics, opening)
        commitment = keys.commitment(seed, session, me)
        return encode(ShareKeys(me, session, commitment, sealed))

    def _mask(self, data: bytes, vector: Vector, weight: int | None) -> bytes:
        state = self._due(Shared, "masked_input")
        values, clipped = encode_input(vector, weight, self.params, self._entropy)
        message = decode(data, Shares, self.params, sender=None, phase=self.phase)
        self._check_session(message, state.session)
        senders = check_senders(
            message.senders, state.opening, self.params, self.policy, self.client_id
        )
        entrusted = open_from(senders, message.sealed, state, self.client_id)
        add_masks(values, self.params, state, self.client_id, senders)
        self._state = Masked(entrusted) if self.params.active else Agreed(entrusted, None)
        self.clipped = clipped
        packed = _fast.pack_bits(values, self.params.ring.bits)
        return encode(MaskedInput(self.client_id, state.session, packed))

    def _sign(self, data: bytes) -> bytes:
        held = self._due(Masked, "check_consistency").entrusted
        me, session, params = self.client_id, held.session, self.params
        message = decode(data, ConsistencyRequest, params, sender=None, phase=self.phase)
        self._check_session(message, session)
        check_survivors(message, held.self_shares, params, self.policy, me)
        signature = self._signature(signed_survivors(session, me, message.survivors))
        self._state = Agreed(held, message.survivors)
        return encode(ConsistencySignature(me, session, signature))

    def _reveal(self, data: bytes) -> bytes:
        state = self._due(Agreed, "unmask")
        held, params = state.entrusted, self.params
        message = decode(data, UnmaskRequest, params, sender=None, phase=self.phase)
        self._check_session(message, held.session)
        survivors, dropped = check_unmask_request(
            (message.survivors, message.dropped),
            held.self_shares,
            params,
            self.policy,
            self.client_id,
        )
        agreed, registry = state.survivors, self._registry
        check_agreement(message, agreed, held.session, params, self.policy, registry)
        revealed = [held.self_shares[v] for v in survivors]
        revealed += [held.mask_shares[v] for v in dropped]
        self._state = Ended(Phase.FINISHED)
        return encode(UnmaskShares(self.client_id, held.session, b"".join(revealed)))

    def _signature(self, content: bytes) -> bytes:
        return b"" if self._identity is None else self._identity.sign(content)

    def _check_session(
        self, message: Shares | ConsistencyRequest | UnmaskRequest, session: bytes
    ) -> None:
        if message.session != session:
            raise self._violation("session", "a message of another session")
