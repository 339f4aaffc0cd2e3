"""Fields GF(p) on arrays, for any prime p, and byte strings cut into elements.

Elements are ``uint64`` for p < 2^63 and Python integers beyond, always canonical: 0 ≤ x < p.
Two-dimensional arrays are matrices for ``matmul`` and ``evaluate``.

A limb has w = ⌊(b − 1) / 8⌋ bytes, little-endian, for a prime of b bits, so that a limb is
below p: seven bytes in GF(2^61 − 1).

GF(2^61 − 1) has its own kernels, and odd primes below 2^63 have others (`secagg._fast`). All
other primes are computed with integers, of gmpy2 if installed, else of Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import NDArray

from secagg import _fast
from secagg.errors import ParameterError
from secagg.shamir.primality import is_prime

M61 = (1 << 61) - 1
"""The Mersenne prime 2^61 − 1: secrets are shared in this field."""

U64 = NDArray[np.uint64]
Elements = U64 | NDArray[np.object_]


def evaluate(coefficients: Elements, points: Elements, p: int) -> Elements:
    """Evaluate m polynomials, shape (t, m), at n points by Horner's rule: shape (n, m)."""
    if p == M61:
        return _fast.m61_poly_eval(narrow(coefficients), narrow(points))
    if _has_kernel(p):
        return _fast.prime_poly_eval(narrow(coefficients), narrow(points), p)
    number = _number()
    # Horner's rule begins at the highest coefficient
    polynomials = [[number(c) for c in column[::-1]] for column in coefficients.T.tolist()]
    values, prime = [], number(p)
    for x in map(number, points.tolist()):
        for polynomial in polynomials:
            value = number(0)
            for coefficient in polynomial:
                value = (value * x + coefficient) % prime
            values.append(int(value))
    return packed(objects(values), p).reshape(points.size, len(polynomials))


def matmul(a: Elements, b: Elements, p: int) -> Elements:
    """Return the product of the matrices a (n × k) and b (k × m)."""
    if p == M61:
        return _fast.m61_matmul(narrow(a), narrow(b))
    if _has_kernel(p):
        return _fast.prime_matmul(narrow(a), narrow(b), p)
    return packed(a.astype(object) @ b.astype(object) % p, p)


def lagrange_at_zero(points: Elements, p: int) -> Elements:
    """Return Lagrange's coefficients at zero; points are distinct and non-zero."""
    if p == M61:
        return _fast.m61_lagrange_at_zero(narrow(points))
    if _has_kernel(p):
        return _fast.prime_lagrange_at_zero(narrow(points), p)
    number = _number()
    xs, prime, above = [number(x) for x in points.tolist()], number(p), number(1)
    for x in xs:
        above = above * x % prime
    weights = []
    for i, x in enumerate(xs):
        below = x
        for other in xs[:i] + xs[i + 1 :]:
            below = below * (other - x) % prime
        weights.append(int(above * pow(below, -1, prime) % prime))
    return packed(objects(weights), p)


def packed(values: Elements, p: int) -> Elements:
    """Return canonical elements as ``uint64`` for p < 2^63, as Python integers beyond."""
    if p < 1 << 63:
        return values.astype(np.uint64)
    return objects([int(value) for value in values.ravel()]).reshape(values.shape)


