"""Model files: a header, and an ``.npz`` archive of the kind of model and the model's tables.

The header has magic, version, length and SHA-256 of the archive. The header is checked before
any parsing, and no data are ever unpickled. Version 1 had `Factors` only, without the table of
the kind.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedmf.data.coded import text_ids
from fedmf.data.ratings import is_dtype
from fedmf.errors import ModelError
from secagg._files import replace_file

Form: TypeAlias = Mapping[str, tuple[type[np.generic], ...]]
"""Tables of a kind of model: the allowed dtypes by the name of the table."""

MAGIC = b"fedmf model\n"
VERSION = 2
KIND = "kind"  # name of the table with the kind of model
FACTORS = "factors"  # the kind of `Factors`, and of every file of version 1
LOADERS = {
    FACTORS: "fedmf.Factors.load",
    "item weights": "fedmf.ease.ItemWeights.load",
    "posterior": "fedmf.Posterior.load",
}
"""Names of the loaders, for errors, by the kind: the loaders' modules import this module."""
HEADER = struct.Struct(f"<{len(MAGIC)}sIQ32s")  # magic, version, length, SHA-256

IDS = (np.int64, np.str_)
SEEN: Form = {
    "seen_indptr": (np.int64,),
    "seen_items": (np.int32,),
    "user_ids": IDS,
    "item_ids": IDS,
}
"""Tables of every `Stored`."""


def write_tables(path: str | os.PathLike[str], kind: str, tables: Mapping[str, Any]) -> None:
    """Write the tables of a kind of model to a file, atomically; raises ModelError."""
    payload = io.BytesIO()
    all_tables: dict[str, Any] = {KIND: np.array(kind), **tables}
    np.savez(payload, **{name: _plain(table) for name, table in all_tables.items()})
    body = payload.getvalue()
    header = HEADER.pack(MAGIC, VERSION, len(body), hashlib.sha256(body).digest())
    target = Path(path)
    try:
        replace_file(target, header + body, private=True)
    except OSError as error:
        raise ModelError(f"the model cannot be written to {target}: {error}") from error


def _plain(table: Any) -> Any:
    """Return a table that numpy writes without pickle: texts of StringDType become JSON."""
    if np.asarray(table).dtype.kind != "T":
        return table
    return np.frombuffer(json.dumps(table.tolist()).encode(), dtype=np.uint8)


def kind_of(path: str | os.PathLike[str]) -> str:
    """Return the kind of the model in a file, such as "factors"; raises ModelError."""
    version, body = _read(path)
    return _kind(version, body, path)


def read_tables(
    path: str | os.PathLike[str], kind: str, form: Form, added: Mapping[str, Any] | None = None
) -> dict[str, NDArray[Any]]:
    """Return the tables of a file by name.

    Parameters
    ----------
    path : file that `write_tables` wrote
    kind : kind of the model
    form : names and dtypes of the model's tables
    added : tables that version 1 did not have, with the values for such a file

    Raises
    ------
    ModelError
        If the file is missing, damaged, of another kind or version, or lacks a table.
    """
    version, body = _read(path)
    found = _kind(version, body, path)
    if found != kind:
        raise ModelError(
            f"the model {path} is of the kind {found!r}, not {kind!r}: load it with "
            f"{LOADERS.get(found, 'the class that saved it')}"
        )
    older = added if version == 1 and added is not None else {}
    wanted = {name: dtypes for name, dtypes in form.items() if name not in older}
    return _tables(body, wanted, path) | dict(older)


def _read(path: str | os.PathLike[str]) -> tuple[int, bytes]:
    """Validate header and checksum; return the version and the bytes of the archive."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ModelError(
            f"the model {path} cannot be read ({error.strerror}): give a folder or a file that "
            "fedmf train --out wrote"
        ) from error
    if not data.startswith(MAGIC[: len(data)]) or not data:
        raise ModelError(
            f"{path} is not a model of fedmf: give a file that fedmf train --out wrote"
        )
    if len(data) < HEADER.size:
        raise ModelError(f"the model {path} is cut short to {len(data)} bytes: train it again")
    _, version, length, checksum = HEADER.unpack_from(data)
    if version not in (1, VERSION):
        raise ModelError(
            f"the model {path} has version {version}; this fedmf reads versions 1 and "
            f"{VERSION}: train it again, or use the fedmf that wrote it"
        )
    body = data[HEADER.size :]
    if len(body) != length:
        raise ModelError(
            f"the model {path} is cut short or has grown: {len(body)} bytes after its header "
            f"instead of {length}"
        )
    if hashlib.sha256(body).digest() != checksum:
        raise ModelError(f"the model {path} has another checksum than recorded: train it again")
    return int(version), body


def _kind(version: int, body: bytes, path: str | os.PathLike[str]) -> str:
    """Return the kind of the model in an archive."""
    if version == 1:
        return FACTORS
    kind = _tables(body, {KIND: (np.str_,)}, path)[KIND]
    if kind.shape:
        raise ModelError(f"the model {path} has several kinds, {kind!r}: train it again")
    return str(kind)


def _tables(body: bytes, form: Form, path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """Return the tables of the archive by name; ModelError if a name or dtype is wrong."""
    found = {}
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as packed:
            if sum(member.file_size for member in packed.infolist()) > len(body):
                raise ValueError("it is compressed, unlike a saved model")
        with np.load(io.BytesIO(body), allow_pickle=False) as archive:
            for name, dtypes in form.items():
                table = archive[name]
                if np.str_ in dtypes and table.dtype == np.uint8:
                    table = text_ids(json.loads(table.tobytes()))
                if not isinstance(table, np.ndarray) or not any(
                    is_dtype(table.dtype, dtype) for dtype in dtypes
                ):
                    names = " or ".join(dtype.__name__ for dtype in dtypes)
                    raise ValueError(f"{name} is not a table of {names}")
                found[name] = table
    # The checksum is right, so the file was made on purpose. numpy and zipfile do not document
    # their errors on such bytes, and every error means the same.
    except Exception as error:
        raise ModelError(f"the model {path} lacks a table: {error}") from error
    return found
