"""Flattening of a model's arrays into one vector, and back.

A model is a mapping of names to arrays, such as a PyTorch state dict, or a sequence of arrays.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, cast, overload, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from secagg._secrets import without_frames
from secagg.errors import ParameterError

Array = NDArray[np.generic]
Container = TypeVar("Container", dict[str, Array], list[Array])
Leaf = TypeVar("Leaf")
_EXACT = 1 << 53
"""Integers up to this bound are exact as float64."""


@runtime_checkable
class _Tensor(Protocol):
    """Interface of a PyTorch tensor, which is not imported here."""

    def detach(self) -> _Tensor: ...
    def cpu(self) -> _Tensor: ...
    def numpy(self) -> Array: ...
    def new_tensor(self, data: Array) -> object: ...


@dataclass(frozen=True)
class Schema(Generic[Container]):
    """Names, shapes and dtypes of flattened arrays, made by `flatten`.

    Parties with equal digests of their schemas flatten alike. Put the digest into the session,
    as in ``session=b"round 7 " + schema.digest``, and a party with another model is rejected.

    Attributes
    ----------
    names : tuple of str
        Names in the order of the vector: ascending for a mapping, "0", "1", … for a sequence.
    shapes : tuple of tuple of int
    dtypes : tuple of str
        Names of numpy's dtypes, such as "float32", without the byte order.
    named : bool
        True for a mapping, False for a sequence.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    named: bool

    @property
    def length(self) -> int:
        """d, the number of elements of the vector: `length` of the RoundParams."""
        return sum(map(math.prod, self.shapes))

    @property
    def digest(self) -> bytes:
        """SHA-256 of kind, names, dtypes and shapes in the order of `names`; 32 bytes.

        Strings are in UTF-8 after their length, and numbers are 8 bytes, little-endian.
        """
        digest = hashlib.sha256(b"secagg/1 schema" + bytes([self.named]))
        for name, shape, dtype in zip(self.names, self.shapes, self.dtypes, strict=True):
            for text in (name, dtype):
                # a Python str may have lone surrogates, on which UTF-8 alone raises
                data = text.encode(errors="surrogatepass")
                digest.update(struct.pack("<Q", len(data)) + data)
            digest.update(struct.pack(f"<{len(shape) + 1}Q", len(shape), *shape))
        return digest.digest()

    @overload
    def unflatten(self, vector: NDArray[np.float64]) -> Container: ...
    @overload
    def unflatten(
        self, vector: NDArray[np.float64], like: Mapping[str, Leaf]
    ) -> dict[str, Leaf]: ...
    @overload
    def unflatten(self, vector: NDArray[np.float64], like: Sequence[Leaf]) -> list[Leaf]: ...
    def unflatten(
        self,
        vector: NDArray[np.float64],
        like: Mapping[str, Leaf] | Sequence[Leaf] | None = None,
    ) -> Container | dict[str, Leaf] | list[Leaf]:
        """Return the arrays of a vector, for example of the mean of a round.

        Integers and booleans are rounded to the nearest. All arrays are copies.

        Parameters
        ----------
        vector : float array, shape (d,)
        like : mapping or sequence of arrays, optional
            Original arrays, such as ``model.state_dict()``. PyTorch tensors among them give
            tensors of their dtype and device, as ``load_state_dict`` needs.

        Returns
        -------
        dict or list of array
            A dict if a mapping was flattened, a list if a sequence was.

        Raises
        ------
        ParameterError
            The vector is not of this length, an element does not fit the array's dtype, or the
            names or shapes of `like` differ from the schema.
        """
        if np.shape(vector) != (self.length,):
            raise ParameterError(
                f"the vector's shape is {np.shape(vector)}, and the schema's arrays have "
                f"{self.length} elements together; pass the sum or mean of such vectors"
            )
        arrays: dict[str, Array] = {}
        start = 0
        for name, shape, dtype in zip(self.names, self.shapes, self.dtypes, strict=True):
            part = np.asarray(vector[start : start + math.prod(shape)], np.float64)
            start += part.size
            arrays[name] = _cast(part, np.dtype(dtype), name).reshape(shape)
        if like is not None:
            for name, leaf in self._leaves(like):
                if isinstance(leaf, _Tensor):
                    arrays[name] = cast("Array", leaf.new_tensor(arrays[name]))
        return cast("Container", arrays if self.named else [*arrays.values()])

    def _leaves(self, like: Mapping[str, Leaf] | Sequence[Leaf]) -> list[tuple[str, Leaf]]:
        """Return names and arrays of `like`, which must have the names and shapes here."""
        leaves = _items(like)
        given = {name: tuple(getattr(leaf, "shape", ())) for name, leaf in leaves}
        expected = dict(zip(self.names, self.shapes, strict=True))
        if given != expected:
            odd = min(dict(given.items() ^ expected.items()))
            raise ParameterError(
                f"array {odd!r} has the shape {given.get(odd)} in `like` and "
                f"{expected.get(odd)} in the schema; pass the arrays that were flattened"
            )
        return leaves