def objects(values: Sequence[int]) -> NDArray[np.object_]:
    """Return a vector of Python integers."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _has_kernel(p: int) -> bool:
    return 2 < p < 1 << 63


@lru_cache
def _number() -> Callable[[int], int]:
    try:
        from gmpy2 import mpz  # imported here: the fields with kernels do not need gmpy2
    except ModuleNotFoundError:
        return int
    integer: Callable[[int], int] = mpz
    return integer


def narrow(a: Elements) -> U64:
    """Return elements below 2^64 as the kernels take them."""
    return np.ascontiguousarray(a, dtype=np.uint64)


_SHOWN = 4096  # bits of a modulus in an error; Python refuses to print some longer ones


@dataclass(frozen=True)
class Field:
    """The integers modulo a prime p.

    Parameters
    ----------
    modulus : int
        p. The methods `evaluate`, `matmul`, `dot` and `lagrange_at_zero` are compiled for
        every odd prime below 2^63, and all methods for 2^61 − 1, the fastest. The rest is
        computed with integers of gmpy2, if installed, or Python: not in constant time.

    Raises
    ------
    ParameterError
        Not a prime; from 2^64 on a composite passes with a probability below 4^−40. Methods
        raise the same error for elements outside [0, p), shapes that do not match, and the
        inverse of zero.
    """

    modulus: int = M61

    def __post_init__(self) -> None:
        if not isinstance(self.modulus, int) or not (self._compiled or is_prime(self.modulus)):
            bits = self.modulus.bit_length() if isinstance(self.modulus, int) else 0
            shown = f"of {bits} bits" if bits > _SHOWN else repr(self.modulus)
            raise ParameterError(f"modulus {shown} is not a prime; a field needs one")

    def array(self, values: Sequence[int] | Sequence[Sequence[int]] | Elements) -> Elements:
        """Return `values` as canonical elements; raise `ParameterError` outside [0, p)."""
        if isinstance(values, np.ndarray) and values.dtype == np.uint64:
            wide: Elements = values
        else:
            wide = np.array(values, dtype=object)
            if not all(isinstance(v, int) for v in wide.ravel().tolist()):
                raise ParameterError("field elements must be integers")
        if wide.size and not (int(wide.min()) >= 0 and int(wide.max()) < self.modulus):
            raise ParameterError(f"field elements must lie in [0, {self.modulus})")
        return packed(wide, self.modulus)

    def add(self, a: Elements, b: Elements) -> Elements:
        """Return a + b, elementwise."""
        return self._each(a, b, _fast.m61_add, np.add)

    def sub(self, a: Elements, b: Elements) -> Elements:
        """Return a − b, elementwise."""
        return self._each(a, b, _fast.m61_sub, np.subtract)

    def mul(self, a: Elements, b: Elements) -> Elements:
        """Return a · b, elementwise."""
        return self._each(a, b, _fast.m61_mul, np.multiply)

    def pow(self, a: Elements, exponent: int) -> Elements:
        """Return a^exponent, elementwise, exponent ≥ 0; 0^0 = 1."""
        if exponent < 0:
            raise ParameterError(f"exponent {exponent} is negative; invert first")
        power = self.array([1] * a.size)
        square = self.array(a)
        for bit in bin(exponent)[:1:-1]:
            if bit == "1":
                power = self.mul(power, square)
            square = self.mul(square, square)
        return power

    def inv(self, a: Elements) -> Elements:
        """Return 1 / a, elementwise, by batch inversion."""
        a = self.array(a)
        _check_dimensions(a, 1)
        if not a.all():
            raise ParameterError(f"element {int((a == 0).argmax())} is 0 and has no inverse")
        if self._compiled:
            return _fast.m61_inv(narrow(a))
        return self._pack(objects([pow(int(x), -1, self.modulus) for x in a]))

    def dot(self, a: Elements, b: Elements) -> int:
        """Return Σ a_i · b_i."""
        a, b = self._pair(a, b)
        return int(matmul(a.reshape(1, -1), b.reshape(-1, 1), self.modulus)[0, 0])

    def matmul(self, a: Elements, b: Elements) -> Elements:
        """Return the product of the matrices a (n × k) and b (k × m)."""
        a, b = self.array(a), self.array(b)
        if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
            raise ParameterError(f"matrices of shapes {a.shape} and {b.shape} do not multiply")
        return matmul(a, b, self.modulus)

    def evaluate(self, coefficients: Elements, points: Elements) -> Elements:
        """Evaluate m polynomials of t coefficients at n points by Horner's rule.

        Parameters
        ----------
        coefficients : shape (t, m), constant terms in row 0
        points : shape (n,)

        Returns
        -------
        shape (n, m)
        """
        coefficients, points = self.array(coefficients), self.array(points)
        _check_dimensions(coefficients, 2)
        _check_dimensions(points, 1)
        return evaluate(coefficients, points, self.modulus)

    def lagrange_at_zero(self, points: Elements) -> Elements:
        """Return λ_i = Π_{j≠i} x_j / (x_j − x_i), so that f(0) = Σ λ_i f(x_i).

        Raise `ParameterError` unless points are distinct and non-zero.
        """
        points = self.array(points)
        _check_dimensions(points, 1)
        if not points.all() or len(set(points.tolist())) != points.size:
            raise ParameterError("points of interpolation must be distinct and non-zero")
        return lagrange_at_zero(points, self.modulus)

    def _each(
        self, a: Elements, b: Elements, kernel: Callable[[U64, U64], U64], rest: np.ufunc
    ) -> Elements:
        a, b = self._pair(a, b)
        if self._compiled:
            return kernel(narrow(a), narrow(b))
        return self._pack(rest(a.astype(object), b.astype(object)))

    def _pair(self, a: Elements, b: Elements) -> tuple[Elements, Elements]:
        a, b = self.array(a), self.array(b)
        if a.shape != b.shape or a.ndim != 1:
            raise ParameterError(f"arrays of shapes {a.shape} and {b.shape} do not match")
        return a, b

    @property
    def _compiled(self) -> bool:
        return self.modulus == M61

    def _pack(self, values: Elements) -> Elements:
        reduced = values % self.modulus if values.dtype == np.object_ else values
        return packed(reduced, self.modulus)


def _check_dimensions(a: Elements, dimensions: int) -> None:
    if a.ndim != dimensions:
        raise ParameterError(f"an array of shape {a.shape} must have {dimensions} dimensions")


LIMB_BYTES = 7

PROTOCOL_FIELD = Field()
"""GF(2^61 − 1), the default field."""


def limb_count(length: int, field: Field = PROTOCOL_FIELD) -> int:
    """Return the number of limbs of a secret of `length` bytes."""
    return -(-length // _limb_bytes(field))


@overload
def to_limbs(secret: bytes) -> U64: ...


@overload
def to_limbs(secret: bytes, field: Field) -> Elements: ...


def to_limbs(secret: bytes, field: Field = PROTOCOL_FIELD) -> Elements:
    """Cut a secret into little-endian limbs, of seven bytes in GF(2^61 − 1)."""
    width = _limb_bytes(field)
    if field.modulus >= 1 << 63:
        cuts = (secret[i : i + width] for i in range(0, len(secret), width))
        return objects([int.from_bytes(cut, "little") for cut in cuts])
    rows = np.zeros((-(-len(secret) // width), 8), dtype=np.uint8)
    padded = secret.ljust(len(rows) * width, b"\x00")
    rows[:, :width] = np.frombuffer(padded, dtype=np.uint8).reshape(-1, width)
    return rows.view("<u8").ravel().astype(np.uint64)


def from_limbs(limbs: Elements, length: int, field: Field = PROTOCOL_FIELD) -> bytes | None:
    """Return the secret of `length` bytes, or None if no such secret has these limbs."""
    width = _limb_bytes(field)
    if field.modulus >= 1 << 63:
        wide = b"".join(limb.to_bytes(width + 1, "little") for limb in limbs.tolist())
        joined = np.frombuffer(wide, np.uint8).reshape(-1, width + 1)
    else:
        joined = limbs.astype("<u8").view(np.uint8).reshape(-1, 8)
    secret = joined[:, :width].tobytes()
    # elements rebuilt from wrong shares mostly exceed a limb, or have bytes beyond the secret
    if joined[:, width:].any() or any(secret[length:]):
        return None
    return secret[:length]


def _limb_bytes(field: Field) -> int:
    width = (field.modulus.bit_length() - 1) // 8
    if width == 0:
        raise ParameterError(
            f"the field of {field.modulus} elements is too small for bytes; take a prime above "
            "256, or share integers"
        )
    return width
