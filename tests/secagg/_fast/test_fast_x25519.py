"""X25519 in bulk: the twin, the loop over ``cryptography`` and the kernel, against RFC 7748."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from harness import _P
from secagg import _fast
from secagg._fast import openssl_x25519, reference
from vectors_reader import b, wycheproof

IMPLEMENTATIONS = {
    "reference": reference.x25519,
    "openssl": openssl_x25519.x25519,
    "active": _fast.x25519,
}
if _fast.COMPILED:
    from secagg._fast import _kernels

    IMPLEMENTATIONS |= dict.fromkeys(_kernels.x25519_tiers(), _kernels.x25519)

every = pytest.mark.parametrize("x25519", IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS.keys())
quick = examples(40)

NINE = bytes([9, *bytes(31)])

numbers = st.one_of(
    st.integers(0, 2**256 - 1),
    st.integers(-40, 40).map(lambda x: x % 2**256),
    st.integers(-40, 40).map(lambda x: _P + x),
    st.builds(lambda bit, x: (2**bit + x) % 2**256, st.integers(0, 255), st.integers(-2, 2)),
    st.lists(st.sampled_from([0, 2**51 - 1]), min_size=5, max_size=5).map(
        lambda limbs: sum(limb << 51 * i for i, limb in enumerate(limbs))
    ),
)
"""Scalars and coordinates at random, and where carries of limbs are longest."""

strings = numbers.map(lambda x: x.to_bytes(32, "little"))


def rows(strings: list[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(strings), np.uint8).reshape(-1, 32)


def run(x25519, scalars: list[bytes], points: list[bytes]) -> list[bytes]:
    out = np.full((len(points), 32), 0xEE, np.uint8)
    x25519(rows(scalars), rows(points), out)
    return [row.tobytes() for row in out]


ITERATED = {
    1: "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079",
    1_000: "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51",
    1_000_000: "7c3911e0ab2586fd864497297e575e6f3bc601c0883c30df5f4dd2d24f665424",
}
"""RFC 7748, section 5.2: the scalar becomes the result, and the point the scalar."""


def iterate(x25519, times: int) -> str:
    scalar, point, out = (rows([NINE]).copy() for _ in range(3))
    for _ in range(times):
        x25519(scalar, point, out)
        point, scalar, out = scalar, out, point
    return scalar.tobytes().hex()


@every
def test_iterated_vector_of_rfc_7748(x25519):
    assert iterate(x25519, 1) == ITERATED[1]


@pytest.mark.parametrize(
    "times",
    [
        pytest.param(1_000, marks=pytest.mark.large),
        pytest.param(1_000_000, marks=pytest.mark.slow),
    ],
)
def test_many_iterations_of_rfc_7748(times):
    assert iterate(_fast.x25519, times) == ITERATED[times]


@every
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 17])
def test_batches_of_any_size_and_with_one_scalar(x25519, count):
    draw = random.Random(count)
    scalars, points = ([draw.randbytes(32) for _ in range(count)] for _ in range(2))
    expected = [
        run(reference.x25519, [s], [p])[0] for s, p in zip(scalars, points, strict=True)
    ]
    assert run(x25519, scalars, points) == expected
    expected = run(reference.x25519, [NINE] * count, points)
    assert run(x25519, [NINE], points) == expected


@every
@quick
@given(pairs=st.lists(st.tuples(strings, strings), max_size=10))
def test_results_are_those_of_the_twin(x25519, pairs):
    scalars, points = ([pair[i] for pair in pairs] for i in (0, 1))
    expected = run(reference.x25519, scalars, points)
    assert run(x25519, scalars, points) == expected
    assert run(openssl_x25519.x25519, scalars, points) == expected


@every
def test_wycheproof_vectors_in_one_batch(x25519):
    """Wycheproof has the vectors of RFC 7748, section 5.2, and the secret of section 6.1."""
    cases = wycheproof("x25519")
    private, public, shared = (
        [b(case[name]) for case in cases] for name in ("private", "public", "shared")
    )
    assert run(x25519, private, public) == shared


@every
@pytest.mark.parametrize("name", ["scalars", "points", "out"])
def test_arrays_that_do_not_fit_raise(x25519, name):
    good = {key: np.ones((3, 32), np.uint8) for key in ("scalars", "points", "out")}
    x25519(**good)
    array = good[name]
    bad = [
        array[:, :31].copy(),
        np.ones((3, 33), np.uint8),
        np.ones((4, 32), np.uint8),
        array[:2].copy(),
        array[:0].copy(),
        array[0],
        array[:, ::-1],
        array.astype(np.int8),
        array.astype(np.uint16),
    ]
    for wrong in bad if name == "scalars" else [*bad, array[:1].copy()]:
        with pytest.raises(ValueError):  # noqa: PT011
            x25519(**{**good, name: wrong})
