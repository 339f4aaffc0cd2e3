"""Verdicts on a job's sites, in files for ``secagg judge``."""

from __future__ import annotations

from pathlib import Path

from secagg._files import replace_file
from secagg.errors import Verdict
from secagg.protocol import Registry
from secagg.protocol.client_ids import ClientKey
from secagg.protocol.key_files import registry_to_json

REGISTRY = "secagg-registry.json"
"""File with the keys that the sites of an active session drew, which judge a verdict."""


def keep_verdict(folder: Path, number: int, verdict: Verdict, registry: Registry) -> Path:
    """Write a verdict, and the session's registry, into a folder; return the verdict's file.

    `number` is the number of the round. OSError is raised if a file cannot be written.
    """
    keys: dict[ClientKey, bytes] = {
        registry.names.get(u, u): key for u, key in registry.items()
    }
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / REGISTRY, registry_to_json(keys))
    name = f"secagg-verdict-{number}-{verdict.client}-{verdict.kind}.bin"
    replace_file(folder / name, verdict.data)
    return folder / name
