"""File of helpers, which application and clients have in common."""

from __future__ import annotations

import json
from typing import NamedTuple

from secagg.errors import ParameterError


class HelperEntry(NamedTuple):
    """Helper of a file of helpers: where it is, and its public keys."""

    url: str
    suite: str
    hpke: bytes
    ed25519: bytes


def helpers_from_json(text: str | bytes) -> list[HelperEntry]:
    """Return the helpers of a file; raise `ParameterError` if it has another form."""
    try:
        document = json.loads(text)
        if not isinstance(document, list):
            raise TypeError
        return [
            HelperEntry(
                str(one["url"]),
                str(one["suite"]),
                bytes.fromhex(one["hpke"]),
                bytes.fromhex(one["ed25519"]),
            )
            for one in document
        ]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ParameterError(
            "this is not a JSON array of helpers; each is what secagg helper keygen --json "
            'prints, with its "url"'
        ) from None
