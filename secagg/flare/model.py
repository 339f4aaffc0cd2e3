"""Models as messages, updates as vectors, and the task and context of a training.

The server sends a model's arrays, which are not secret, as one `Model` to all sites. A site
returns the difference between the trained and the sent arrays as a vector. Reading a model runs
no code and takes no more memory than the model's bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from nvflare.apis.fl_constant import FLContextKey, FLMetaKey, ReservedKey, ReturnCode
from nvflare.apis.fl_context import FLContext, M, is_sticky
from nvflare.apis.shareable import Shareable
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.utils.fl_model_utils import FLModelUtils

from secagg._secrets import without_frames
from secagg.client.inputs import Outcome, count_spoiled
from secagg.encoding import Vector, flatten
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


_KEPT = frozenset({ReservedKey.MANAGER, ReservedKey.ENGINE, ReservedKey.IDENTITY_NAME})
_OF_SERVER = (FLContextKey.JOB_META, FLContextKey.CLIENT_HIERARCHY)
"""Properties of a whole job, which the server can choose for each site."""


def training_task(model: Model) -> Shareable:
    """Return FLARE's task data for the training of a model."""
    return FLModelUtils.to_shareable(
        FLModel(
            params_type=ParamsType.FULL,
            params={k: v.copy() for k, v in model.arrays.items()},  # for use in place
            current_round=model.round,
            total_rounds=model.rounds,
        )
    )


def agreed_context(fl_ctx: Any, model: Model, task: Shareable) -> FLContext:
    """Return a context for the training of a model.

    The context has the properties that this site's FLARE set for the job. The properties of the
    task itself have values that all sites of the sum agree on. Properties that the trainer sets
    stay in the context.

    Parameters
    ----------
    fl_ctx : FLContext
        Context of the task that came from the server.
    model : Model
    task : Shareable
        Task of the trainer.
    """
    context: FLContext = fl_ctx.clone()
    # sticky properties are this site's own; others came with the task of the server
    context.props = {
        key: one for key, one in context.props.items() if key in _KEPT or is_sticky(one[M])
    }
    server = FLContext()
    server.set_public_props({ReservedKey.RUN_NUM: fl_ctx.get_job_id()})
    agreed = {
        FLContextKey.TASK_NAME: model.task,
        FLContextKey.TASK_ID: f"{model.task} {model.round}",
        FLContextKey.TASK_DATA: task,
        FLContextKey.PEER_CONTEXT: server,
        **dict.fromkeys(_OF_SERVER),
    }
    for key, value in agreed.items():
        context.put(key, value, private=True, sticky=False)
    return context


def read_outcome(model: Model, reply: Shareable, max_weight: int | None) -> Outcome:
    """Return the outcome of a training from the result; see `read_update` for arguments."""
    try:
        update = read_update(model, reply, max_weight)
    # of any class, since the job's own code made the result
    except Exception as error:
        return Outcome(None, error=error)
    return Outcome(*update) if isinstance(update, tuple) else Outcome(update)


@without_frames
def read_update(
    model: Model, reply: Shareable, max_weight: int | None
) -> Vector | tuple[Vector, int]:
    """Return the update in a trainer's result, with a weight if the sum has weights.

    Parameters
    ----------
    model : Model
        The model that was trained.
    reply : Shareable
        Weights or differences of weights by name.
    max_weight : int or None
        None: the sum has no weights.

    Raises
    ------
    ParameterError
        The training failed, or the result does not fit the model.
    """
    if reply.get_return_code() != ReturnCode.OK:
        raise ParameterError(
            f"the trainer's task {model.task!r} ended with {reply.get_return_code()}; its own "
            "log has the reason"
        )
    result = FLModelUtils.from_shareable(reply)
    if not isinstance(result.params, dict):
        raise ParameterError("the trainer returned no arrays; return weights by name")
    relative = result.params_type == ParamsType.DIFF
    vector = difference(model, result.params, relative=relative)
    if max_weight is None:
        return vector
    weight = (result.meta or {}).get(FLMetaKey.NUM_STEPS_CURRENT_ROUND)
    if not isinstance(weight, int) or isinstance(weight, bool):
        raise ParameterError(
            f"the trainer's result has no integer {FLMetaKey.NUM_STEPS_CURRENT_ROUND!r} in its "
            "meta; set it, or leave max_weight out at the server"
        )
    return vector, weight
