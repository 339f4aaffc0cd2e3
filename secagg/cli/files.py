"""Files of the commands: keys of identities, registries, helpers and vectors."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from secagg._secrets import without_frames
from secagg.bench.table import write_atomically
from secagg.encoding import Vector
from secagg.errors import ParameterError
from secagg.protocol import Identity, Registry


class HelperEntry(NamedTuple):
    """Helper of a file of helpers: where it is, and its public keys."""

    url: str
    suite: str
    hpke: bytes
    ed25519: bytes


def read(path: Path) -> bytes:
    """Return a file's content; raise `ParameterError` if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ParameterError(f"cannot read {path}: {error.strerror}") from None


def write_private(path: Path, content: bytes) -> None:
    """Write a file of mode 600, whole or not at all."""
    mask = os.umask(0o077)
    try:
        write_atomically(path, content)
    finally:
        os.umask(mask)


@without_frames
def create_identity(path: Path) -> Identity:
    """Draw an identity and write its key to a new file, in PEM of PKCS #8 (RFC 8410)."""
    private = Ed25519PrivateKey.generate()
    content = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise ParameterError(
            f"{path} exists, and a key that is overwritten is lost; choose another file"
        ) from None
    return Identity(private.private_bytes_raw())


@without_frames
def read_identity(path: Path) -> Identity:
    """Return the identity whose private key a file has, in PEM and not encrypted."""
    try:
        private = load_pem_private_key(read(path), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        private = None
    if not isinstance(private, Ed25519PrivateKey):
        raise ParameterError(
            f"{path} is no Ed25519 private key in PEM; make one with secagg identity keygen"
        )
    return Identity(private.private_bytes_raw())


def read_registry(path: Path) -> Registry:
    """Return the registry of a file: a JSON object of ids or names to keys in hexadecimal."""
    return Registry(read_keys(path))


def read_keys(path: Path) -> dict[int | str, bytes]:
    """Return the public keys of a registry's file, by id or name."""
    try:
        # pairs: a dict would silently keep one of two keys under the same id
        pairs = json.loads(read(path), object_pairs_hook=tuple)
        if not isinstance(pairs, tuple):  # a JSON array is a list
            raise TypeError
        keys = [(as_client(u), bytes.fromhex(key)) for u, key in pairs]
    except ParameterError:
        raise
    except (ValueError, TypeError, RecursionError):
        raise ParameterError(
            f"{path} is not a JSON object of client ids to keys in hexadecimal"
        ) from None
    registered = dict(keys)
    if len(registered) != len(keys):
        raise ParameterError(f"{path} has a client id twice; give every client one key")
    return registered


def as_client(text: str) -> int | str:
    """Return a client's id from decimal digits; anything else is a name."""
    return int(text) if text.isascii() and text.isdigit() else text


def write_keys(path: Path, keys: Mapping[int | str, bytes]) -> None:
    """Write a registry's file."""
    document = {str(u): key.hex() for u, key in keys.items()}
    write_atomically(path, (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode())


def read_helpers(path: Path) -> list[HelperEntry]:
    """Return the helpers of a file, which application and clients have in common."""
    try:
        return [
            HelperEntry(
                str(one["url"]),
                str(one["suite"]),
                bytes.fromhex(one["hpke"]),
                bytes.fromhex(one["ed25519"]),
            )
            for one in json.loads(read(path))
        ]
    except ParameterError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ParameterError(
            f"{path} is not a JSON array of helpers; each is what secagg helper keygen --json "
            'prints, with its "url"'
        ) from None


@without_frames
def read_vector(path: Path) -> Vector:
    """Return the vector of a file in numpy's format."""
    try:
        vector = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        vector = None
    if not isinstance(vector, np.ndarray):
        raise ParameterError(f"{path} is no array in numpy's format; write it with numpy.save")
    return vector
