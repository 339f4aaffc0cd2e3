"""One-time keys in a file: each key opens the state of a suspended client, once.

A client that is suspended encrypts the state under a fresh key, and the file has that key only.
A key is written into a new file. The new file replaces the old file when the new file is on the
disk. A key is taken by renaming the file to a name of the taker. So only one of several
processes gets the key, and the key is deleted from the disk before the client can answer. An
older or used state then has no key.

The key and the state must not be in the same place: only both together have the secrets. A file
and a state that are *both* restored, as by the snapshot of a machine, defeat the vault.
"""

from __future__ import annotations

import errno
import hmac
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from secagg._check import check_kind
from secagg._files import replace_file, sync_folder
from secagg._secrets import without_frames
from secagg.encoding import Entropy
from secagg.encoding.encoding import take
from secagg.errors import VaultError
from secagg.vault.files import errors_of

_KEY_BYTES = 32


class Vault:
    """Vault in a file of mode 600, for `Client.suspend` and `Client.restore`.

    Use a file for each client and session, on a local disk, and never copy or restore the file.
    Delete the file when the session has ended: states that nobody restored are then unreadable.
    A crash may leave files beside the vault with names that begin with the vault's name; delete
    these files, too.

    Parameters
    ----------
    path : str or path
        The file, in an existing folder. The file is made when a client is suspended.
    entropy : callable, optional
        Source of secret bytes.

    Attributes
    ----------
    path : Path
        Absolute path of the file.

    Raises
    ------
    ParameterError
        `path` is neither a str nor a path.
    """

    def __init__(self, path: str | os.PathLike[str], *, entropy: Entropy = os.urandom) -> None:
        check_kind("the vault's path", path, (str, os.PathLike), "a str or a path")
        self.path = Path(path).absolute()
        self._entropy = entropy

    def __repr__(self) -> str:
        return f"Vault({str(self.path)!r})"

    @without_frames
    def renew(self) -> bytes:
        """Replace the key by a fresh key, sync the file to the disk, and return the key.

        `Client.suspend` calls this. VaultError ("file") is raised if the write fails.
        """
        key = take(self._entropy, _KEY_BYTES)
        with self._errors():
            replace_file(self.path, key, private=True)
        return key

    @without_frames
    def read(self) -> bytes:
        """Return the key and leave the key in place.

        `Client.restore` calls this. VaultError is raised with the check "used" if there is no
        key, and "file" if the file cannot be read.
        """
        with self._errors():
            key = _read(self.path)
        if len(key) != _KEY_BYTES:
            raise VaultError(
                f"vault {self.path}: it is not a key of {_KEY_BYTES} bytes, so it was altered; "
                "delete it and make a new client",
                check="file",
            )
        return key

    @without_frames
    def take(self, key: bytes) -> None:
        """Delete `key` from the disk; raise VaultError unless the file had `key` until now.

        `Client.restore` calls this. The checks are "used", "latest" (another key) and "file".
        """
        with self._errors():
            mine = f"{self.path}.{secrets.token_hex(8)}"  # of this call only
            # renamed before it is read: of several processes only one gets the key
            os.rename(self.path, mine)
            try:
                found = _read(mine)
            finally:
                os.unlink(mine)
            # a power cut must not bring a used key back
            sync_folder(self.path.parent)
        if not hmac.compare_digest(found, key):
            raise VaultError(
                f"vault {self.path}: another state was suspended with it in the meantime; use "
                "one vault for each client and session",
                check="latest",
            )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn any error of the file in the block into a VaultError with the path."""
        if not hasattr(os, "O_DIRECTORY"):  # Windows: all but journals and vaults works
            raise VaultError(
                f"vault {self.path}: this system cannot sync a folder; keep it on Linux or "
                "macOS",
                check="file",
            )
        with errors_of(self.path, "vault "):
            try:
                yield
            except FileNotFoundError:
                if not self.path.parent.is_dir():
                    raise
                raise VaultError(
                    f"vault {self.path}: it has no key, because the state was restored before "
                    "or belongs to another vault; make a new client for a new session",
                    check="used",
                ) from None


def _read(path: str | Path) -> bytes:
    """Return the first bytes of a file, at most one byte more than a key has.

    OSError is raised for a link, since the key would stay under the link's other name.
    """
    # without O_NONBLOCK a fifo at the path would block for ever
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise OSError(errno.EMLINK, "it is not a file with this name alone")
        return os.read(descriptor, _KEY_BYTES + 1)
    finally:
        os.close(descriptor)
