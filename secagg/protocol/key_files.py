"""Text of a key file: a registry in JSON.

The commands ``secagg identity``, ``serve`` and ``join`` use such files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from secagg.errors import ParameterError
from secagg.protocol.client_ids import ClientKey, is_decimal

_KEY_BYTES = 32
_WHITE = b" \t\n\r"
_SPACE = rb"[ \t\n\r]*"
_ENTRY = re.compile(
    _SPACE.join((b"", rb'"([^"\\\x00-\x1f]+)"', b":", b'"([0-9A-Fa-f]{64})"', b"([,}])", b""))
)
"""Entry of an object: a name without escapes, a key, and what follows."""


def registry_to_json(keys: Mapping[ClientKey, bytes]) -> str:
    """Return public keys by id or name as a JSON object, with the keys in hexadecimal."""
    document = {str(u): key.hex() for u, key in keys.items()}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def registry_from_json(text: str | bytes) -> dict[ClientKey, bytes]:
    """Return public keys by id, for decimal digits, or name.

    Raise `ParameterError`, with the line or the entry, for anything but an object of keys in
    hexadecimal.
    """
    if isinstance(text, bytes) and (plain := _plain(text)):
        return plain
    try:
        # pairs: a dict would silently keep one of two keys under the same id
        pairs = json.loads(text, object_pairs_hook=tuple)
    except json.JSONDecodeError as error:
        raise ParameterError(
            f"line {error.lineno}, column {error.colno}, is not JSON: {error.msg}; write an "
            'object such as {"alice": "3b6a…", "bob": "27bc…"}'
        ) from None
    # bytes that are not UTF-8, another type, or nesting that is too deep
    except (ValueError, TypeError, RecursionError):
        pairs = None
    if not isinstance(pairs, tuple):  # a JSON array is a list
        raise ParameterError(
            'this is not a JSON object of clients to keys, such as {"alice": "3b6a…"}'
        )
    keys: dict[ClientKey, bytes] = {}
    for name, text_of_key in pairs:
        client = client_of(name)
        if client in keys:
            raise ParameterError(f"the client {name!r} is there twice; give it one key")
        keys[client] = _key(name, text_of_key)
    return keys


def _plain(text: bytes) -> dict[ClientKey, bytes]:
    """Return the keys of an object without escapes or errors; of any other text, nothing.

    A parser of JSON would take 500 MB for a million clients.
    """
    keys: dict[ClientKey, bytes] = {}
    at, count, end = text.find(b"{") + 1, 0, b""
    if text[:at].strip(_WHITE) != b"{":
        return {}
    while end != b"}" and (entry := _ENTRY.match(text, at)):
        name, key, end = entry.groups()
        try:
            keys[client_of(name.decode())] = bytes.fromhex(key.decode())
        except UnicodeDecodeError:
            return {}
        at, count = entry.end(), count + 1
    is_whole = end == b"}" and at == len(text) and len(keys) == count
    return keys if is_whole else {}


def client_of(text: str) -> ClientKey:
    """Return a client's id from decimal digits; anything else is a name."""
    return int(text) if is_decimal(text) else text


def _key(name: str, text: object) -> bytes:
    try:
        key = bytes.fromhex(text) if isinstance(text, str) else b""
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        found = f"{text[:80]!r}" if isinstance(text, str) else type(text).__name__
        raise ParameterError(
            f"the key of client {name!r} must have {2 * _KEY_BYTES} hexadecimal digits, not "
            f"{found}"
        )
    return key
