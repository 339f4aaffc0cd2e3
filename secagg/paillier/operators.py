"""Python's operators on encrypted values, as far as they compute nothing."""

from __future__ import annotations

from typing import ClassVar, NoReturn, Self

from secagg.errors import ParameterError
from secagg.paillier.gmp import as_int, checked_int


class Operators:
    """Base of encrypted values: ``sum`` works, and operators without a result raise."""

    __array_ufunc__: ClassVar[None] = None  # so that numpy leaves array + value to __radd__

    def __radd__(self, other: int) -> Self:
        """Return the value if `other` is 0, for ``sum``; raise `ParameterError` if not."""
        if as_int(other) != 0:
            raise ParameterError(
                f"cannot add this {type(other).__name__} to an encrypted value; encrypt it "
                "first, as in public_key.encrypt([5])"
            )
        return self

    def __rsub__(self, other: object) -> NoReturn:
        """Raise `ParameterError`: the number must be encrypted first."""
        raise ParameterError(
            f"cannot subtract an encrypted value from this {type(other).__name__}; encrypt it "
            "first, as in public_key.encrypt([5])"
        )

    def _has_no_result(self, other: object) -> NoReturn:
        """Raise `ParameterError` for an operator that ciphertexts do not have."""
        raise ParameterError(
            "encrypted values are added, subtracted and multiplied by an int only; decrypt the "
            f"result and compute with it, such as with this {type(other).__name__}, afterwards"
        )

    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = _has_no_result
    __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _has_no_result


def checked_factor(factor: object) -> int:
    """Return a factor as an int; raise `ParameterError` for other kinds of values."""
    if isinstance(factor, Operators):
        raise ParameterError(
            "encrypted values cannot be multiplied with each other, only by a public int; "
            "multiply before you encrypt, or decrypt a sum and compute with it"
        )
    remedy = "; convert a whole number with int, or scale it to an integer"
    return checked_int("the factor", factor, remedy)
