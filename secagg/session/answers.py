"""Accepted answers of a session, to recognise repeated answers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from secagg.session.wire import FRAME

_HASH_BYTES = 32
_RECORD = 8 + _HASH_BYTES


class Answers:
    """`fingerprint` of the last accepted answer of each client.

    Attributes
    ----------
    limit : int
        Largest size of an answer in the rounds so far, in bytes.
    """

    def __init__(self) -> None:
        # until a round begins, a transport reads no more than a frame's head from a member
        self.limit = FRAME
        self._last: dict[int, bytes] = {}

    def add(self, client: int, answer: bytes) -> None:
        """Note the fingerprint of an answer, in place of the client's earlier fingerprint."""
        self._last[client] = answer

    def update(self, answers: Mapping[int, bytes]) -> None:
        """Note the fingerprints of the answers of many clients."""
        self._last.update(answers)

    def has(self, client: int, answer: bytes) -> bool:
        """Return whether this fingerprint is the client's last fingerprint."""
        return self._last.get(client) == answer

    def to_bytes(self) -> bytes:
        """Return the limit as u64, then the id as u64 and the fingerprint of each client."""
        records = (u.to_bytes(8, "little") + answer for u, answer in self._last.items())
        return self.limit.to_bytes(8, "little") + b"".join(records)

    def read(self, data: bytes) -> None:
        """Restore the content of `to_bytes`; empty bytes change nothing."""
        if not data:
            return
        self.limit = int.from_bytes(data[:8], "little")
        for at in range(8, len(data), _RECORD):
            self._last[int.from_bytes(data[at : at + 8], "little")] = data[
                at + 8 : at + _RECORD
            ]


def fingerprint(task: bytes, data: bytes) -> bytes:
    """Return the SHA-256 of an answer: of the task's id and the content."""
    # with the id: equal contents in two tasks are two answers
    return hashlib.sha256(task + data).digest()
