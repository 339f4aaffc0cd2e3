"""Vault: the key of a suspended client's latest state in a file, for a single use."""

from __future__ import annotations

from secagg.vault.vault import Vault

__all__ = ["Vault"]
