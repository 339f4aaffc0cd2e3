"""A clip below the step is an error at every door, before anybody trains."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fedmf
from harness import make_params
from secagg import FixedPoint, ParameterError, RemoteProtocolError, RoundParams
from secagg.errors import VaultError
from secagg.vault.bounds import fix_bounds

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


DOORS: dict[str, Callable[[], object]] = {
    "RoundParams": lambda: make_params(5, encoding=FixedPoint(TINY)),
    "by numpy": lambda: FixedPoint(np.float32(TINY)),
    "SecAgg": flower,
    "SecAggFedAvg": lambda: flare("SecAggFedAvg"),
    "SitePolicy": lambda: flare("SitePolicy"),
    "PlainSum": lambda: fedmf.PlainSum(clip=TINY),
    "PaillierSum": lambda: fedmf.PaillierSum(clip=TINY, trust="key holder"),
}


@pytest.mark.parametrize("door", DOORS)
def test_clip_below_the_step_is_rejected(door: str) -> None:
    with pytest.raises(ParameterError, match=r"clip .*step"):
        DOORS[door]()


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
