"""The judge against verdicts and forgeries that were made from docs/protocol.md alone."""

from __future__ import annotations

import pytest

import independent_judge
from secagg import ClientPolicy, Registry, RemoteProtocolError, blame
from secagg.blame import layout
from vectors_reader import FOLDER, Vector, b, load

VECTORS = load("verdicts")
KEYS = {one["round"]: one["keys"] for one in VECTORS["registries"]}


def arguments(vector: Vector) -> tuple[bytes, Registry, ClientPolicy]:
    keys = {
        int(one["id"]): b(one["identity_key"])
        for one in KEYS[vector["round"]]
        if one["id"] not in vector["left_out"]
    }
    return b(vector["bytes"]), Registry(keys), ClientPolicy(colluders=vector["colluders"])


def name_of(vector: Vector) -> str:
    return f"{vector['round']} {vector['name']}"


@pytest.mark.parametrize("vector", VECTORS["verdicts"], ids=name_of)
def test_verdict_names_its_client(vector: Vector) -> None:
    data, registry, policy = arguments(vector)
    assert blame.check(data, registry, policy) == int(vector["client"])
    assert layout.unpack(data).kind == vector["kind"]


@pytest.mark.parametrize("vector", VECTORS["refused"], ids=name_of)
def test_check58_forgery_names_nobody(vector: Vector) -> None:
    data, registry, policy = arguments(vector)
    kinds = {"RemoteProtocolError": RemoteProtocolError, "ParameterError": ValueError}
    with pytest.raises(kinds[vector["error"]]) as caught:
        blame.check(data, registry, policy)
    if isinstance(caught.value, RemoteProtocolError):
        assert caught.value.check in vector["checks"]
        assert caught.value.phase == "verdict"


def test_check27_every_kind_has_a_verdict_and_a_forgery() -> None:
    kinds = set(independent_judge.KINDS[1:])
    assert {vector["kind"] for vector in VECTORS["verdicts"]} == kinds
    forged = {vector["name"].split(":")[0] for vector in VECTORS["refused"]}
    assert forged == kinds | {"bytes"}


def test_check27_forgeries_fail_every_check_of_the_document() -> None:
    document = (FOLDER.parents[1] / "docs" / "protocol.md").read_text()
    table = document.split("<!-- verdict checks -->")[1].split("<!-- end -->")[0]
    rows = {line.split("|")[1].strip(" `") for line in table.splitlines() if "`" in line}
    assert {check for vector in VECTORS["refused"] for check in vector["checks"]} == rows
