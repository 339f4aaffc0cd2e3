"""Combination of t partial decryptions (Damgård and Jurik, PKC 2001, §4.1, s = 1)."""

from __future__ import annotations

from collections.abc import Sequence

from secagg.paillier import Ciphertexts
from secagg.paillier.ciphertexts import signed
from secagg.paillier.gmp import gmpy2
from secagg.threshold.partials import violation


def combine_parts(parts: Sequence[tuple[int, Ciphertexts]], delta: int) -> list[int]:
    """Return the signed messages of ciphertexts c, from t trustees' parts c_i = c^(2 Δ s_i).

    `parts` has the index i and the part c_i of each of t trustees. The trustees' proofs have
    been verified. `delta` is Δ = l! for l trustees. RemoteProtocolError, check "dealing", is
    raised if the s_i are not shares of the same key.
    """
    group = parts[0][1].group
    points = [index for index, _ in parts]
    above = below = group.modulus.pack([1] * len(parts[0][1]))
    for index, values in parts:
        weight = 2 * lagrange_at_zero(index, points, delta)
        power = group.modulus.power(values.batch, abs(weight))
        # negative powers are gathered apart: one inverse a message at the end is enough
        if weight > 0:
            above = group.modulus.multiply(above, power)
        else:
            below = group.modulus.multiply(below, power)
    # ∏ c_i^(2 λ_i) = c^(4 Δ² d) = (1 + n)^(4 Δ² m), as d is 0 modulo p' q' and 1 modulo n
    n, square = group.n, group.modulus.value
    scale = gmpy2.invert(4 * delta**2, n)
    messages = []
    for x, y in zip(group.modulus.unpack(above), group.modulus.unpack(below), strict=True):
        # a power of 1 + n has no rest; with shares of two keys the noise does not cancel
        quotient, rest = divmod(x * gmpy2.invert(y, square) % square - 1, n)
        if rest:
            message = "every proof is valid, but the parts do not combine: the dealer's shares "
            message += "are inconsistent; have a new key dealt"
            raise violation(None, "dealing", message)
        messages.append(signed(quotient * scale % n, n))
    return messages


def lagrange_at_zero(point: int, points: Sequence[int], delta: int) -> int:
    """Return the integer λ_i = Δ ∏ j / (j − i) over all points j ≠ i (Shoup 2000, §2.2)."""
    above = below = 1
    for other in points:
        if other != point:
            above *= other
            below *= other - point
    return delta * above // below
