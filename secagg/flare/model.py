"""Models in messages, and updates of models as vectors.

The server sends a model's arrays, which are not secret, as one `Model` to all sites. A site
returns the difference between the trained and the sent arrays as a vector. Reading a model runs
no code and takes no more memory than the model's bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from secagg._secrets import without_frames
from secagg.client.inputs import count_spoiled
from secagg.encoding import flatten
from secagg.errors import ParameterError, RemoteProtocolError

Array = NDArray[np.generic]
_DTYPES = frozenset(
    f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)
) - {"float8"} | {"bool"}


class _Array(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    name: str
    dtype: str
    shape: list[int]
    data: bytes  # little-endian, in C order


class _Frame(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    task: str
    round: int
    rounds: int
    excluded: list[str]
    arrays: list[_Array]
    configuration: bytes


@dataclass(frozen=True, eq=False)
class Model:
    """Model of a round, which the server sends to all sites.

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
    configuration : bytes
        Digest of the job's configuration of the sites, see `digest_configuration`.
    """

    task: str
    round: int
    rounds: int
    arrays: Mapping[str, Array]
    excluded: tuple[str, ...] = ()
    configuration: bytes = b""


def check_finite(model: Model) -> None:
    """Raise `ParameterError` for elements that no training can use; see `count_spoiled`."""
    for name, array in model.arrays.items():
        if nans := count_spoiled(array, summed=False):  # excluded arrays, too, may have none
            raise ParameterError(
                f"array {name!r} of the global model has {nans} elements that are NaN; replace "
                "them, or restore an earlier model"
            )
        if spoiled := count_spoiled(array, summed=name not in model.excluded):
            raise ParameterError(
                f"array {name!r} of the global model has {spoiled} elements that are infinite; "
                "restore an earlier model, or leave the array out with "
                f"exclude_vars={re.escape(name)!r} if infinite elements belong there"
            )


def summed(model: Model) -> dict[str, Array]:
    """Return the arrays with summed updates.

    Raises
    ------
    ParameterError
        No array is left, or an array is not of floats.
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
    """Return a model as bytes, the same for equal models.

    Raises
    ------
    ParameterError
        An array is not of floats, integers or booleans of at most 64 bits.
    """
    found = []
    for name, leaf in model.arrays.items():
        array = np.asarray(leaf)
        if array.dtype.name not in _DTYPES:
            raise ParameterError(
                f"array {name!r} has the dtype {array.dtype}; convert it to floats, integers "
                "or booleans of at most 64 bits"
            )
        data = array.astype(array.dtype.newbyteorder("<")).tobytes()
        found.append(_Array(name, array.dtype.name, list(array.shape), data))
    excluded = list(model.excluded)
    return msgspec.msgpack.encode(
        _Frame(model.task, model.round, model.rounds, excluded, found, model.configuration)
    )


def read_model(data: bytes) -> Model:
    """Return the model that `write_model` wrote, with read-only arrays.

    Raises
    ------
    RemoteProtocolError
        "model": the bytes are not a model. Or a summed array is not finite, or an excluded
        array has a NaN; see `count_spoiled`.
    """
    why = "the message is not a model of secagg.flare; use the same version on both sides"
    try:
        frame = msgspec.msgpack.decode(data, type=_Frame)
        arrays = {one.name: _array(one) for one in frame.arrays}
        # a name that comes twice would hide one of two arrays
        if not arrays or len(arrays) != len(frame.arrays):
            raise ParameterError(why)
        excluded, own = tuple(frame.excluded), frame.configuration
        model = Model(frame.task, frame.round, frame.rounds, arrays, excluded, own)
        check_finite(model)
    except (msgspec.MsgspecError, ValueError) as error:
        why = str(error) if isinstance(error, ParameterError) else why
        raise RemoteProtocolError(why, sender=None, phase="model", check="model") from None
    return model


def _array(found: _Array) -> Array:
    """Return an array; raise ValueError if the bytes do not fit dtype and shape."""
    # −1 in a shape would let numpy choose the size
    if found.dtype not in _DTYPES or min(found.shape, default=0) < 0:
        raise ValueError
    flat = np.frombuffer(found.data, np.dtype(found.dtype).newbyteorder("<"))
    return flat.reshape(found.shape).astype(found.dtype, copy=False)


@without_frames
def difference(
    model: Model, trained: Mapping[str, object], *, relative: bool
) -> NDArray[np.float64]:
    """Return the update of a model as a vector, in the order of `secagg.encoding.flatten`.

    Parameters
    ----------
    model : Model
    trained : mapping of str to array
        Arrays after training, with every summed array of the model in an unchanged shape.
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
