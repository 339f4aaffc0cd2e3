"""Room for the sum of n vectors: in the ring, in a message and in an int64."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secagg.errors import ParameterError

if TYPE_CHECKING:
    from secagg.encoding import FixedPoint
    from secagg.protocol.params import RoundParams


def modulus_bits(clients: int, encoding: FixedPoint, weight: int, others: int = 0) -> int:
    """Return the bits of the smallest modulus for weighted sums, and for numbers to `others`.

    2^b > 2 · n · W · M for the sums, where M is the encoding's largest integer.
    """
    largest = max(2 * clients * weight * encoding.max_encoded, others)
    return min(largest.bit_length(), 64)


def check_headroom(params: RoundParams, noise: int = 0) -> None:
    """Raise `ParameterError` unless R, a message and an int64 hold every sum of n vectors.

    Parameters
    ----------
    params : RoundParams
    noise : int
        Bound on the absolute value of noise in each element of the sum.
    """
    weight = params.max_weight or 1
    largest = params.n_clients * max(params.encoding.max_encoded * weight, weight) + noise
    needed = largest + (largest if params.encoding.signed else noise) + 1
    if params.ring.modulus < needed:
        raise ParameterError(
            f"modulus {params.ring} has no headroom: the sum of {params.n_clients} vectors "
            f"with elements up to {params.encoding.max_encoded}"
            f"{f' and weights up to {weight}' if params.max_weight else ''}"
            f"{f' and noise up to {noise}' if noise else ''} needs R ≥ "
            f"{needed}; {_remedy((needed - 1).bit_length())}"
        )
    clipped = params.n_clients * params.length if params.count_clipped else 0
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


def _remedy(bits: int) -> str:
    if bits > 64:
        return "no modulus is that large: lower the clip, the fractional bits or the weights"
    return f"take modulus_bits={bits} or more, or a smaller range of values (a lower clip)"
