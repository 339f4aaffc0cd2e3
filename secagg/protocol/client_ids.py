"""Ids of clients with names: docs/protocol.md, §5.12.

Messages and results have ids only. Two names can have one id; to find such names takes about
2^32 hashes. So names are compared wherever more than one name is seen.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping
from typing import TypeVar

from secagg._check import check_integer, is_integer
from secagg._printable import printable
from secagg.errors import ParameterError

T = TypeVar("T")
ClientKey = int | str
"""Id or name of a client."""
ByClient = Mapping[int, T] | Mapping[str, T] | Mapping[int | str, T]
"""Mapping by the ids or names of clients."""


def client_id(name: str) -> int:
    """Return the id of the client with a name.

    The id is the first 8 bytes, little-endian, of a SHA-256: of the label "secagg/2 client id"
    and the name, in UTF-8 after Unicode's normalisation form C.

    Parameters
    ----------
    name : str
        Name of any length but 0, such as a user's account. The id is no secret: anybody who can
        guess the name can compute the id.

    Raises
    ------
    ParameterError
        The name is not a str, is empty or contains a surrogate.
    """
    return _hashed(_normalised(name))


def identify(client: ClientKey, argument: str = "client_id") -> tuple[int, str | None]:
    """Return a client's id, and also the normalised name if `client` is a name.

    Raise `ParameterError`, which names the `argument`, for anything but an int in [0, 2^64) or
    a name.
    """
    if isinstance(client, str):
        name = _normalised(client)
        return _hashed(name), name
    if not is_integer(client):
        raise ParameterError(f"{argument} must be an int or a name, not {client!r}")
    check_integer(argument, client, 0, (1 << 64) - 1)
    return int(client), None


def is_decimal(text: str) -> bool:
    """Return whether a text is decimal digits, which stand for an id in files and commands."""
    # isdigit alone accepts "²", which is no number for int
    return text.isascii() and text.isdigit()


def called(client: int, names: Mapping[int, str]) -> str:
    """Return the name of a client, with escapes, or the id of a client without a name."""
    return printable(names.get(client, str(client)))


class Names:
    """Names of the clients of a round, as far as they were seen."""

    def __init__(self) -> None:
        self._of: dict[int, str] = {}

    @property
    def shown(self) -> dict[int, str]:
        """Names to show, by id; a name of decimal digits would be taken for another id."""
        return {u: name for u, name in self._of.items() if not is_decimal(name)}

    def keys(self, group: Iterable[ClientKey]) -> dict[int, ClientKey]:
        """Return each client's key in a group, an id or a name, by ascending ids.

        Raises
        ------
        ParameterError
            A key is neither an id nor a name. Or two clients have the same id: two keys of the
            group, or names of this group and of an earlier group.
        """
        found: dict[int, ClientKey] = {}
        for client in group:
            u, name = identify(client, "client id")
            other = found.get(u)
            if other is None and name is not None and self._of.setdefault(u, name) != name:
                other = self._of[u]
            if other is not None:
                raise ParameterError(
                    f"clients {other!r} and {client!r} have the same id {u}; rename one of them"
                )
            found[u] = client
        return {u: found[u] for u in sorted(found)}  # a million pairs would be 64 MB


def _normalised(name: str) -> str:
    if not isinstance(name, str) or not name:
        raise ParameterError(f"a client's name must be a str that is not empty, not {name!r}")
    # UTF-8 has no bytes for a surrogate
    if any("\ud800" <= letter <= "\udfff" for letter in name):
        raise ParameterError(f"the name {name!r} contains a surrogate; decode the text again")
    return unicodedata.normalize("NFC", name)


def _hashed(name: str) -> int:
    digest = hashlib.sha256(b"secagg/2 client id" + name.encode()).digest()
    return int.from_bytes(digest[:8], "little")
