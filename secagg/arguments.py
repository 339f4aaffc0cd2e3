"""Whether an argument is of the type that is wanted, before its first use fails obscurely."""

from __future__ import annotations

from secagg.errors import ParameterError

__all__ = ["check_kind"]


def check_kind(name: str, value: object, kind: type | tuple[type, ...], wanted: str) -> None:
    """Refuse a value of another type.

    Parameters
    ----------
    name : str
        What the caller knows it as.
    value : object
    kind : type or tuple of types
    wanted : str
        What to pass instead.

    Raises
    ------
    ParameterError
        Names what was wanted and what was given.
    """
    if isinstance(value, kind):
        return
    # a class in the place of one of its objects is named as such
    given = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
    raise ParameterError(f"{name} must be {wanted}, not {given}")
