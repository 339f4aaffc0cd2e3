"""Errors name a remedy that works where they are met."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from typer.testing import CliRunner

from oneshot_parties import Parties
from paillier_keys import keypair
from secagg import (
    ClientPolicy,
    FixedPoint,
    Integers,
    Packing,
    ParameterError,
    RemoteProtocolError,
    RoundParams,
)
from secagg.cli import app
from secagg.encoding import Ring
from secagg.errors import LocalProtocolError
from secagg.oneshot import OneShotParams
from secagg.protocol.params_bytes import SAME_RELEASE
from secagg.session.wire import read_task

KEY = keypair().public_key
PACKING = Packing(encoding=FixedPoint(8.0), length=3, summands=5)
RING = Ring(1 << 32)


def vector() -> object:
    return KEY.encrypt_vector(np.ones(3), PACKING)


def reloaded() -> object:
    total = vector() + vector()  # type: ignore[operator]
    return KEY.load_vector(total.to_bytes(), PACKING)


FLOATS = np.array([1.9])
CASES: dict[str, tuple[Callable[[], object], str]] = {
    "int64 in FixedPoint": (lambda: FixedPoint(8.0).encode(np.array([1]), RING), "Integers"),
    "float64 in Integers": (lambda: Integers(9).encode(FLOATS, RING), "FixedPoint.*rint"),
    "c * c": (lambda: KEY.encrypt([1]) * KEY.encrypt([1]), "with each other"),
    "vector * vector": (lambda: vector() * vector(), "with each other"),  # type: ignore[operator]
    "c + 5": (lambda: KEY.encrypt([1]) + 5, r"encrypt\(\[5\]\)"),
    "5 + c": (lambda: 5 + KEY.encrypt([1]), r"encrypt\(\[5\]\)"),
    "c - 5": (lambda: KEY.encrypt([1]) - 5, r"encrypt\(\[5\]\)"),
    "5 - c": (lambda: 5 - KEY.encrypt([1]), r"encrypt\(\[5\]\)"),
    "a sum loaded as a vector": (reloaded, "summands=2"),
    "threshold 0.7 of suggest": (
        lambda: RoundParams.suggest(10, 3, FixedPoint(8.0), threshold=0.7),  # type: ignore[arg-type]
        "70 % of 10 is 7",
    ),
    "threshold 0.7": (
        lambda: RoundParams(n_clients=9, threshold=0.7, length=3, encoding=FixedPoint(8.0)),  # type: ignore[arg-type]
        "70 % of 9 is 7",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_error_names_a_remedy(name: str) -> None:
    call, remedy = CASES[name]
    with pytest.raises((ParameterError, RemoteProtocolError), match=remedy):
        call()


@pytest.mark.parametrize("command", ["simulate", "params"])
@pytest.mark.parametrize("clip", ["1e-9", "1e-12", "1e-15", "1e-6", "0.000001"])
def test_commands_name_the_option_for_a_tiny_clip(command: str, clip: str) -> None:
    ran = CliRunner().invoke(app, [command, "--clients", "5", "--clip", clip])
    assert ran.exit_code == 2
    assert "--clip" in ran.stderr
    assert "fractional_bits" not in ran.stderr


def test_simulation_of_too_many_dropouts_names_its_options() -> None:
    command = ["simulate", "--clients", "100", "--length", "9", "--threshold", "95"]
    ran = CliRunner().invoke(app, command)
    assert ran.exit_code == 2
    assert "--threshold" in ran.stderr
    assert "--dropout" in ran.stderr
    assert "new round" not in ran.stderr


def test_suggested_parameters_state_how_many_must_turn_up() -> None:
    params = RoundParams.suggest(300, 9, FixedPoint(8.0))
    least = ClientPolicy().smallest_cohort(params)
    ran = CliRunner().invoke(app, ["params", "--clients", "300", "--length", "9"])
    assert least > 270
    assert f"{least} of 300" in ran.stdout
    assert "turn up" in ran.stdout


def test_booleans_are_integers() -> None:
    lanes, clipped = Integers(1).encode(np.array([True, False, True]), RING)
    assert (lanes.tolist(), clipped) == ([1, 0, 1], 0)


def test_dropping_nobody_is_harmless_after_the_request(tmp_path) -> None:  # type: ignore[no-untyped-def]
    parties = Parties(tmp_path, security="semi-honest", n_clients=5)
    accumulator = parties.accumulator(range(5))
    accumulator.request()
    accumulator.drop(())
    accumulator.drop(iter([]))
    with pytest.raises(LocalProtocolError, match="check"):
        accumulator.drop([1])
    parties.close()


@pytest.mark.parametrize("read", [RoundParams.from_bytes, OneShotParams.from_bytes, read_task])
def test_bytes_of_another_version_ask_for_one_release(read: Callable[[bytes], object]) -> None:
    with pytest.raises(RemoteProtocolError, match=SAME_RELEASE) as caught:
        read(b"\x09")
    assert caught.value.check == "version"
