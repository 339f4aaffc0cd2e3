"""Lifecycle of a client: one round, one object, one call at a time, no repeated phase.

Two vectors sent under the same masks would reveal their difference. Copies, forks and calls
from several threads could send two, so they raise LocalProtocolError. To continue in another
process, a client is suspended, and its state is restored once.
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
    """Base of `Client`: it keeps the present state and checks that each call is due."""

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
        """The message that this client sends next, or how it ended."""
        return self._state.phase

    @without_frames
    def suspend(self, vault: KeySlot) -> bytes:
        """End this client and return its state, for `restore` in any process, once.

        The state is encrypted. Its key is in the vault when the call returns, so send the last
        message afterwards. The vector, the weight and the identity are in neither.

        Parameters
        ----------
        vault : Vault
            The place of the key, one for each client and session. The vault's earlier key, and
            with it any earlier state, becomes unreadable.

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
            data = stored.seal(vault.renew(), self.client_id, self.params, content)
            self._state = Ended(Phase.SUSPENDED)
            return data

    @without_frames
    def restore(self, state: bytes, vault: KeySlot) -> None:
        """Continue a suspended client in this one, which has sent nothing yet.

        Make this client with the arguments of the suspended one; a sealing key is not used, as
        the state has what is needed. The key leaves the vault before the call returns, so a
        state is restored at most once. After an error of the state or vault this client has
        ended; a state of which nothing else is wrong is intact.

        Parameters
        ----------
        state : bytes
            Result of `suspend`.
        vault : Vault
            The vault that it was suspended with.

        Raises
        ------
        ParameterError
            `state` is not bytes or `vault` is not a vault.
        LocalProtocolError
            This client has sent a message or has ended, or is in use by another thread.
        VaultError
            The state was restored before, is not the vault's latest one, is damaged, or is of
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
        """Return the result of `step`; a RemoteProtocolError in it ends the client."""
        with self._exclusive:
            try:
                return step()
            except RemoteProtocolError:
                self._state = Ended(Phase.FAILED)
                raise

    def _due(self, phase: Phase, kind: type[S], call: str) -> S:
        """Return the state if it is of the phase and `kind` that `call` needs, or raise."""
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
