"""Inputs of a simulation, by the ids of clients, and the time that each party takes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar, cast

from secagg.encoding import Vector
from secagg.errors import ParameterError
from secagg.protocol.client_ids import ByClient, ClientKey, Names

Party = TypeVar("Party", str, int)


@contextmanager
def timed(seconds: dict[Party, float], party: Party) -> Iterator[None]:
    """Add the time of the block to the seconds of a party."""
    start = time.perf_counter()
    yield
    seconds[party] += time.perf_counter() - start


def keys_of(
    vectors: ByClient[Vector] | Sequence[Vector] | Vector, names: Names
) -> dict[int, ClientKey]:
    """Return the key of each client's vector, by ascending ids."""
    if isinstance(vectors, Mapping):
        return names.keys(vectors)
    return {u: u for u in range(_length("vectors", vectors))}


def weights_of(
    weights: ByClient[int] | Sequence[int] | None, keys: Mapping[int, ClientKey], names: Names
) -> dict[int, int]:
    """Return each client's weight; raise `ParameterError` unless all vectors have a weight."""
    if weights is None:
        return {}
    if isinstance(weights, Mapping):
        weight_of = cast("Mapping[ClientKey, int]", weights)
        given = {u: weight_of[key] for u, key in names.keys(weights).items()}
    else:
        _length("weights", weights)
        given = dict(enumerate(weights))
    missing = [key for u, key in keys.items() if u not in given]
    if missing:
        raise ParameterError(f"client {missing[0]} has a vector but no weight")
    # no weight is missing, so a surplus weight is of a client without a vector
    if len(given) > len(keys):
        raise ParameterError(f"{len(given)} weights were given for {len(keys)} vectors")
    return given


def _length(name: str, values: object) -> int:
    """Return the length of a sequence or array; raise `ParameterError` for anything else."""
    if hasattr(values, "__getitem__") and hasattr(values, "__len__"):
        with suppress(TypeError):  # an array of no dimension, or a class
            return len(values)
    raise ParameterError(
        f"{name} must be a mapping by client id or a sequence, not {type(values).__name__}"
    )
