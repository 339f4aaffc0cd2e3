"""Vaults without one of their steps, which crashes must find."""

from __future__ import annotations

import os
from collections.abc import Callable

from secagg import Vault
from secagg.vault import vault as module


class Without(Vault):
    """A vault without one of its steps."""

    late: Callable[[], object] = staticmethod(lambda: None)
    """A step that comes too late: after the answer, or after the state was stored."""


class NoRename(Without):
    def take(self, key: bytes) -> None:
        with self._errors():
            found = module._read(self.path)
            if found == key:
                module.os.unlink(self.path)
                module.sync_folder(self.path.parent)
                return
        super().take(key)


class NoComparison(Without):
    def take(self, _: bytes) -> None:
        with self._errors():
            mine = f"{self.path}.0"
            module.os.rename(self.path, mine)
            module.os.unlink(mine)
            module.sync_folder(self.path.parent)


class NoUnlink(Without):
    def take(self, key: bytes) -> None:
        self._skip("unlink", super().take, key)

    @staticmethod
    def _skip(name: str, call: Callable[..., object], *arguments: object) -> object:
        setattr(module.os, name, lambda *_: None)
        try:
            return call(*arguments)
        finally:
            delattr(module.os, name)


class NoSyncOfTheDeletion(NoUnlink):
    def take(self, key: bytes) -> None:
        self._skip("fsync", Vault.take, self, key)


class NoSyncOfTheFile(Without):
    synced = 0
    """Number of files that are synced before the sync that is left out."""

    def renew(self) -> bytes:
        real = module.os.fsync
        files = [lambda _: None, *[real] * self.synced]
        module.os.fsync = lambda descriptor: (files.pop() if files else real)(descriptor)
        try:
            return super().renew()
        finally:
            del module.os.fsync


class NoSyncOfTheName(NoSyncOfTheFile):
    synced = 1


class InPlace(Without):
    def renew(self) -> bytes:
        key = os.urandom(32)
        with self._errors():
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            descriptor = module.os.open(self.path, flags, 0o600)
            module.os.write(descriptor, key)
            module.os.fsync(descriptor)
            module.os.close(descriptor)
            module.sync_folder(self.path.parent)
        return key


class StoredLate(Without):
    def renew(self) -> bytes:
        key = os.urandom(32)
        self._entropy = lambda _: key
        self.late = super().renew
        return key


class SameKey(Without):
    def renew(self) -> bytes:
        self._entropy = bytes
        return super().renew()


class NoDeletion(Without):
    def take(self, _: bytes) -> None:
        pass


class DeletedLate(Without):
    def take(self, key: bytes) -> None:
        self.late = lambda: Vault.take(self, key)


MUTANTS = {
    kind.__name__: kind
    for kind in (
        NoRename, NoComparison, NoUnlink, NoSyncOfTheDeletion, NoSyncOfTheFile, NoSyncOfTheName,
        InPlace, StoredLate, SameKey, NoDeletion, DeletedLate,
    )
}  # fmt: skip