@overload
def flatten(
    arrays: Mapping[str, object],
) -> tuple[NDArray[np.float64], Schema[dict[str, Array]]]: ...
@overload
def flatten(arrays: Sequence[object]) -> tuple[NDArray[np.float64], Schema[list[Array]]]: ...
@without_frames
def flatten(
    arrays: Mapping[str, object] | Sequence[object],
) -> tuple[NDArray[np.float64], Schema[dict[str, Array]] | Schema[list[Array]]]:
    """Concatenate arrays to one vector; ``schema.unflatten`` is the inverse.

    The order of a mapping's names does not matter. The vector is exact.

    Parameters
    ----------
    arrays : mapping of str to array, or sequence of arrays
        Arrays of floats up to 64 bits, of booleans, or of integers up to 2^53 in absolute
        value, each of any shape. An array may be of numpy, a PyTorch tensor on any device, or a
        number. For scikit-learn pass ``{"coef_": m.coef_, "intercept_": m.intercept_}``.

    Returns
    -------
    vector : float64 array, shape (d,)
        All elements, by ascending name or by position, each array in C order.
    schema : Schema

    Raises
    ------
    ParameterError
        There is no array, a name is not a str, or an array has another dtype, such as complex.
    """
    found = [(name, _as_array(name, leaf)) for name, leaf in _items(arrays)]
    if not found:
        raise ParameterError("there is no array to flatten; pass at least one")
    vector = np.concatenate([array.astype(np.float64).ravel() for _, array in found])
    schema: Schema[dict[str, Array]] = Schema(
        names=tuple(name for name, _ in found),
        shapes=tuple(array.shape for _, array in found),
        dtypes=tuple(array.dtype.name for _, array in found),
        named=isinstance(arrays, Mapping),
    )
    return vector, schema


def _items(arrays: Mapping[str, Leaf] | Sequence[Leaf]) -> list[tuple[str, Leaf]]:
    """Return names and arrays in the order of the vector."""
    if not isinstance(arrays, Mapping):
        if isinstance(arrays, str | bytes) or not isinstance(arrays, Sequence):
            raise ParameterError(
                "arrays must be a mapping by name or a sequence, not "
                f"{type(arrays).__name__}; pass arrays by name, or a list of them"
            )
        return [(str(position), leaf) for position, leaf in enumerate(arrays)]
    for name in arrays:
        if not isinstance(name, str):
            raise ParameterError(
                f"the names of arrays must be str, not {type(name).__name__}; convert {name!r}"
            )
    # by name: two parties may have inserted the same arrays in another order
    return sorted(arrays.items(), key=lambda item: item[0])


def _as_array(name: str, leaf: object) -> Array:
    """Return an array, a tensor or a number as a numpy array that is exact as float64."""
    if isinstance(leaf, _Tensor):
        try:
            leaf = leaf.detach().cpu().numpy()
        except TypeError as error:  # numpy has no bfloat16
            raise ParameterError(
                f"array {name!r} has no dtype of numpy ({error}); convert it with .float()"
            ) from None
    if isinstance(leaf, np.ma.MaskedArray):
        raise ParameterError(
            f"array {name!r} is a masked array, whose hidden elements would be in the sum; "
            "replace them with .filled(value)"
        )
    if not isinstance(leaf, int | float) and not hasattr(leaf, "__array__"):
        raise ParameterError(
            f"array {name!r} is a {type(leaf).__name__}; pass arrays, each under a name of its "
            "own"
        )
    array = np.asarray(leaf)
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise ParameterError(
            f"the dtype of array {name!r} is {array.dtype}, which is not a float of at most "
            "64 bits, an integer or a boolean; convert it, or leave it out"
        )
    integers = array.dtype.kind in "iu" and array.size > 0
    if integers and not -_EXACT <= int(array.min()) <= int(array.max()) <= _EXACT:
        raise ParameterError(
            f"array {name!r} has an integer beyond 2^53, which is no float64; leave it out"
        )
    return array


def _cast(part: NDArray[np.float64], dtype: np.dtype[np.generic], name: str) -> Array:
    """Return elements in the array's dtype; raise `ParameterError` if one does not fit."""
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            out = part.astype(dtype)
        # NaN and infinity in the vector stay; an infinity that the cast made does not fit
        fits = np.isfinite(out) == np.isfinite(part)
    else:
        rounded = np.rint(part)
        low, high = (
            (0, 1)
            if dtype.kind == "b"
            else (np.iinfo(dtype.name).min, np.iinfo(dtype.name).max)
        )
        # 2^63 and 2^64 are floats, the largest int64 and uint64 are not
        fits = (rounded >= low) & (rounded < float(high) + 1)
        with np.errstate(invalid="ignore"):
            out = rounded.astype(dtype)
    if not fits.all():
        raise ParameterError(
            f"element {int((~fits).argmax())} of array {name!r} does not fit {dtype}; "
            "unflatten the mean instead of the sum, or flatten a wider dtype"
        )
    return out
