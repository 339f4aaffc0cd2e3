"""Bounds of a client's input in a file: the first sum fixes the bounds of all later sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec

from secagg._files import locked, replace_file
from secagg.encoding import Encoding, from_canonical
from secagg.errors import ParameterError, VaultError
from secagg.protocol import Bounds
from secagg.protocol.shape import Shape
from secagg.vault.errors import errors_of


class _Stored(msgspec.Struct, forbid_unknown_fields=True):
    encoding: str  # canonical bytes, in hexadecimal
    max_weight: int | None
    metrics: dict[str, float]
    weight: str | None = None


def fix_bounds(
    path: Path,
    params: Shape,
    metrics: Mapping[str, float] | None = None,
    weight: str | None = None,
) -> Bounds:
    """Return the bounds of a client's input; the client's first sum fixes them, durably.

    A metric that no earlier sum had is added. The name of the weight is added if no earlier sum
    had a name.

    Parameters
    ----------
    path : Path
        File of this client, in an existing folder on a local disk.
    params : RoundParams or OneShotParams
        Parameters of a sum.
    metrics : mapping of str to float, optional
        Bounds of the metrics in the client's vectors.
    weight : str, optional
        Name of the weight, where the name is known; see `Bounds`.

    Raises
    ------
    ParameterError
        An earlier sum had other bounds.
    VaultError
        The file cannot be read or written, or has another content ("file").
    """
    wanted = Bounds.of(params, metrics, weight)
    # read and written under one lock: two sums at once must not both be the first
    with errors_of(path), locked(path.parent):
        fixed = _read(path, params.encoding)
        if fixed is None:
            found = wanted
        else:
            # fixed metrics win here, so a new value for such a metric is an objection below
            both = {**wanted.metrics, **fixed.metrics}
            why = replace(fixed, metrics=both).objection(wanted)
            if why is not None:
                raise ParameterError(
                    f"{why} since its first sum; a server that varies them could read "
                    "numbers of a client, so take the same, state them by "
                    "bounds=secagg.Bounds(encoding, max_weight) in the client's policy, or "
                    f"delete {path}"
                )
            found = Bounds.of(params, both, fixed.weight or weight)
        if found != fixed:
            canonical = found.encoding.canonical().hex()
            stored = _Stored(canonical, found.max_weight, dict(found.metrics), found.weight)
            content = msgspec.json.format(msgspec.json.encode(stored), indent=1)
            replace_file(path, content, private=True)
        return found


def _read(path: Path, own: Encoding) -> Bounds | None:
    """Return the bounds in a file, or None if there is none; `own` is the present encoding."""
    try:
        stored = msgspec.json.decode(path.read_bytes(), type=_Stored)
        canonical = bytes.fromhex(stored.encoding)
        # an encoding of the application's own class cannot be made from bytes here
        known = own if own.canonical() == canonical else from_canonical(canonical)
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, ValueError):
        known = None
    if known is None:
        raise VaultError(
            f"{path} has not the bounds of a client's input; delete it to fix them again",
            check="file",
        )
    return Bounds(known, stored.max_weight, metrics=stored.metrics, weight=stored.weight)
