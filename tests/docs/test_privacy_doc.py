"""docs/differential-privacy.md and the code say the same: printed lines, two values of ε."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from secagg import FixedPoint, Integers
from secagg.cli.planned_noise import DELTA
from secagg.cli.privacy import privacy_of
from secagg.encoding import Encoding
from secagg.oneshot import Noise, OneShotParams
from secagg.privacy import Loss
from secagg.simulate import temporary_journals

pytest.importorskip("dp_accounting")

TEXT = (Path(__file__).parents[2] / "docs" / "differential-privacy.md").read_text()
SHOWN = re.findall(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", TEXT, re.DOTALL)


def test_python_of_the_page_prints_what_the_page_says() -> None:
    """One after the other, since the ledger has the parameters of the plan."""
    namespace: dict[str, object] = {}
    assert len(SHOWN) == 3
    for block, expected in SHOWN:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(block, "page", "exec"), namespace)  # noqa: S102
        assert printed.getvalue() == expected


def test_readme_installs_what_noise_over_http_needs() -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text()
    assert '`pip install "./secagg[http,cli,privacy]"` for HTTP' in text


def values(encoding: Encoding, length: int, sigma: float) -> tuple[OneShotParams, float, float]:
    """Return parameters, with ε as `secagg serve` prints it and as a ledger counts it."""
    with temporary_journals(3) as journals:
        keys = [one.public for one in journals]
        params = OneShotParams.suggest(
            100, length, encoding, helpers=keys, session=b"s", noise=Noise(sigma)
        )
    printed = privacy_of(params)
    assert f"at δ = {printed['delta']:.0e}".replace("e-0", "e-") in TEXT
    assert printed["epsilon_ledger"] == Loss.of(params).epsilon(DELTA)
    return params, printed["epsilon"], printed["epsilon_ledger"]


def test_two_values_of_epsilon() -> None:
    found = re.search(
        r"`--length (\d+) --clip (\d+) --noise (\S+)` both values are (\S+) and (\S+)\.\s",
        re.sub(r"\n  (?=\S)", " ", TEXT),
    )
    assert found is not None
    length, clip, sigma, *shown = found.groups()
    assert f"by default {DELTA:.0e}".replace("e-0", "e-") in TEXT.replace("\n  ", " ")
    params, *both = values(FixedPoint(float(clip)), int(length), float(sigma))
    assert [f"{one:.3g}" for one in both] == shown
    # ρ = Δ² / 2σ²: a quarter of that against any vector, with signed elements alone
    square = int(length) * (2 * FixedPoint(float(clip)).max_encoded) ** 2
    assert Loss.of(params).rho * 4 == pytest.approx(square / (2 * float(sigma) ** 2))
    params, printed, _ = values(Integers(100), 10, 1000.0)
    assert Loss.of(params).rho == pytest.approx(10 * 100**2 / (2 * 1000**2))
    assert printed == pytest.approx(Loss.of(params).epsilon(1e-9))
