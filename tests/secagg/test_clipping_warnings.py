"""A client whose vector is clipped, or lost below a step, hears of it at every door."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

import fedmf
import secagg
from harness import Cohort, make_params
from oneshot_parties import LENIENT
from paillier_keys import keypair
from secagg import (
    Client,
    ClippingWarning,
    FixedPoint,
    Identity,
    Packing,
    ParameterError,
    PrecisionWarning,
    RemoteProtocolError,
    RoundParams,
)
from secagg.encoding.clipping import is_lost
from secagg.errors import VaultError
from secagg.oneshot import OneShotParams, report
from secagg.vault.files import fix_bounds

KEY = keypair()
VECTORS = {
    "one": [8.5, 0.0, 0.0],
    "negative": [0.0, -9.0, 0.0],
    "all": [100.0, 100.0, 100.0],
    "just beyond": [np.nextafter(8.0, 9.0), 0.0, 0.0],
    "huge": [0.0, 1e300, -1e300],
    "last": [1.0, 2.0, 8.001],
    "binary32": np.array([0, 9, 0], np.float32),
    "strided": np.array([9.0, 0.0, 0.0, 0.0, 0.0])[::2],
    "big-endian": np.array([9.0, 0.0, 0.0], ">f8"),
    "weight": [0.0, -8.5, 8.5],
}


def one_shot(encoding: FixedPoint) -> Callable[[np.ndarray], object]:
    keys = tuple(
        (
            X25519PrivateKey.generate().public_key().public_bytes_raw(),
            Identity(os.urandom(32)).public,
        )
        for _ in range(2)
    )
    params = OneShotParams(
        n_clients=5,
        length=3,
        encoding=encoding,
        helpers=keys,
        threshold=2,
        min_clients=3,
        security="semi-honest",
        suite="x25519",
        session=b"survey",
    )
    return lambda x: report(x, params, 1, policy=LENIENT)


def paillier(encoding: FixedPoint) -> Callable[[np.ndarray], object]:
    packing = Packing(encoding=encoding, length=3, summands=5)
    return lambda x: KEY.public_key.encrypt_vector(x, packing)


def simulated(encoding: FixedPoint) -> Callable[[np.ndarray], object]:
    params = secagg.RoundParams(n_clients=3, threshold=2, length=3, encoding=encoding)
    return lambda x: secagg.simulate_round([x, np.zeros(3), np.zeros(3)], params)


def client(encoding: FixedPoint) -> Callable[[np.ndarray], object]:
    def answer(x: np.ndarray) -> bytes:
        member, shares = masking(encoding)
        return member.answer(shares, x)

    return answer


def client_of_round_2(encoding: FixedPoint) -> Callable[[np.ndarray], object]:
    def answer(x: np.ndarray) -> bytes:
        member, shares = masking(encoding)
        return member.masked_input(shares, x)

    return answer


def masking(encoding: FixedPoint) -> tuple[Client, bytes]:
    cohort = Cohort(make_params(3, encoding=encoding, length=3))
    return cohort.clients[2], cohort.advance(2)[2]


DOORS = [one_shot, paillier, simulated, client, client_of_round_2]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", VECTORS)
def test_clipped_vector_warns_at_the_callers_line(
    name: str, door: Callable[[FixedPoint], Callable[[np.ndarray], object]]
) -> None:
    sent = door(FixedPoint(8.0))
    with pytest.warns(ClippingWarning) as caught:
        sent(np.asarray(VECTORS[name]))
    assert [one.filename for one in caught] == [__file__]
    # an application that wants an error has one before anything is sent
    with warnings.catch_warnings(action="error"), pytest.raises(ClippingWarning):
        sent(np.asarray(VECTORS[name]))
    refusing = door(FixedPoint(8.0, beyond_clip="refuse"))
    with pytest.raises(ParameterError, match="clip"):
        refusing(np.asarray(VECTORS[name]))


HALF = 2.0**-17
LOST = {
    "one": [1e-9, 0.0, 0.0],
    "negative": [0.0, -1e-9, 0.0],
    "all": [1e-9, 1e-9, -1e-9],
    "last": [0.0, 0.0, 1e-300],
    "just below": [np.nextafter(HALF, 0.0), 0.0, 0.0],
    "just above minus": [0.0, -np.nextafter(HALF, 0.0), 0.0],
    "binary32": np.array([0, 1e-6, 0], np.float32),
    "strided": np.array([1e-6, 0.0, 0.0, 0.0, 0.0])[::2],
    "big-endian": np.array([1e-6, 0.0, 0.0], ">f8"),
    "mixed": [1e-6, -1e-7, 1e-8],
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", LOST)
def test_vector_below_the_step_warns_at_the_callers_line(
    name: str, door: Callable[[FixedPoint], Callable[[np.ndarray], object]]
) -> None:
    sent = door(FixedPoint(8.0))
    with pytest.warns(PrecisionWarning, match=r"fractional_bits.* 7.63e-06") as caught:
        sent(np.asarray(LOST[name]))
    assert [one.filename for one in caught] == [__file__]
    with warnings.catch_warnings(action="error"), pytest.raises(PrecisionWarning):
        sent(np.asarray(LOST[name]))


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("x", [[0.0, 0, 0], [HALF, 0, 0], [0, -HALF, 1e-9], [8.0, 1e-9, 0]])
def test_vector_with_an_element_of_half_a_step_does_not_warn(
    x: list[float], door: Callable[[FixedPoint], Callable[[np.ndarray], object]]
) -> None:
    assert door(FixedPoint(8.0))(np.array(x)) is not None


@pytest.mark.parametrize("at", [0, 255, 256, 257, 9_999])
def test_scan_of_a_long_vector_finds_the_only_large_element(at: int) -> None:
    x = np.full(10_000, 1e-9)
    assert is_lost(x, FixedPoint(8.0))
    for large in (HALF, -1.0):
        x[at] = large
        assert not is_lost(x, FixedPoint(8.0))


def test_warning_as_an_error_leaves_a_client_unchanged() -> None:
    member, shares = masking(FixedPoint(8.0))
    for x in (9.0, 1e-9):
        with warnings.catch_warnings(action="error"), pytest.raises(UserWarning, match="elem"):
            member.answer(shares, np.full(3, x))
    assert member.answer(shares, np.ones(3))
    assert member.clipped == 0


TINY = 1e-8


def flower() -> object:
    flwr = pytest.importorskip("flwr.serverapp.strategy")
    from secagg import flower as doors

    return doors.SecAgg(flwr.FedAvg(), clip=TINY, max_weight=10)


def flare(name: str) -> object:
    pytest.importorskip("nvflare")
    from secagg import flare as doors

    if name == "SitePolicy":
        return doors.SitePolicy(clip=TINY)
    return doors.SecAggFedAvg(num_clients=4, num_rounds=2, clip=TINY)


PLACES: dict[str, Callable[[], object]] = {
    "RoundParams": lambda: make_params(5, encoding=FixedPoint(TINY)),
    "by numpy": lambda: FixedPoint(np.float32(TINY)),
    "SecAgg": flower,
    "SecAggFedAvg": lambda: flare("SecAggFedAvg"),
    "SitePolicy": lambda: flare("SitePolicy"),
    "PlainSum": lambda: fedmf.PlainSum(clip=TINY),
    "PaillierSum": lambda: fedmf.PaillierSum(clip=TINY, trust="key holder"),
}


@pytest.mark.parametrize("door", PLACES)
def test_clip_below_the_step_is_rejected(door: str) -> None:
    with pytest.raises(ParameterError, match=r"clip .*step"):
        PLACES[door]()


def test_parameters_of_a_server_with_such_a_clip_are_rejected() -> None:
    params = make_params(5, encoding=FixedPoint(8.0))
    canonical = params.encoding.canonical()
    other = canonical.replace(np.float64(8.0).tobytes(), np.float64(TINY).tobytes())
    with pytest.raises(RemoteProtocolError):
        RoundParams.from_bytes(params.to_bytes().replace(canonical, other))


def test_stored_bounds_with_such_a_clip_name_their_remedy(tmp_path: Path) -> None:
    """They come from an earlier version, whose sums with them were lost."""
    params = make_params(5, encoding=FixedPoint(8.0))
    path = tmp_path / "bounds"
    fix_bounds(path, params)
    stored, tiny = np.float64(8.0).tobytes().hex(), np.float64(TINY).tobytes().hex()
    path.write_text(path.read_text().replace(stored, tiny))
    with pytest.raises(VaultError, match="delete"):
        fix_bounds(path, params)
    path.unlink()
    assert fix_bounds(path, params).encoding == params.encoding
