"""Try the releases of a package that pyproject.toml allows, each in an environment of its own.

    python tests/matrix.py flwr nvflare cryptography numpy

Every release that the index has within the declared range gets the newest versions of all else,
a copy of the files, and the tests of what uses the package: some minutes a release. The exit
code is 1 if a release failed. build/matrix/ has the outputs.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "build" / "matrix"
UV = [sys.executable, "-m", "uv", "-q"]
EXTRAS = "cli,dev,fedmf,data,flare,flower,he,http,postgres,privacy,statistics"
PROTOCOL = {"blame", "client", "http", "oneshot", "paillier", "protocol", "server", "session"}
NUMBERS = {"_fast", "client", "encoding", "oneshot", "paillier", "protocol", "server", "shamir"}
MODELS = {"_fast", "aggregate", "bayes", "data", "ease", "fcf", "masks", "models", "training"}
TESTS = {
    "flwr": ["tests/secagg/flower", "tests/fedmf/flower", "tests/docs/test_flower_examples.py"],
    "nvflare": ["tests/secagg/flare"],
    "cryptography": [f"tests/secagg/{name}" for name in sorted(PROTOCOL)],
    "numpy": [
        *(f"tests/secagg/{name}" for name in sorted(NUMBERS)),
        *(f"tests/fedmf/{name}" for name in sorted(MODELS)),
    ],
}
"""Tests of what uses a package."""
CALM = [
    "-m",
    "not slow and not large",
    "-W",
    "ignore::DeprecationWarning",
    "-p",
    "no:cacheprovider",
]
CLOSING = re.compile(r"\d+ (?:passed|failed).*")


def declared(package: str) -> Requirement:
    """Return the requirement of the package in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    for line in (*project["dependencies"], *(one for extra in extras for one in extra)):
        if (requirement := Requirement(line)).name == package:
            return requirement
    raise SystemExit(f"{package} is no requirement: name one of {', '.join(TESTS)}")


def releases(package: str) -> list[Version]:
    """Return the releases of the index within the declared range, ascending."""
    printed = _run([sys.executable, "-m", "pip", "index", "versions", package]).stdout
    listed = re.search(r"Available versions: (.*)", printed)
    if listed is None:
        raise SystemExit(f"the index has no release of {package}: {printed.strip()}")
    known = sorted(map(Version, listed.group(1).split(", ")))
    return list(declared(package).specifier.filter(known))


def attempt(package: str, release: Version) -> tuple[bool, str]:
    """Run the package's tests with that release, and return pytest's closing line."""
    place = PLACE / f"{package}-{release}"
    place.mkdir(parents=True, exist_ok=True)
    python, copy = place / "venv" / "bin" / "python", place / "copy"
    steps = [
        ["git", "checkout-index", "--all", "--force", f"--prefix={copy}/"],
        [*UV, "venv", "--clear", "--python", sys.executable, str(place / "venv")],
        [*UV, "pip", "install", "--python", str(python), "-e", f"{copy}[{EXTRAS}]",
         f"{package}=={release}"],
    ]  # fmt: skip
    tests = [str(python), "-m", "pytest", "-q", "-n", "2", *CALM, *TESTS[package]]
    output = ""
    for step, folder in (*((step, ROOT) for step in steps), (tests, copy)):
        done = _run(step, folder)
        output += done.stdout + done.stderr
        if done.returncode:
            break
    (place / "output.txt").write_text(output, encoding="utf-8")
    lines = output.strip().splitlines() or ["no output"]
    closing = next((line for line in reversed(lines) if CLOSING.search(line)), lines[-1])
    return not done.returncode, closing.strip()


def _run(command: list[str], folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        command, cwd=folder, capture_output=True, text=True, check=False
    )


def main() -> None:
    """Print a row for each release."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="*", choices=[*TESTS, []], help="all by default")
    failed = False
    for package in parser.parse_args().packages or TESTS:
        for release in releases(package):
            passed, closing = attempt(package, release)
            failed |= not passed
            print(f"{package} {release}: {'' if passed else 'FAILED: '}{closing}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
