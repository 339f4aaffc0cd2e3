"""Place of a key in memory, which a test can copy, break and look into."""

from __future__ import annotations

import os

from secagg import VaultError


class Slot:
    """A `secagg.client.KeySlot`; `key` is None once it has been taken."""

    def __init__(self, key: bytes | None = None) -> None:
        self.key = key

    def renew(self) -> bytes:
        self.key = os.urandom(32)
        return self.key

    def read(self) -> bytes:
        if self.key is None:
            raise VaultError("it was taken", check="used")
        return self.key

    def take(self, key: bytes) -> None:
        if self.read() != key:
            raise VaultError("it is another one", check="latest")
        self.key = None
