"""Number of a client's last sum in a file, so that the client is in each sum once.

Two vectors of the same client in almost the same sum can give a vector away, as the difference
of the two sums. So a client is in a sum only if the sum's number is above the numbers of all
the client's sums before, also after a restart.

A member of a session remembers attempts in memory instead. A restarted member may be in the
next attempt of a round (docs/sessions.md, 5), which the rule of this file would forbid.
"""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

from secagg._files import locked, replace_file
from secagg.errors import VaultError
from secagg.vault.errors import errors_of

_LAST = struct.Struct("<Q")
_LONGEST = 64


class Spent:
    """Numbers of spent sums, in a folder on a local disk; never copy or restore the folder.

    Parameters
    ----------
    folder : Path
        The folder, which is made if missing. Clients may share a folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def spend(self, owner: str, number: int) -> int | None:
        """Record a sum, durably; only one of several threads and processes succeeds.

        Parameters
        ----------
        owner : str
            Name of the client and of the sequence of sums.
        number : int
            Number of the sum, 0 ≤ number < 2^64.

        Returns
        -------
        last : int or None
            None: the sum is recorded, and the client may send the vector. Otherwise the number
            of the last sum, which is not below `number`: the client must not send the vector.

        Raises
        ------
        VaultError
            The file cannot be read or written, or was altered ("file").
        """
        path = self.folder / f"{_name(owner)}.last"
        with errors_of(path):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked(self.folder):  # a second process may have the same request
                last = _read(path)
                if last is not None and number <= last:
                    return last
                # on the disk before the vector leaves: a restart must not send another vector
                replace_file(path, _LAST.pack(number), private=True)
                return None


def _name(owner: str) -> str:
    """Return a file's name for an owner; the owner's own name may not be a valid file name."""
    plain = owner.isascii() and owner.replace("-", "").isalnum() and len(owner) <= _LONGEST
    return owner if plain else hashlib.sha256(owner.encode()).hexdigest()[:32]


def _read(path: Path) -> int | None:
    try:
        return int(_LAST.unpack(path.read_bytes())[0])
    except FileNotFoundError:
        return None
    except struct.error:
        raise VaultError(
            f"{path} has not the number of a sum; delete it after the run has ended",
            check="file",
        ) from None
