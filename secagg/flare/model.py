"""Models in messages, and updates of them as vectors.

The server sends a model's arrays, which are not secret, as one `Model` to all sites. A site
returns the difference between the trained and the sent arrays as a vector. The arrays are in
NumPy's .npz format without pickles, so reading them runs no code.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from zipfile import BadZipFile

import msgspec
import numpy as np
from numpy.typing import NDArray

from secagg._secrets import without_frames
from secagg.encoding import flatten
from secagg.errors import ParameterError, RemoteProtocolError

__all__ = ["Model", "difference", "read_model", "summed", "write_model"]

Array = NDArray[np.generic]


class _Frame(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    task: str
    round: int
    rounds: int
    excluded: list[str]
    arrays: bytes


@dataclass(frozen=True, eq=False)
class Model:
    """Model of one round, as the server sends it to all sites.

    Attributes
    ----------
    task : str
        Name of the trainer's task, such as "train".
    round, rounds : int
        Number of the round from 0, and number of rounds.
    arrays : dict of str to array
        All arrays of the model.
    excluded : tuple of str
        Names of the arrays that no sum has.
    """

    task: str
    round: int
    rounds: int
    arrays: Mapping[str, Array]
    excluded: tuple[str, ...] = ()


def summed(model: Model) -> dict[str, Array]:
    """Return the arrays whose updates are summed.

    Raises
    ------
    ParameterError
        No array is left, or one is not of floats.
    """
    found = {k: np.asarray(v) for k, v in model.arrays.items() if k not in model.excluded}
    for name, array in found.items():
        if array.dtype.kind != "f":
            raise ParameterError(
                f"array {name!r} has the dtype {array.dtype}, and updates are sums of floats; "
                f"leave it out with exclude_vars={re.escape(name)!r}"
            )
    if not found:
        raise ParameterError("no array of the model is left to sum; exclude fewer of them")
    return found


def write_model(model: Model) -> bytes:
    """Return a model as bytes, the same for equal models."""
    file = io.BytesIO()
    # a keyword argument `file` of savez would name an array
    arrays = {f"a{i}": np.asarray(v) for i, v in enumerate(model.arrays.values())}
    names = np.array(list(model.arrays), dtype=np.str_)
    np.savez(file, allow_pickle=False, names=names, **arrays)
    frame = _Frame(model.task, model.round, model.rounds, list(model.excluded), file.getvalue())
    return msgspec.msgpack.encode(frame)


def read_model(data: bytes) -> Model:
    """Return the model that `write_model` wrote.

    Raises
    ------
    RemoteProtocolError
        "model": the bytes are not a model.
    """
    try:
        frame = msgspec.msgpack.decode(data, type=_Frame)
        with np.load(io.BytesIO(frame.arrays), allow_pickle=False) as file:
            names = [str(name) for name in file["names"]]
            arrays = {name: file[f"a{i}"] for i, name in enumerate(names)}
    except (msgspec.MsgspecError, ValueError, KeyError, OSError, EOFError, BadZipFile):
        arrays, names = {}, []
    if not names or len(arrays) != len(names):
        why = "the message is not a model of secagg.flare; use the same version on both sides"
        raise RemoteProtocolError(why, sender=None, phase="model", check="model")
    return Model(frame.task, frame.round, frame.rounds, arrays, tuple(frame.excluded))


@without_frames
def difference(
    model: Model, trained: Mapping[str, object], *, relative: bool
) -> NDArray[np.float64]:
    """Return the update of a model as one vector, in the order of `secagg.encoding.flatten`.

    Parameters
    ----------
    model : Model
    trained : mapping of str to array
        Arrays after training. They have each summed array of the model, in its shape.
    relative : bool
        True if `trained` has differences to the model already.

    Raises
    ------
    ParameterError
        An array is missing, or has another shape.
    """
    update: dict[str, NDArray[np.float64]] = {}
    for name, array in summed(model).items():
        if name not in trained:
            raise ParameterError(f"the trained model has no array {name!r}; return all arrays")
        new = np.asarray(trained[name], dtype=np.float64)
        if new.shape != array.shape:
            raise ParameterError(
                f"array {name!r} has the shape {new.shape} after training and {array.shape} "
                "before; return the arrays in their shapes"
            )
        update[name] = new if relative else new - array.astype(np.float64)
    return flatten(update)[0]
