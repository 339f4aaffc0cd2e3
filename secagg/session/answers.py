"""Answers that a session has accepted, to recognise one that comes again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from secagg.session.wire import FRAME

_HASH_BYTES = 32
_RECORD = 8 + _HASH_BYTES


class Answers:
    """Last accepted answer of each client, by its `fingerprint`.

    Attributes
    ----------
    limit : int
        Largest answer that a member can give in the present round, in bytes.
    """

    def __init__(self) -> None:
        self.limit = FRAME
        self._last: dict[int, bytes] = {}

    def add(self, client: int, answer: bytes) -> None:
        """Note an answer, by its fingerprint, in place of the client's earlier one."""
        self._last[client] = answer

    def update(self, answers: Mapping[int, bytes]) -> None:
        """Note the answers of many clients."""
        self._last.update(answers)

    def has(self, client: int, answer: bytes) -> bool:
        """Return whether this answer, by its fingerprint, is the client's last one."""
        return self._last.get(client) == answer

    def to_bytes(self) -> bytes:
        """Return the limit as u64, then id as u64 and fingerprint of each client."""
        records = (u.to_bytes(8, "little") + answer for u, answer in self._last.items())
        return self.limit.to_bytes(8, "little") + b"".join(records)

    def read(self, data: bytes) -> None:
        """Take what `to_bytes` wrote; no bytes change nothing."""
        if not data:
            return
        self.limit = int.from_bytes(data[:8], "little")
        for at in range(8, len(data), _RECORD):
            self._last[int.from_bytes(data[at : at + 8], "little")] = data[
                at + 8 : at + _RECORD
            ]


def fingerprint(task: bytes, data: bytes) -> bytes:
    """Return a hash of an answer: of the id of its task and its content."""
    return hashlib.sha256(task + data).digest()
