"""State of a node in a run: its suspended client, and the number of the last sum.

The client's state is in Flower's Context, encrypted, and its one-time key in the node's folder.
Flower sends a reply before it stores the Context. After a crash in between the old Context is
back, but its key is gone. The number is in the folder, too, and outlives the SuperNode.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flwr.app import ConfigRecord, Context

from secagg import Client, Vault
from secagg.errors import LocalProtocolError, ParameterError, RemoteProtocolError, VaultError
from secagg.flower.wire import RECORD
from secagg.protocol import Phase

__all__ = ["FOLDER_KEY", "NodeState"]

FOLDER_KEY = "secagg-state-dir"
"""Key of the folder in the configuration of a node."""
_LAST = struct.Struct("<Q")


class NodeState:
    """State of one node in one run, between two messages.

    The folder is that of the node's configuration, or ``secagg`` in Flower's own. Nodes may
    share it, on a local disk; never copy or restore it.

    Parameters
    ----------
    context : Context
    client_id : int, optional
        Id by which the folder knows the node; by default that of Flower, which a node does not
        keep for ever.

    Raises
    ------
    ParameterError
        The folder in the node's configuration is not a str.
    VaultError
        The folder cannot be made.
    """

    def __init__(self, context: Context, client_id: int | None = None) -> None:
        self._state = context.state
        given = context.node_config.get(FOLDER_KEY)
        if given is not None and not isinstance(given, str):
            raise ParameterError(f"{FOLDER_KEY} is {given!r}; it must be the path of a folder")
        home = os.environ.get("FLWR_HOME") or Path.home() / ".flwr"
        folder = Path(given or Path(home) / "secagg")
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _unusable(folder, error) from None
        owner = context.node_id if client_id is None else client_id
        name = f"{owner}-{context.run_id}"
        self._vault = Vault(folder / f"{name}.key")
        self._last = folder / f"{name}.last"

    def begin(self, number: int, phase: str = Phase.ADVERTISE_KEYS) -> None:
        """Store the number of the sum that begins, durably.

        RemoteProtocolError ("session") is raised unless it is above all earlier ones, because a
        second vector in one round could be summed in another cohort.
        """
        try:
            with _locked(self._last.parent) as folder:  # a second process has the same message
                if number <= self._last_number():
                    raise RemoteProtocolError(
                        "this node was in this sum or in a later one before",
                        sender=None,
                        phase=phase,
                        check="session",
                    )
                _replace(self._last, _LAST.pack(number), folder)
        except OSError as error:
            raise _unusable(self._last, error) from None

    def suspend(self, client: Client) -> None:
        """Suspend a client into the Context, or drop the state of one that has finished."""
        if client.phase is Phase.FINISHED:
            self._state.pop(RECORD, None)
        else:
            self._state[RECORD] = ConfigRecord({"state": client.suspend(self._vault)})

    def check(self) -> None:
        """Raise `LocalProtocolError` unless there is a suspended client."""
        self._stored()

    def restore(self, client: Client) -> None:
        """Continue the suspended client in `client`; see `Client.restore` for the errors."""
        client.restore(self._stored(), self._vault)

    def _stored(self) -> bytes:
        record = self._state.get(RECORD)
        state = record.get("state") if isinstance(record, ConfigRecord) else None
        if not isinstance(state, bytes):
            raise LocalProtocolError(
                "this node has no client in a sum, because the SuperNode was restarted or the "
                "sum began without it; it is in the next one"
            )
        return state

    def _last_number(self) -> int:
        try:
            return int(_LAST.unpack(self._last.read_bytes())[0])
        except FileNotFoundError:
            return -1
        except struct.error:
            raise VaultError(
                f"{self._last} has not the number of a sum; delete it after the run has ended",
                check="file",
            ) from None


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Yield a descriptor of a folder, which no other process or thread has locked."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(folder)


def _replace(path: Path, content: bytes, folder: int) -> None:
    """Replace a file; its new content is on the disk when the call returns."""
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)  # of a crash; or a link, whose target would be overwritten
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(part, flags, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
    os.fsync(folder)


def _unusable(path: Path, error: OSError) -> VaultError:
    why = error.strerror or str(error)
    return VaultError(
        f"{path}: {why}; set {FOLDER_KEY} to a folder on a local disk that the node can write",
        check="file",
    )
