"""Files of a client beside the vault: the bounds of the input, and the last sum's number."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import msgspec

from secagg._files import locked, private_folder, replace_file
from secagg.encoding import Encoding, from_canonical
from secagg.errors import ParameterError, VaultError
from secagg.protocol import Bounds, Noise
from secagg.protocol.shape import Shape


@contextmanager
def errors_of(path: Path, name: str = "") -> Iterator[None]:
    """Turn any OSError in the block into a VaultError with the path, after the `name`."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise VaultError(
            f"{name}{path}: {why}; it needs a folder on a local disk that this process may "
            "write to",
            check="file",
        ) from None


class _Stored(msgspec.Struct, forbid_unknown_fields=True):
    encoding: str  # canonical bytes, in hexadecimal
    max_weight: int | None
    metrics: dict[str, float]
    weight: str | None = None
    noise: str | None = None  # likewise
    min_survivors: int | None = None


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
            noise = None if found.noise is None else found.noise.canonical().hex()
            known = (found.max_weight, dict(found.metrics), found.weight)
            stored = _Stored(canonical, *known, noise, found.min_survivors)
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
        noise = None
        if stored.noise is not None:
            noise = Noise.from_canonical(bytes.fromhex(stored.noise))
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, ValueError, ParameterError):
        known = None
    if known is None:
        raise VaultError(
            f"{path} has not the bounds of a client's input; delete it to fix them again",
            check="file",
        )
    return Bounds(
        known,
        stored.max_weight,
        metrics=stored.metrics,
        weight=stored.weight,
        noise=noise,
        min_survivors=stored.min_survivors,
    )


_LAST = struct.Struct("<Q")
_LONGEST = 64


def spend(folder: Path, owner: str, number: int) -> int | None:
    """Record a sum, durably; only one of several threads and processes succeeds.

    Two vectors of the same client in almost the same sum can give a vector away, as the
    difference of the two sums. So a client is in a sum only if the sum's number is above the
    numbers of all the client's sums before, also after a restart.

    A member of a session remembers attempts in memory instead. A restarted member may be in the
    next attempt of a round (docs/sessions.md, 5), which this rule would forbid.

    Parameters
    ----------
    folder : Path
        Folder on a local disk, which is made if missing; never copy or restore the folder.
        Clients may share a folder.
    owner : str
        Name of the client and of the sequence of sums.
    number : int
        Number of the sum, 0 ≤ number < 2^64.

    Returns
    -------
    last : int or None
        None: the sum is recorded, and the client may send the vector. Otherwise the number of
        the last sum, which is not below `number`: the client must not send the vector.

    Raises
    ------
    VaultError
        The file cannot be read or written, or was altered ("file").
    """
    # the owner's own name may not be a valid file name
    plain = owner.isascii() and owner.replace("-", "").isalnum() and len(owner) <= _LONGEST
    name = owner if plain else hashlib.sha256(owner.encode()).hexdigest()[:32]
    path = folder / f"{name}.last"
    with errors_of(path):
        private_folder(folder)
        with locked(folder):  # a second process may have the same request
            with suppress(FileNotFoundError):
                stored = path.read_bytes()
                if len(stored) != _LAST.size:
                    raise VaultError(
                        f"{path} has not the number of a sum; delete it after the run has "
                        "ended",
                        check="file",
                    )
                (last,) = _LAST.unpack(stored)
                if number <= last:
                    return int(last)
            # on the disk before the vector leaves: a restart must not send another vector
            replace_file(path, _LAST.pack(number), private=True)
            return None
