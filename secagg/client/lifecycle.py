"""Lifecycle of a client: one round, one object, one call at a time, no repeated phase.

Two vectors sent under the same masks would reveal their difference. Copies, forks and calls
from several threads could send two vectors, so they raise LocalProtocolError. To continue in
another process, a client is suspended, and the client's state is restored once.
"""

from __future__ import annotations

import os
import struct
from typing import NoReturn

from secagg._check import as_bytes, check_kind
from secagg._hedging import Hedged
from secagg._secrets import Exclusive, without_frames
from secagg.client import stored
from secagg.client.spending import Spending, check_spending
from secagg.client.states import (
    Advertised,
    ClientState,
    Ended,
    Entrusted,
    New,
    SealingKey,
    Shared,
)
from secagg.client.stored import KeySlot
from secagg.encoding import Entropy
from secagg.errors import LocalProtocolError, ParameterError, VaultError
from secagg.protocol import ClientPolicy, Identity, Phase, Registry, RoundParams, kem
from secagg.protocol.client_ids import ClientKey, identify
from secagg.protocol.identities import check_identity
from secagg.protocol.ledger import CohortLedger, open_page
from secagg.protocol.phases import out_of_order

_VAULT = "a secagg.Vault, made of the path of a file"


class OneLife:
    """Base of `Client`: the arguments, and the state that only one process has."""

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
        spending: Spending[RoundParams] | None = None,
        entropy: Entropy = os.urandom,
    ) -> None:
        own_id, _ = identify(client_id)
        check_kind("params", params, RoundParams, "a secagg.RoundParams")
        if policy is not None:
            check_kind("policy", policy, ClientPolicy, "a secagg.ClientPolicy")
        self.client_id, self.params = own_id, params
        self.policy = policy or ClientPolicy()
        check_identity(self.client_id, params, identity, registry)
        self.policy.check(params, 0 if registry is None else len(registry))
        if params.suite == "hybrid":
            kem.require()
        self._page = open_page(ledger, kind)
        if sealing_key is not None:
            check_kind("sealing_key", sealing_key, SealingKey, "a secagg.SealingKey")
            if sealing_key.client_id != own_id:
                raise ParameterError(
                    f"sealing_key is of client {sealing_key.client_id}, and this is client "
                    f"{own_id}; give each client its own"
                )
        check_spending(spending)
        if ledger is not None and params.neighbours is not None:
            raise ParameterError(
                f"neighbours is {params.neighbours}: a client on a graph sees only its "
                "neighbours and cannot compare cohorts; give the ledger to the server"
            )
        self._identity = identity
        self._registry = registry
        self._sealing_key = sealing_key
        self._spending = spending
        self._entropy = entropy
        self.clipped = 0
        self._state: ClientState = New(Phase.ADVERTISE_KEYS)
        self._exclusive = Exclusive()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.client_id}, phase={self.phase})"

    @property
    def phase(self) -> Phase:
        """The message that this client sends next, or the outcome."""
        return self._state.phase

    @without_frames
    def suspend(self, vault: KeySlot) -> bytes:
        """End this client and return its state, for `restore` in any process, once.

        The state is encrypted. The vault has the key when the call returns, so send the last
        message afterwards. Neither the state nor the vault has the vector, the weight or the
        identity.

        Parameters
        ----------
        vault : Vault
            The place of the key, one vault for each client and session. The vault's earlier key
            is lost, so any earlier state becomes unreadable.

        Raises
        ------
        ParameterError
            `vault` is not a vault.
        LocalProtocolError
            The client has sent no message yet or has ended, was forked, or is in use by another
            thread.
        VaultError
            The key cannot be written; the client is unchanged.
        """
        check_kind("vault", vault, KeySlot, _VAULT)
        with self._exclusive:
            state = self._state
            if not isinstance(state, Advertised | Shared | Entrusted):
                raise out_of_order("suspend", self.phase)
            content = stored.pack(state, self.client_id, self.clipped)
            # the key may fail to be written, so the client ends only after that
            data = stored.seal(vault.renew(), self.client_id, self.params, content)
            self._state = Ended(Phase.SUSPENDED)
            return data

    @without_frames
    def restore(self, state: bytes, vault: KeySlot) -> None:
        """Continue a suspended client in this client, which has sent nothing yet.

        Make this client with the arguments of the suspended client. A sealing key is not used,
        because the state has the sealing pair. The key leaves the vault before the call
        returns, so a state is restored at most once. An error of the state or vault ends this
        client. The state stays intact unless something else is wrong with the state.

        Parameters
        ----------
        state : bytes
            Result of `suspend`.
        vault : Vault
            The vault that the client was suspended with.

        Raises
        ------
        ParameterError
            `state` is not bytes or `vault` is not a vault.
        LocalProtocolError
            This client has sent a message or has ended, or is in use by another thread.
        VaultError
            The state was restored before, is not the vault's latest state, is damaged, or is of
            another client, session or version. Or the vault cannot be read or written.
        """
        check_kind("vault", vault, KeySlot, _VAULT)
        data = as_bytes(state, "state")
        with self._exclusive:
            if not isinstance(self._state, New):
                raise out_of_order("restore", self.phase)
            me, params = self.client_id, self.params
            self._exclusive.bind()  # first: a fork meanwhile has the secrets, too
            try:
                head, sealed = stored.split(data, me, params)
                key = vault.read()
                restored = stored.unpack(stored.unseal(key, head, sealed), me, params)
                vault.take(key)  # last, so that a wrong argument does not spoil the state
            except VaultError:
                self._state = Ended(Phase.FAILED)
                raise
            self._state, self.clipped = restored
            self._sealing_key = None

    def __reduce__(self) -> NoReturn:
        raise LocalProtocolError(
            "a client cannot be copied or pickled: its masks are for one vector; suspend it "
            "with a secagg.Vault to continue in another process"
        )

    def _hedged(
        self, purpose: bytes, secret: bytes, context: bytes, more: bytes = b""
    ) -> Entropy:
        """Return the source of random bytes for a purpose (docs/protocol.md, §5.13)."""
        about = context + struct.pack("<Q", self.client_id) + more
        return Hedged(self._entropy, secret, b"secagg/2 hedged " + purpose + about)

    def _encapsulate(self, _peer: int, public: bytes) -> tuple[bytes, bytes]:
        """Return `kem.encapsulate` to a peer's key; tests replace it to replay a round."""
        return kem.encapsulate(public)
