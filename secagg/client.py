"""The client of the protocol: bytes in, bytes out, one method for each round of the paper.

A client lives for one session and cannot be copied or stored: a second life could send
another vector under the same masks. A mistake of the caller leaves it where it was; a
violation by the server ends it, and its secrets are dropped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeVar

import numpy as np

from secagg import _fast, keys, masks, shamir
from secagg.client_state import Advertised, ClientState, Ended, Masked, New, Shared
from secagg.errors import LocalProtocolError, ParameterError, RemoteProtocolError
from secagg.field import M61
from secagg.messages import (
    SEALED_BYTES,
    SHARE_BYTES,
    AdvertiseKeys,
    MaskedInput,
    Roster,
    ShareKeys,
    Shares,
    UnmaskRequest,
    UnmaskShares,
    decode,
    encode,
)
from secagg.params import Entropy, RoundParams, Vector, check_integer
from secagg.policy import ClientPolicy
from secagg.ring import Lanes
from secagg.rounds import (
    Phase,
    check_roster,
    check_senders,
    check_unmask_request,
    out_of_order,
)

__all__ = ["Client"]

S = TypeVar("S")


class Client:
    """One client u in one session.

    Parameters
    ----------
    client_id : int
        0 ≤ u < 2^64, unique in the cohort.
    params : RoundParams
        The same as the server's.
    policy : ClientPolicy, optional
        What this client insists on, whatever the server asks.
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
        The id is out of range or the parameters fall short of the policy. Nothing secret has
        been computed then.
    """

    def __init__(
        self,
        client_id: int,
        params: RoundParams,
        *,
        policy: ClientPolicy | None = None,
        entropy: Entropy = os.urandom,
    ) -> None:
        check_integer("client_id", client_id, 0, (1 << 64) - 1)
        self.client_id = client_id
        self.params = params
        self.policy = policy or ClientPolicy()
        self.policy.check(params)
        self.clipped = 0
        self._entropy = entropy
        self._state: ClientState = New()

    @property
    def phase(self) -> Phase:
        """The message this client sends next."""
        return self._state.phase

    def __repr__(self) -> str:
        """Show where the client stands and nothing it holds."""
        return f"Client({self.client_id}, phase={self.phase})"

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or stored."""
        raise LocalProtocolError(
            "a client cannot be copied, pickled or resumed: its masks are for one vector; "
            "make a new client for a new session"
        )

    def advertise_keys(self) -> bytes:
        """Round 0: make fresh key pairs c_u and s_u and return their public halves.

        Raises
        ------
        LocalProtocolError
            Called out of order.
        """
        self._due(New, "advertise_keys")
        seal_pair = keys.KeyPair.generate(self._entropy)
        mask_pair = keys.KeyPair.generate(self._entropy)
        self._state = Advertised(seal_pair, mask_pair)
        return encode(
            AdvertiseKeys(
                self.client_id, self.params.digest, seal_pair.public, mask_pair.public
            )
        )

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
        state = self._due(Advertised, "share_keys")
        with self._ending_on_violation():
            message = decode(roster, Roster, self.params, sender=None, phase=self.phase)
            self._state, answer = self._share(state, message)
        return answer

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
        state = self._due(Shared, "masked_input")
        values, clipped = self._encode(vector, weight)
        with self._ending_on_violation():
            message = decode(shares, Shares, self.params, sender=None, phase=self.phase)
            if message.session != state.session:
                raise self._violation("session", "these shares are of another session")
            masked = self._open(state, message)
            self._mask(state, [v for v in masked.self_shares if v != self.client_id], values)
        self.clipped = clipped
        self._state = masked
        packed = _fast.pack_bits(values, self.params.ring.bits)
        return encode(MaskedInput(self.client_id, state.session, packed))

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
        state = self._due(Masked, "unmask")
        with self._ending_on_violation():
            message = decode(request, UnmaskRequest, self.params, sender=None, phase=self.phase)
            if message.session != state.session:
                raise self._violation("session", "this request is of another session")
            survivors, dropped = check_unmask_request(
                (message.survivors, message.dropped),
                state.self_shares,
                self.params,
                self.policy,
                self.client_id,
            )
        revealed = [state.self_shares[v] for v in survivors]
        revealed += [state.mask_shares[v] for v in dropped]
        self._state = Ended(Phase.FINISHED)
        return encode(UnmaskShares(self.client_id, state.session, b"".join(revealed)))

    def _share(self, state: Advertised, roster: Roster) -> tuple[Shared, bytes]:
        me = self.client_id
        own_keys = (me, state.seal_pair.public, state.mask_pair.public)
        holders = check_roster(roster, self.params, self.policy, own_keys)
        session = keys.session_id(self.params.digest, roster.digest)
        seed = self._entropy(keys.SEED_BYTES)
        limbs = np.concatenate([shamir.to_limbs(seed), shamir.to_limbs(state.mask_pair.seed)])
        points = np.arange(1, len(holders) + 1, dtype=np.uint64)
        rows = shamir.split_limbs(limbs, self.params.threshold, points, self._entropy)
        share_of = dict(zip(holders, rows.astype("<u8"), strict=True))
        own_share = share_of.pop(me).tobytes()[:SHARE_BYTES]
        sealed, opening = [], {}
        for v, row in share_of.items():
            shared = state.seal_pair.agree(holders[v][0])
            if shared is None:
                raise self._violation("public key", f"client {v}'s sealing key is of low order")
            key, opening[v] = keys.seal_keys(shared, session, me, v)
            sealed.append(keys.seal(key, session, me, v, row.tobytes()))
        publics = {v: mask_public for v, (_, mask_public) in holders.items()}
        commitment = keys.commitment(seed, session, me)
        answer = encode(ShareKeys(me, session, commitment, b"".join(sealed)))
        return Shared(session, state.mask_pair, seed, own_share, publics, opening), answer

    def _encode(self, vector: Vector, weight: int | None) -> tuple[Lanes, int]:
        params = self.params
        if weight is None and params.max_weight is not None:
            raise ParameterError(f"a weight is needed, between 0 and {params.max_weight}")
        if weight is not None:
            if params.max_weight is None:
                raise ParameterError("a weight was given; this round's sum is unweighted")
            check_integer("weight", weight, 0, params.max_weight)
        factor = 1 if weight is None else weight
        values, clipped = params.encoding.encode(vector, params.ring, factor, self._entropy)
        if values.size != params.length:
            raise ParameterError(
                f"the vector has {values.size} elements; this round sums {params.length}"
            )
        if weight is None:
            return values, clipped
        weighted = params.ring.zeros(params.elements)
        weighted[:-1], weighted[-1] = values, weight
        return weighted, clipped

    def _open(self, state: Shared, message: Shares) -> Masked:
        """Open the shares of U2's clients; each is checked to be field elements."""
        me = self.client_id
        senders = check_senders(message.senders, state.opening, self.params, self.policy, me)
        if len(message.sealed) != SEALED_BYTES * len(senders):
            raise self._violation("length", f"not one sealed share for each of {len(senders)}")
        self_shares, mask_shares = {me: state.own_share}, {}
        for i, v in enumerate(senders):
            piece = message.sealed[SEALED_BYTES * i : SEALED_BYTES * (i + 1)]
            opened = keys.open_sealed(state.opening[v], state.session, v, me, piece)
            if opened is None:
                raise self._violation("sealed share", f"client {v}'s share does not open")
            if not (np.frombuffer(opened, dtype="<u8") < M61).all():
                raise self._violation("share", f"client {v}'s share is not a field element")
            self_shares[v] = opened[:SHARE_BYTES]
            mask_shares[v] = opened[SHARE_BYTES:]
        return Masked(state.session, self_shares, mask_shares)

    def _mask(self, state: Shared, others: list[int], values: Lanes) -> None:
        """Add PRG(b_u) and ± PRG(s_uv) for every other client of U2, in place."""
        me, session, ring = self.client_id, state.session, self.params.ring
        total = masks.MaskSum()
        total.add(keys.self_mask_key(state.seed, session, me))
        for v in others:
            public = state.mask_publics[v]
            shared = state.mask_pair.agree(public)
            if shared is None:
                raise self._violation("public key", f"client {v}'s masking key is of low order")
            own = (me, state.mask_pair.public)
            key = keys.pairwise_mask_key(shared, session, own, (v, public))
            total.add(key, negate=masks.subtracts(me, v))
        total.apply(values, ring)
        ring.reduce(values)

    def _due(self, kind: type[S], call: str) -> S:
        state = self._state
        if isinstance(state, kind):
            return state
        raise out_of_order(call, self.phase)

    @contextmanager
    def _ending_on_violation(self) -> Iterator[None]:
        try:
            yield
        except RemoteProtocolError:
            self._state = Ended(Phase.FAILED)
            raise

    def _violation(self, check: str, why: str) -> RemoteProtocolError:
        return RemoteProtocolError(why, sender=None, phase=self.phase, check=check)
