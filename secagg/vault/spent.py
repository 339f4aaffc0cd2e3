"""Number of the last sum that a client was in, in a file: it is in each sum once.

Two vectors of one client in almost the same sum can give one of the vectors away, as the
difference of the two sums. So a client is in a sum only if the sum's number is above the
numbers of all its sums before, also after a restart.

A member of a session remembers its attempts in memory instead: a restarted member may be in the
next attempt of a round (docs/sessions.md, 5), which this rule would forbid.
"""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

from secagg._files import locked, replace_file
from secagg.errors import VaultError

_LAST = struct.Struct("<Q")
_LONGEST = 64


class Spent:
    """Numbers of sums that are spent, in a folder on a local disk; never copy or restore it.

    Parameters
    ----------
    folder : Path
        It is made if there is none. Clients may share it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def spend(self, owner: str, number: int) -> int | None:
        """Record a sum, durably; one of several threads and processes succeeds.

        Parameters
        ----------
        owner : str
            Name of the client and of the sequence of sums.
        number : int
            Number of the sum, 0 ≤ number < 2^64.

        Returns
        -------
        last : int or None
            None: the sum is recorded, and the client may send its vector. Otherwise the number
            of the last sum, which is not below `number`: the client must not send it.

        Raises
        ------
        VaultError
            The file cannot be read or written, or was altered ("file").
        """
        path = self.folder / f"{_name(owner)}.last"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked(self.folder):  # a second process may have the same request
                last = _read(path)
                if last is not None and number <= last:
                    return last
                replace_file(path, _LAST.pack(number), private=True)
                return None
        except OSError as error:
            why = error.strerror or str(error)
            raise VaultError(
                f"{path}: {why}; it needs a folder on a local disk that this process may write "
                "to",
                check="file",
            ) from None


def _name(owner: str) -> str:
    """Return a file's name; an owner from elsewhere may be none."""
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
