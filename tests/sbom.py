"""Add the wheel and its compiled parts to an SBOM: ``python tests/sbom.py WHEEL SBOM.json``.

cyclonedx-py lists distributions only. A compiled part is a component of the type "file", with
the SHA-256 of its bytes in the wheel.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from pathlib import Path
from typing import Any


def sha256(data: bytes) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": hashlib.sha256(data).hexdigest()}]


def compiled_parts(wheel: Path) -> list[dict[str, Any]]:
    """Return a component for each shared library of a wheel, ascending names."""
    with zipfile.ZipFile(wheel) as archive:
        return [
            {"type": "file", "bom-ref": n, "name": n, "hashes": sha256(archive.read(n))}
            for n in sorted(archive.namelist())
            if n.endswith(".so")
        ]


def describe(wheel: Path, document: dict[str, Any]) -> dict[str, Any]:
    """Return the SBOM with the wheel's hash and compiled parts in the main component."""
    parts = compiled_parts(wheel)
    if not parts:
        raise SystemExit(f"{wheel.name} has no compiled part; build it with a C compiler")
    main, version = document["metadata"]["component"], wheel.name.split("-")[1]
    main |= {
        "version": version,  # dynamic in pyproject.toml, which cyclonedx-py reads
        "purl": f"pkg:pypi/{main['name']}@{version}",
        "hashes": sha256(wheel.read_bytes()),
        "components": parts,
    }
    return document


if __name__ == "__main__":
    wheel, path = map(Path, sys.argv[1:])
    document = describe(wheel, json.loads(path.read_text(encoding="utf-8")))
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
