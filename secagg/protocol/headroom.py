"""Room for the sum of n vectors: in the ring, in a message and in an int64."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secagg.errors import ParameterError

if TYPE_CHECKING:
    from secagg.protocol.params import RoundParams

_WORD = 32
"""Bits of the default modulus where they suffice: words that need no packing."""


def smallest_bits(params: RoundParams, noise: int = 0) -> int:
    """Return b of the smallest modulus 2^b with room for every sum; see `check_headroom`.

    The modulus of `params` has no influence. Above 64 bits there is none.
    """
    _, needed = _range(params, noise)
    return max(needed - 1, _clipped(params)).bit_length()


def default_bits(params: RoundParams, noise: int = 0) -> int:
    """Return b of the default modulus 2^b: 32, or as many as the sums need, but at most 64."""
    return min(64, max(_WORD, smallest_bits(params, noise)))


def check_headroom(params: RoundParams, noise: int = 0) -> None:
    """Raise `ParameterError` unless R, a message and an int64 hold every sum of n vectors.

    Parameters
    ----------
    params : RoundParams
    noise : int
        Bound on the absolute value of noise in each element of the sum.
    """
    weight = params.max_weight or 1
    largest, needed = _range(params, noise)
    if params.ring.modulus < needed:
        raise ParameterError(
            f"modulus {params.ring} has no headroom: the sum of {params.n_clients} vectors "
            f"with elements up to {params.encoding.max_encoded}"
            f"{f' and weights up to {weight}' if params.max_weight else ''}"
            f"{f' and noise up to {noise}' if noise else ''} needs R ≥ "
            f"{needed}; {_remedy((needed - 1).bit_length())}"
        )
    clipped = _clipped(params)
    if params.ring.modulus <= clipped:
        raise ParameterError(
            f"modulus {params.ring} has no headroom: {clipped} elements in all can be "
            f"clipped; take modulus_bits={clipped.bit_length()} or more, or leave "
            "count_clipped out"
        )
    packed = params.ring.packed_bytes(params.elements)
    if packed >= 1 << 32:
        raise ParameterError(
            f"length {params.length} at {params.ring.bits} bits makes a message of {packed} "
            "bytes, above 2^32 - 1; split the vector over several rounds"
        )
    if largest >= 1 << 63:
        raise ParameterError(f"sums up to {largest} do not fit an int64; encode smaller values")


def _range(params: RoundParams, noise: int) -> tuple[int, int]:
    """Return the largest element of a sum, and the number of values that an element can have.

    With n clients, weights up to W, the encoding's largest integer M and noise up to Y, these
    are L = n · max(M · W, W) + Y and, for a signed encoding, 2 L + 1, else L + Y + 1.
    """
    weight = params.max_weight or 1
    largest = params.n_clients * max(params.encoding.max_encoded * weight, weight) + noise
    return largest, largest + (largest if params.encoding.signed else noise) + 1


def _clipped(params: RoundParams) -> int:
    """Return the largest number of clipped elements that is counted."""
    return params.n_clients * params.length if params.count_clipped else 0


def _remedy(bits: int) -> str:
    if bits > 64:
        return "no modulus is that large: lower the clip, the fractional bits or the weights"
    return f"take modulus_bits={bits} or more, or a smaller range of values (a lower clip)"
