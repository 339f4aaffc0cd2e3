"""Key files that a job or the policy of a site names."""

from __future__ import annotations

from pathlib import Path

from secagg._secrets import without_frames
from secagg.errors import ParameterError
from secagg.protocol import Identity, Registry


@without_frames
def read_identity(path: str) -> Identity:
    """Return the identity with the private key of a file in PEM.

    Raises
    ------
    ParameterError
        The file cannot be read, or has no such key.
    """
    return Identity.from_pem(_read(path, "secagg identity keygen"))


def read_registry(path: str) -> Registry:
    """Return the registry of a file; see `read_identity`."""
    return Registry.from_json(_read(path, "secagg identity register"))


def _read(path: str, remedy: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ParameterError(
            f"cannot read {path}: {error.strerror}; make it with {remedy}"
        ) from None
