"""docs/versions.md states the version of every format that the code writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedmf.models import factors_file
from secagg.client import stored
from secagg.oneshot import messages as oneshot_messages
from secagg.oneshot import params_bytes as oneshot_params
from secagg.paillier import private_key, public_key, vectors
from secagg.protocol import ledger, params_bytes
from secagg.session import wire
from secagg.threshold import key, partials, share

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
SECTION = TEXT.split("## Versions of formats")[1]
ROWS = [line.strip("| ").split(" | ") for line in SECTION.splitlines() if line.startswith("| ")]
STATED = {row[0]: (row[1], row[2]) for row in ROWS[1:]}


def source(path: str, name: str) -> str:
    """The literal of a constant in a module, without an import: its extra may be absent."""
    text = (ROOT / path).read_text(encoding="utf-8")
    return re.findall(rf"^{name} = (.+)$", text, re.MULTILINE)[0].strip('"')


@pytest.mark.parametrize(
    ("format_", "version"),
    [
        ("parameters and messages of a round", params_bytes.VERSION),
        ("state of a suspended client", stored.VERSION),
        ("parameters, messages and accumulators of one-shot sums", oneshot_messages.VERSION),
        ("parameters, messages and accumulators of one-shot sums", oneshot_params.VERSION),
        ("Paillier keys and encrypted vectors", public_key.VERSION),
        ("Paillier keys and encrypted vectors", vectors.VERSION),
        ("threshold keys, shares, partial decryptions", key.VERSION),
        ("threshold keys, shares, partial decryptions", share.VERSION),
        ("threshold keys, shares, partial decryptions", partials.VERSION),
        ("frames of a session", wire.VERSION),
        ("records of Flower", int(source("secagg/flower/wire.py", "VERSION"))),
        ("models of `fedmf`", factors_file.VERSION),
    ],
)
def test_version_of_a_format_is_that_of_the_code(format_: str, version: int) -> None:
    assert STATED[format_][0] == str(version)


def test_magic_bytes_are_those_of_the_code() -> None:
    for format_, modules in (
        ("Paillier keys and encrypted vectors", (public_key, private_key, vectors)),
        ("threshold keys, shares, partial decryptions", (key, share, partials)),
    ):
        shown = re.findall(r"`(\w+)`", STATED[format_][1])
        assert shown == [module.MAGIC.decode() for module in modules]
    assert ledger._MAGIC == b"secagg ledger 1\0"
    assert "`secagg ledger 1`" in STATED["ledger of a client"][1]
    assert f"`{source('secagg/http/signatures.py', 'TAG')}`" in STATED["HTTP"][1]


def test_every_version_in_the_code_is_stated() -> None:
    files = [path for part in ("secagg", "fedmf") for path in (ROOT / part).rglob("*.py")]
    having = [path for path in files if re.search(r"^VERSION = \d", path.read_text(), re.M)]
    # `secagg bench` writes one for its own reports
    assert len(having) == 12 + 1
