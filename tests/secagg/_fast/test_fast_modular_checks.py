"""Arrays that do not fit, and moduli and exponents out of range, are rejected by all tiers."""

from __future__ import annotations

import numpy as np
import pytest

from modular_case import Case, every, limbs_of


@every
@pytest.mark.parametrize("name", ["a", "b", "out", "modulus", "square"])
def test_shapes_of_a_product_are_checked(modular, name):
    case = Case(modular, 2**127 - 1)
    good = {name: case.empty(3) for name in ("a", "b", "out")}
    good |= dict(zip(("modulus", "square", "root"), case.constants, strict=True))
    modular.modular_multiply(**good)
    bad = [good[name][..., :1].copy(), good[name][..., ::-1], good[name].astype(np.int64)]
    if good[name].ndim == 2:
        bad += [good[name][:2].copy(), good[name][:0].copy(), good[name][0].copy()]
    else:
        bad += [good[name][None, :].copy()]
    for array in bad:
        with pytest.raises(ValueError):  # noqa: PT011
            modular.modular_multiply(**{**good, name: array})


@every
def test_shapes_of_powers_are_checked(modular):
    case = Case(modular, 2**127 - 1)
    base, out, exponent = case.empty(3), case.empty(3), limbs_of(5, 1)
    table = case.table(3, 4, 3)
    wide = np.zeros((4, 8, modular.modular_width(2) + 1), np.uint64)
    power, fill, fixed = (
        getattr(modular, f"modular_{name}") for name in ("power", "table", "power_fixed")
    )
    for call, *arguments in (
        (power, base, exponent, out[:2]),
        (power, base, exponent[None, :], out),
        (power, base, exponent.astype(float), out),
        (fill, base, table, 3),
        (fill, base[0, :1].copy(), table, 3),
        *((fill, base[0], table, window) for window in (0, 2, 17)),
        *((fill, base[0], wrong, 3) for wrong in (table[0], wide)),
        (fixed, table, base[:2], out, 3),
        (fixed, table, exponent, out, 3),
        (fixed, table, base, out, 2),
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            call(*arguments, *case.constants)


@every
@pytest.mark.parametrize("beyond", [12, 13, 63, 64, 127])
def test_exponent_beyond_the_table_is_rejected(modular, beyond):
    case = Case(modular, 2**127 - 1)
    table = case.table(3, 4, 3)
    assert case.power_fixed(table, [2**12 - 1], 2, 3) == [pow(3, 2**12 - 1, 2**127 - 1)]
    for place in range(3):
        exponents = [1, 2, 3]
        exponents[place] |= 1 << beyond
        with pytest.raises(ValueError, match="bits"):
            case.power_fixed(table, exponents, 2, 3)


@every
def test_even_modulus_is_rejected(modular):
    case = Case(modular, 2**127 - 1)
    for n in (2**127 - 2, 2**63 - 1):
        with pytest.raises(ValueError, match="limb"):
            modular.modular_multiply(*[case.empty(1)] * 3, limbs_of(n, 2), *case.constants[1:])


@every
def test_modulus_beyond_the_headroom_is_rejected(modular):
    one = np.ones((1, 257), np.uint64)
    for call in (
        lambda: modular.modular_radix(257),
        lambda: modular.modular_width(0),
        lambda: modular.modular_multiply(one, one, one.copy(), one[0], one[0], one[0, :0]),
        lambda: modular.modular_multiply(*[one[:, :0].copy()] * 3, *[one[0, :0]] * 3),
    ):
        with pytest.raises(ValueError, match=r"\[1, 256\]"):
            call()
