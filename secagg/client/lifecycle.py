"""Lifecycle of a client: one round, one object, one call at a time, no repeated phase.

Two vectors sent under the same masks would reveal their difference. Copies, forks and calls
from several threads could send two vectors, so they raise LocalProtocolError. To continue in
another process, a client is suspended, and the client's state is restored once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from secagg._check import as_bytes, check_kind
from secagg._forks import process
from secagg._secrets import without_frames
from secagg.client import stored
from secagg.client.sealing_key import SealingKey
from secagg.client.states import Advertised, ClientState, Ended, Entrusted, New, Shared
from secagg.client.stored import KeySlot
from secagg.errors import LocalProtocolError, RemoteProtocolError, VaultError
from secagg.protocol import NEXT, Phase, RoundParams
from secagg.protocol.phases import Exclusive, out_of_order

S = TypeVar("S", bound=ClientState)


class OneLife:
    """Base of `Client`: keep the present state and check that each call is due."""

    def __init__(self, client_id: int, params: RoundParams) -> None:
        self.client_id = client_id
        self.params = params
        self.clipped = 0
        self._state: ClientState = New(Phase.ADVERTISE_KEYS)
        self._sealing_key: SealingKey | None = None
        self._exclusive = Exclusive()
        self._process: tuple[int, int] | None = None

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
        _check_vault(vault)
        with self._exclusive:
            state = self._state
            if not isinstance(state, Advertised | Shared | Entrusted):
                raise out_of_order("suspend", self.phase)
            self._check_process()
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
        _check_vault(vault)
        data = as_bytes(state, "state")
        with self._exclusive:
            self._due(Phase.ADVERTISE_KEYS, New, "restore")
            me, params = self.client_id, self.params
            self._process = process()  # first: a fork meanwhile has the secrets, too
            try:
                sealed = stored.sealed_part(data, me, params)
                key = vault.read()
                restored = stored.unpack(stored.unseal(key, me, params, sealed), me, params)
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

    def _guarded(self, step: Callable[[], bytes]) -> bytes:
        """Return the result of `step`; end the client if `step` raises RemoteProtocolError."""
        with self._exclusive:
            try:
                return step()
            except RemoteProtocolError:
                self._state = Ended(Phase.FAILED)
                raise

    def _due(self, phase: Phase, kind: type[S], call: str) -> S:
        """Return the state; raise unless the state has the phase and `kind` of `call`."""
        state = self._state
        if state.phase is not phase or not isinstance(state, kind):
            raise out_of_order(call, self.phase)
        self._check_process()
        return state

    def _check_process(self) -> None:
        if self._process not in (None, process()):
            raise LocalProtocolError(
                "this client was copied into another process by a fork after it made its keys; "
                "make the client in the process that uses it"
            )

    def _next(self) -> Phase:
        """Return the phase after the present one, from the table ``NEXT``."""
        return NEXT[self.params.security][self.phase]


def _check_vault(vault: KeySlot) -> None:
    check_kind("vault", vault, KeySlot, "a secagg.Vault, made of the path of a file")
