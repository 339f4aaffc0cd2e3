"""File of helpers, which application and clients have in common."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import NamedTuple

from secagg._printable import fingerprints
from secagg.errors import ParameterError
from secagg.protocol.suites import SuiteName, as_suite


class HelperEntry(NamedTuple):
    """Helper of a file of helpers: address and public keys."""

    url: str
    suite: SuiteName
    hpke: bytes
    ed25519: bytes

    def __repr__(self) -> str:
        return f"HelperEntry({self.url!r}, {self.suite}, {fingerprints([self.ed25519])})"


_FORM = 'each is what secagg helper keygen --json prints, with its "url"'


def helpers_from_json(text: str | bytes) -> list[HelperEntry]:
    """Return the helpers of a file; raise `ParameterError` for a file of another form."""
    document: object = None
    with suppress(ValueError, RecursionError):
        document = json.loads(text)
    if not isinstance(document, list):
        raise ParameterError(f"this is not a JSON array of helpers; {_FORM}")
    return [_entry(number, one) for number, one in enumerate(document, 1)]


def _entry(number: int, one: object) -> HelperEntry:
    if not isinstance(one, dict):
        raise ParameterError(f"entry {number} is not a JSON object of a helper; {_FORM}")
    for name in HelperEntry._fields:
        if not isinstance(one.get(name), str):
            raise ParameterError(f'helper {number} has no text "{name}"; {_FORM}')
    try:
        keys = bytes.fromhex(one["hpke"]), bytes.fromhex(one["ed25519"])
    except ValueError:
        raise ParameterError(f"helper {number} has a key that is not hexadecimal") from None
    return HelperEntry(one["url"], as_suite(one["suite"]), *keys)
