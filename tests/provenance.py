"""State how release files were built: ``python tests/provenance.py DIST EPOCH``.

DIST/provenance.json is an in-toto statement, version 1, with a predicate of SLSA provenance,
version 1: SHA-256 of every file, commit, locked packages, command. Two runs on a commit write
the same bytes, so whoever repeats the build can compare. Nothing is signed here.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
NAME = "provenance.json"
SUFFIXES = (".whl", ".tar.gz", ".json")


def digest(path: Path) -> dict[str, str]:
    return {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def statement(folder: Path, epoch: str, commit: str) -> dict[str, Any]:
    """Return the statement on all wheels, archives and documents below a folder."""
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.name.endswith(SUFFIXES) and not path.name.startswith(NAME)
    )
    if not files:
        raise SystemExit(f"{folder} has no release files: run make sbom first")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    address = project["tool"]["secagg"]["address"]
    sources: dict[str, Any] = {"name": "sources", "digest": {"gitCommit": commit}}
    if address:
        sources["uri"] = f"git+{address}"
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": path.relative_to(folder).as_posix(), "digest": digest(path)}
            for path in files
        ],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "urn:secagg:build:make",
                "externalParameters": {"target": "sbom", "SOURCE_DATE_EPOCH": epoch},
                "resolvedDependencies": [
                    sources,
                    {"name": "requirements.lock", "digest": digest(ROOT / "requirements.lock")},
                ],
            },
            "runDetails": {"builder": {"id": "urn:secagg:builder:local"}},
        },
    }


if __name__ == "__main__":
    place, when = Path(sys.argv[1]), sys.argv[2]
    head = ["git", "rev-parse", "HEAD"]
    now = subprocess.run(head, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    text = json.dumps(statement(place, when, now.stdout.strip()), indent=2)
    (place / NAME).write_text(text + "\n", encoding="utf-8")
