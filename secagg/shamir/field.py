"""Fields GF(p) on arrays, for any prime p.

Elements are ``uint64`` for p < 2^63 and Python integers beyond, always canonical: 0 ≤ x < p.
Two-dimensional arrays are matrices for ``matmul`` and ``evaluate``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secagg import _fast
from secagg.errors import ParameterError
from secagg.shamir import arithmetic
from secagg.shamir.arithmetic import M61, Elements, objects, packed
from secagg.shamir.primality import is_prime

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
        return self._pack(wide)

    def add(self, a: Elements, b: Elements) -> Elements:
        """Return a + b, elementwise."""
        a, b = self._pair(a, b)
        if self._compiled:
            return _fast.m61_add(_narrow(a), _narrow(b))
        return self._pack(_wide(a) + _wide(b))

    def sub(self, a: Elements, b: Elements) -> Elements:
        """Return a − b, elementwise."""
        a, b = self._pair(a, b)
        if self._compiled:
            return _fast.m61_sub(_narrow(a), _narrow(b))
        return self._pack(_wide(a) - _wide(b))

    def mul(self, a: Elements, b: Elements) -> Elements:
        """Return a · b, elementwise."""
        a, b = self._pair(a, b)
        if self._compiled:
            return _fast.m61_mul(_narrow(a), _narrow(b))
        return self._pack(_wide(a) * _wide(b))

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
            return _fast.m61_inv(_narrow(a))
        return self._pack(objects([pow(int(x), -1, self.modulus) for x in a]))

    def dot(self, a: Elements, b: Elements) -> int:
        """Return Σ a_i · b_i."""
        a, b = self._pair(a, b)
        return int(arithmetic.matmul(a.reshape(1, -1), b.reshape(-1, 1), self.modulus)[0, 0])

    def matmul(self, a: Elements, b: Elements) -> Elements:
        """Return the product of the matrices a (n × k) and b (k × m)."""
        a, b = self.array(a), self.array(b)
        if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
            raise ParameterError(f"matrices of shapes {a.shape} and {b.shape} do not multiply")
        return arithmetic.matmul(a, b, self.modulus)

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
        return arithmetic.evaluate(coefficients, points, self.modulus)

    def lagrange_at_zero(self, points: Elements) -> Elements:
        """Return λ_i = Π_{j≠i} x_j / (x_j − x_i), so that f(0) = Σ λ_i f(x_i).

        Raise `ParameterError` unless points are distinct and non-zero.
        """
        points = self.array(points)
        _check_dimensions(points, 1)
        if not points.all() or len(set(points.tolist())) != points.size:
            raise ParameterError("points of interpolation must be distinct and non-zero")
        return arithmetic.lagrange_at_zero(points, self.modulus)

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


def _narrow(a: Elements) -> NDArray[np.uint64]:
    return np.ascontiguousarray(a, dtype=np.uint64)


def _wide(a: Elements) -> NDArray[np.object_]:
    return a.astype(object)
