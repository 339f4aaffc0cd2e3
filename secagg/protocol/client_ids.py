"""Ids of clients with names: docs/protocol.md, §5.12.

Messages and results have ids only. Two names can have one id, which takes about 2^32 hashes to
find. So names are compared wherever more than one of them is seen.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping
from typing import TypeVar

from secagg._check import check_integer, is_integer
from secagg.errors import ParameterError

T = TypeVar("T")
ClientKey = int | str
"""Id of a client, or its name."""
ByClient = Mapping[int, T] | Mapping[str, T] | Mapping[int | str, T]
"""Mapping by the ids or names of clients."""


def client_id(name: str) -> int:
    """Return the id of the client with a name.

    It is the first 8 bytes, little-endian, of the SHA-256 of the label "secagg/2 client id" and
    the name, in UTF-8 after Unicode's normalisation form C.

    Parameters
    ----------
    name : str
        Name of any length but 0, such as a user's account. Its hash is no secret: whoever can
        guess the name can find it.

    Raises
    ------
    ParameterError
        The name is not a str, is empty or contains a surrogate.
    """
    return _hashed(_normalised(name))


def identify(client: ClientKey, argument: str = "client_id") -> tuple[int, str | None]:
    """Return the id of a client, and its normalised name if it was given by its name.

    `ParameterError` is raised for anything but an int in [0, 2^64) or a name; it names the
    `argument`.
    """
    if isinstance(client, str):
        name = _normalised(client)
        return _hashed(name), name
    if not is_integer(client):
        raise ParameterError(f"{argument} must be an int or a name, not {client!r}")
    check_integer(argument, client, 0, (1 << 64) - 1)
    return int(client), None


class Names:
    """Names of the clients of a round, as far as they were seen."""

    def __init__(self) -> None:
        self._of: dict[int, str] = {}

    def keys(self, group: Iterable[ClientKey]) -> dict[int, ClientKey]:
        """Return the key by which a group has each client, by ascending ids.

        Raises
        ------
        ParameterError
            A key is neither an id nor a name. Or two clients have one id: two keys of the
            group, or names of this group and an earlier one.
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
    if any("\ud800" <= letter <= "\udfff" for letter in name):
        raise ParameterError(f"the name {name!r} contains a surrogate; decode the text again")
    return unicodedata.normalize("NFC", name)


def _hashed(name: str) -> int:
    digest = hashlib.sha256(b"secagg/2 client id" + name.encode()).digest()
    return int.from_bytes(digest[:8], "little")
