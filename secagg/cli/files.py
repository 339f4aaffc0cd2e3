"""Files of the commands: keys of identities, registries, helpers and vectors."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.lib.format import MAGIC_PREFIX

from secagg._files import create_file, replace_file
from secagg._secrets import without_frames
from secagg.cli.console import call_clients
from secagg.encoding import Vector
from secagg.encoding.pieces import one_dimensional
from secagg.errors import ParameterError
from secagg.oneshot.helper_files import HelperEntry, helpers_from_json
from secagg.protocol import Identity, Registry
from secagg.protocol.client_ids import ClientKey
from secagg.protocol.key_files import registry_from_json, registry_to_json

_KINDS = "float64, float32, an integer type or bool"
S = TypeVar("S")
T = TypeVar("T")


def read(path: Path) -> bytes:
    """Return a file's content; raise `ParameterError` if it cannot be read."""
    refuse_device(path)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ParameterError(f"{path} does not exist; check the path") from None
    except OSError as error:
        raise ParameterError(
            f"cannot read {path}: {error.strerror}; give a file that this user may read"
        ) from None


def refuse_device(path: Path) -> None:
    """Raise `ParameterError` for a device: /dev/zero would fill the memory."""
    if path.is_char_device():
        raise ParameterError(f"{path} is a device, which may never end; give a file")


@without_frames
def create_identity(path: Path) -> Identity:
    """Draw an identity and write its key to a new file, in PEM."""
    made = Identity.generate()
    try:
        # on the disk: the public key may be registered before a crash
        create_file(path, made.to_pem(), private=True)
    except FileExistsError:
        raise ParameterError(
            f"{path} exists, and a key that is overwritten is lost; choose another file"
        ) from None
    return made


@without_frames
def read_identity(path: Path) -> Identity:
    """Return the identity of a file with a private key, in PEM and not encrypted."""
    return checked(path, Identity.from_pem, read(path))


def read_registry(path: Path) -> Registry:
    """Return the registry of a file, and show the clients' names in the command's errors."""
    keys = read_keys(path)
    call_clients(keys)
    return checked(path, Registry, keys)


def read_keys(path: Path) -> dict[ClientKey, bytes]:
    """Return the public keys of a registry's file, by id or name."""
    return checked(path, registry_from_json, read(path))


def checked(path: Path, check: Callable[[S], T], content: S) -> T:
    """Return the result of a function of a file's content; name the file in errors."""
    try:
        return check(content)
    except ParameterError as error:
        text = str(error)
    # after the handler, so that the error of the content is not chained
    raise ParameterError(f"{path}: {text}")


def write_keys(path: Path, keys: Mapping[ClientKey, bytes]) -> None:
    """Write a registry's file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, registry_to_json(keys).encode())


def read_helpers(path: Path) -> list[HelperEntry]:
    """Return the helpers of a file that the application and the clients share."""
    return checked(path, helpers_from_json, read(path))


@without_frames
def read_vector(path: Path) -> Vector:
    """Return the vector of a file in numpy's format.

    Raises
    ------
    ParameterError
        The file cannot be read, or has no vector of numbers.
    """
    data = read(path)
    # numpy.load would also open a pickle or an archive
    if not data.startswith(MAGIC_PREFIX):
        raise ParameterError(
            f"{path} is {_kind(data)}, and no array in numpy's format; write the vector with "
            f"numpy.save({path.name!r}, vector), or a table to a file named .csv"
        )
    try:
        vector = np.load(io.BytesIO(data), allow_pickle=False)
    # numpy reads the header with Python's parser, which raises errors of many classes
    except Exception:
        raise ParameterError(
            f"{path} is damaged, or has Python objects in place of numbers; write the vector "
            f"again with numpy.save({path.name!r}, vector)"
        ) from None
    given = checked(path, partial(one_dimensional, kinds="fiub", wanted=_KINDS), vector)
    if not given.size:
        raise ParameterError(f"{path} has a vector without elements; write the client's vector")
    return given


def _kind(data: bytes) -> str:
    """Return the likely kind of a file without an array, in words."""
    if not data:
        return "empty"
    if data.startswith(b"PK"):
        return "an archive, such as numpy.savez writes"
    if data.startswith(b"\x80"):
        return "a pickle"
    return "text" if data.isascii() else "a file of another format"
