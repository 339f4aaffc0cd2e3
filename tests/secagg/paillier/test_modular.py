"""Batches of large integers: the same as Python's own arithmetic, for any number of threads."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from secagg import _threads as parallel
from secagg.errors import ParameterError
from secagg.paillier.modular import FixedBase, Modulus

MODULI = st.integers(3, 1 << 700).map(lambda n: n | 1)


def numbers(n: int, count: int) -> list[int]:
    return [pow(7, i + 1, n) if i % 3 else (n - 1 - i) % n for i in range(count)]


@given(MODULI, st.integers(0, 20), st.integers(0, 1 << 200))
@examples(60)
def test_products_and_powers_equal_pythons(n, count, exponent):
    modulus = Modulus(n)
    a, b = numbers(n, count), numbers(n, count)[::-1]
    batch_a, batch_b = modulus.pack(a), modulus.pack(b)
    assert modulus.unpack(modulus.multiply(batch_a, batch_b)) == [
        x * y % n for x, y in zip(a, b, strict=True)
    ]
    assert modulus.unpack(modulus.power(batch_a, exponent)) == [pow(x, exponent, n) for x in a]
    product = 1
    for x in a:
        product = product * x % n
    assert modulus.product(batch_a) % n == product % n


@given(MODULI, st.integers(1, 300), st.data())
@examples(40)
def test_powers_of_a_fixed_base_equal_pythons(n, bits, data):
    modulus = Modulus(n)
    base = data.draw(st.integers(0, n - 1))
    powers = FixedBase(modulus, base, bits)
    for count in (2, 0, 1, 3, 40):  # the table is made, and grows in between
        exponents = [(7**i * 13) % (1 << bits) for i in range(count)]
        if count != 2:
            powers.expect(count)
        assert modulus.unpack(powers.power(exponents)) == [pow(base, e, n) for e in exponents]


def test_after_an_error_no_slice_is_begun():
    """The first slice raises while the others wait for it: of eight, at most two were begun."""
    parallel.set_threads(2)
    failed, begun = threading.Event(), []

    def work(rows: slice) -> None:
        begun.append(rows.start)
        if rows.start == 0:
            failed.set()
            raise ParameterError("the first slice")
        failed.wait(10)

    with pytest.raises(ParameterError):
        parallel.in_slices(work, 64)
    assert len(begun) <= 3
    seen: list[int] = []
    parallel.in_slices(lambda rows: seen.append(rows.stop - rows.start), 64)
    assert len(seen) > 1, "threads are used again afterwards"
    parallel.set_threads(None)


def test_bytes_are_little_endian_and_of_fixed_width():
    modulus = Modulus((1 << 100) + 7)
    data = modulus.wrap(modulus.pack([1, 258]))
    assert data == b"\1" + bytes(15) + b"\2\1" + bytes(14)
    assert modulus.unpack(modulus.unwrap(data)) == [1, 258]


def test_a_square_has_its_root_for_the_kernels():
    """They are faster with it, so that nothing else would notice that it is missing."""
    assert Modulus((2**1024 - 105) ** 2)._constants[2].tobytes() == (
        (2**1024 - 105).to_bytes(128, "little")
    )
    assert Modulus(2**127 - 1)._constants[2].size == 0


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads_gives_the_same(threads):
    parallel.set_threads(threads)
    modulus = Modulus(2**607 - 1)
    a = numbers(modulus.value, 53)
    batch, one = modulus.pack(a), modulus.pack([12345])
    powers = [pow(x, 65537, modulus.value) for x in a]
    assert modulus.unpack(modulus.power(batch, 65537)) == powers
    products = [x * 12345 % modulus.value for x in a]
    assert modulus.unpack(modulus.multiply(batch, one)) == products
    for count in (0, 1, 7, 8, 9, 100):
        seen: list[int] = []
        parallel.in_slices(lambda rows, s=seen: s.extend(range(rows.start, rows.stop)), count)
        assert sorted(seen) == list(range(count))
    parallel.set_threads(None)


@pytest.mark.parametrize("count", [0, -1, 1025, True, 1.5])
def test_impossible_number_of_threads_is_rejected(count):
    with pytest.raises(ParameterError):
        parallel.set_threads(count)
