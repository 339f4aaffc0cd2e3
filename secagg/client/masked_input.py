"""Round 2 at the client: encode the vector and weight modulo R, and add all masks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from secagg._check import is_integer
from secagg.client.states import Shared
from secagg.encoding import Entropy, Lanes, Vector
from secagg.errors import ParameterError
from secagg.protocol import RoundParams, keys


def encode_input(
    vector: Vector, weight: int | None, params: RoundParams, entropy: Entropy
) -> tuple[Lanes, int]:
    """Return the encoded vector modulo R and the number of clipped elements.

    In a weighted sum the vector is multiplied by its weight, which follows as an element. With
    ``params.count_clipped`` the number of clipped elements is the last one.
    `ParameterError` is raised for an invalid vector, and for a weight that is missing, not
    allowed or out of range.
    """
    if weight is None and params.max_weight is not None:
        raise ParameterError(
            f"the weight is missing; pass an int from 0 to {params.max_weight}"
        )
    if weight is not None:
        if params.max_weight is None:
            raise ParameterError(
                "a weight was given, but this round's sum is unweighted; leave the weight out"
            )
        if not is_integer(weight) or not 0 <= weight <= params.max_weight:
            # the weight is private, so its value is not repeated
            raise ParameterError(
                f"weight must be an int from 0 to {params.max_weight}; this one, of type "
                f"{type(weight).__name__}, is not"
            )
    factor = 1 if weight is None else int(weight)
    values, clipped = params.encoding.encode(vector, params.ring, factor, entropy)
    if values.size != params.length:
        raise ParameterError(
            f"the vector has {values.size} elements; the vectors of this round have "
            f"{params.length}"
        )
    more = [] if weight is None else [int(weight)]
    if params.count_clipped:
        more.append(clipped)
    if not more:
        return values, clipped
    elements = params.ring.zeros(params.elements)
    elements[: params.length], elements[params.length :] = values, more
    return elements, clipped


def add_masks(
    values: Lanes, params: RoundParams, own: Shared, me: int, others: Sequence[int]
) -> None:
    """Add PRG(b_u), and ± PRG(s_uv) for every client v of `others`, to `values` in place."""
    total = keys.MaskSum()
    total.add(keys.self_mask_key(own.seed, own.session, me))
    derived = keys.rows_of((own.mask_keys[v] for v in others), keys.MASK_KEY_BYTES)
    total.extend(derived, keys.subtracts(me, np.array(others, np.uint64)))
    total.apply(values, params.ring)
    params.ring.reduce(values)
