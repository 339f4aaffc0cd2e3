"""The wheel in fresh environments: without an extra, with each alone, and with all of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from test_extras import CALLS, EXTRAS, UNREACHED, every_command, write_study

ROOT = Path(__file__).parents[1]
PARTS = ["", *EXTRAS, ",".join(EXTRAS)]

pytestmark = pytest.mark.slow


def run(*words: object, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a program that does not find the checkout."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(  # noqa: S603
        [*map(str, words)], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    flags = ("-q", "--no-deps", "--no-build-isolation", "--no-cache-dir")
    done = run(sys.executable, "-m", "pip", "wheel", *flags, "-w", out, ROOT)
    assert done.returncode == 0, done.stderr
    return next(out.glob("*.whl"))


@pytest.mark.parametrize("extras", PARTS)
def test_commands_of_the_wheel(extras: str, wheel: Path, tmp_path: Path) -> None:
    assert run(sys.executable, "-m", "venv", tmp_path / "venv").returncode == 0
    binaries = tmp_path / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    python = binaries / "python"
    needed = f"{wheel}[{extras}]" if extras else wheel
    flags = ("-q", "--only-binary", ":all:", "-c", constraints(tmp_path))
    done = run(python, "-m", "pip", "install", *flags, needed)
    assert done.returncode == 0, done.stderr
    typer = run(python, "-c", "import typer, rich").returncode == 0  # flwr needs both, too
    write_study(tmp_path)
    helps = [" ".join([*words, "--help"]) for words in every_command()]
    for name in [*helps, "fedmf --version", "secagg --version", *CALLS]:
        if CALLS.get(name) in UNREACHED:
            continue
        program, *words = name.split()
        ended = run(binaries / program, *words, folder=tmp_path)
        assert "Traceback" not in ended.stderr, f"{name}: {ended.stderr}"
        if typer and not CALLS.get(name):
            assert ended.returncode == 0, f"{name}: {ended.stderr}"
        if ended.returncode:
            assert ended.returncode == 2, name
            assert "pip install" in ended.stderr.splitlines()[-1], f"{name}: {ended.stderr}"


def constraints(folder: Path) -> Path:
    """Write the locked versions without hashes, which pip would want of the wheel, too."""
    lines = (ROOT / "requirements.lock").read_text(encoding="ascii").splitlines()
    pins = [line.removesuffix(" \\") for line in lines if "==" in line and "--hash" not in line]
    path = folder / "constraints.txt"
    path.write_text("\n".join(pins) + "\n", encoding="ascii")
    return path
