"""Model files: a header, and an ``.npz`` archive of the tables.

The header has magic, version, length and SHA-256 of the archive. It is checked before any
parsing, and no data are ever unpickled.
"""

from __future__ import annotations

import hashlib
import io
import os
import struct
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedmf.errors import ModelError

__all__ = ["read_tables", "write_tables"]

MAGIC = b"fedmf model\n"
VERSION = 1
HEADER = struct.Struct(f"<{len(MAGIC)}sIQ32s")  # magic, version, length, SHA-256

TABLES = {
    "user_factors": np.float64,
    "item_factors": np.float64,
    "seen_indptr": np.int64,
    "seen_items": np.int32,
    "user_ids": np.int64,
    "item_ids": np.int64,
}


def write_tables(path: str | os.PathLike[str], tables: dict[str, Any]) -> None:
    """Write the tables named in `TABLES` to a file, atomically; raises ModelError."""
    payload = io.BytesIO()
    np.savez(payload, **tables)
    body = payload.getvalue()
    header = HEADER.pack(MAGIC, VERSION, len(body), hashlib.sha256(body).digest())
    target = Path(path)
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as part:
            try:
                part.write(header + body)
                part.flush()
                os.fsync(part.fileno())
                os.replace(part.name, target)
            except BaseException:
                os.unlink(part.name)
                raise
    except OSError as error:
        raise ModelError(f"the model cannot be written to {target}: {error}") from error


def read_tables(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """Return the tables of a file by name; raises ModelError, see `Factors.load`."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ModelError(
            f"the model {path} cannot be read ({error.strerror}): give a folder or a file that "
            "fedmf train --out wrote"
        ) from error
    return _tables(_checked_body(data, path), path)


def _checked_body(data: bytes, path: str | os.PathLike[str]) -> bytes:
    """Validate magic, version, length and checksum, and return the bytes after the header."""
    if not data.startswith(MAGIC[: len(data)]) or not data:
        raise ModelError(
            f"{path} is not a model of fedmf: give a file that fedmf train --out wrote"
        )
    if len(data) < HEADER.size:
        raise ModelError(f"the model {path} is cut short to {len(data)} bytes: train it again")
    _, version, length, checksum = HEADER.unpack_from(data)
    if version != VERSION:
        raise ModelError(
            f"the model {path} has version {version}; this fedmf reads version {VERSION}: "
            "train it again, or use the fedmf that wrote it"
        )
    body = data[HEADER.size :]
    if len(body) != length:
        raise ModelError(
            f"the model {path} is cut short or has grown: {len(body)} bytes after its header "
            f"instead of {length}"
        )
    if hashlib.sha256(body).digest() != checksum:
        raise ModelError(f"the model {path} has another checksum than recorded: train it again")
    return body


def _tables(body: bytes, path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """Return the tables of the archive by name; ModelError if a name or dtype is wrong."""
    found = {}
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as packed:
            if sum(member.file_size for member in packed.infolist()) > len(body):
                raise ValueError("it is compressed, unlike a saved model")
        with np.load(io.BytesIO(body), allow_pickle=False) as archive:
            for name, dtype in TABLES.items():
                table = archive[name]
                if not isinstance(table, np.ndarray) or table.dtype != dtype:
                    raise ValueError(f"{name} is not a table of {np.dtype(dtype)}")
                found[name] = table
    # The checksum is right, so the file was made on purpose. numpy and zipfile do not document
    # what they raise on such bytes, and every error means the same.
    except Exception as error:
        raise ModelError(f"the model {path} lacks a table: {error}") from error
    return found
