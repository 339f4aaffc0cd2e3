"""Bounds in a file: the first sum fixes them, for every process and after a crash."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from secagg import FixedPoint, Integers, Noise, ParameterError, RoundParams, VaultError
from secagg.vault.files import fix_bounds

PARAMS = RoundParams(
    n_clients=5, threshold=4, length=3, encoding=FixedPoint(2.0, 8), max_weight=7
)
LOSS = {"loss": 4.0}


def test_check52_the_first_sum_fixes_the_bounds(tmp_path: Path) -> None:
    path = tmp_path / "bounds"
    first = fix_bounds(path, PARAMS, LOSS)
    assert fix_bounds(path, PARAMS, LOSS) == first
    for other in (
        replace(PARAMS, encoding=FixedPoint(2.0, 9)),
        replace(PARAMS, encoding=FixedPoint(1.0, 8)),
        replace(PARAMS, encoding=Integers(512)),
        replace(PARAMS, max_weight=8),
        replace(PARAMS, max_weight=None),
    ):
        with pytest.raises(ParameterError):
            fix_bounds(path, other)
    with pytest.raises(ParameterError):
        fix_bounds(path, PARAMS, {"loss": 4.5})
    assert fix_bounds(path, PARAMS).metrics == LOSS
    assert path.stat().st_mode & 0o777 == 0o600


NOISED = replace(PARAMS, n_clients=6, noise=Noise(2000, 1), modulus_bits=32)


@pytest.mark.parametrize(
    "other",
    [
        NOISED,
        replace(NOISED, noise=None),
        replace(NOISED, noise=Noise(1000, 1)),
        replace(NOISED, noise=Noise(2000, 0)),
        replace(NOISED, min_survivors=5),
    ],
    ids=["the same", "no noise", "less noise", "other colluders", "other survivors"],
)
def test_check52_the_first_sum_with_noise_fixes_the_noise(tmp_path: Path, other) -> None:
    path = tmp_path / "bounds"
    fix_bounds(path, replace(NOISED, noise=None))  # has no noise to fix
    first = fix_bounds(path, NOISED)
    assert (first.noise, first.min_survivors) == (NOISED.noise, 4)
    if other == NOISED:
        assert fix_bounds(path, other) == first
    else:
        with pytest.raises(ParameterError):
            fix_bounds(path, other)


def test_a_later_metric_is_fixed_when_it_comes(tmp_path: Path) -> None:
    path = tmp_path / "bounds"
    fix_bounds(path, PARAMS, LOSS)
    fix_bounds(path, PARAMS, {"accuracy": 1.0})
    for wrong in ({"accuracy": 2.0}, {"loss": 2.0, "accuracy": 1.0}):
        with pytest.raises(ParameterError):
            fix_bounds(path, PARAMS, wrong)
    assert fix_bounds(path, PARAMS).metrics == {"loss": 4.0, "accuracy": 1.0}


class Own(Integers):
    """Encoding of an application, which this package knows by its bytes only."""

    def canonical(self) -> bytes:
        return b"own encoding %d" % self.max


def test_an_encoding_of_an_application_is_known_by_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "bounds"
    params = replace(PARAMS, encoding=Own(4))
    fix_bounds(path, params)
    fix_bounds(path, params)
    for other in (replace(PARAMS, encoding=Own(5)), PARAMS):
        with pytest.raises((ParameterError, VaultError)):
            fix_bounds(path, other)


@pytest.mark.parametrize("encoding", [None, "zz", "00"])
def test_a_file_with_another_content_is_an_error(tmp_path: Path, encoding: str | None) -> None:
    path = tmp_path / "bounds"
    content = b"{}"
    if encoding is not None:
        content = b'{"encoding": "%s", "max_weight": 7, "metrics": {}}' % encoding.encode()
    path.write_bytes(content)
    for where in (path, tmp_path / "no" / "bounds"):
        with pytest.raises(VaultError) as caught:
            fix_bounds(where, PARAMS)
        assert caught.value.check == "file"
    assert path.read_bytes() == content


def test_one_of_several_first_sums_fixes_the_bounds(tmp_path: Path) -> None:
    path, barrier = tmp_path / "bounds", threading.Barrier(8)

    def first(weight: int) -> int | None:
        barrier.wait()
        try:
            return fix_bounds(path, replace(PARAMS, max_weight=weight)).max_weight
        except ParameterError:
            return None

    with ThreadPoolExecutor(8) as threads:
        (accepted,) = set(threads.map(first, range(1, 9))) - {None}
    assert fix_bounds(path, replace(PARAMS, max_weight=accepted)).max_weight == accepted
