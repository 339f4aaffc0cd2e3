"""docs/http-binding.md, http.json and the code say the same: paths, statuses, signatures."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.routing import Route

from secagg import Identity, Registry
from secagg.collect.service import Service
from secagg.collect.sqlite import SQLite
from secagg.http import application, asgi, helper, openapi, signatures
from secagg.http.application import Members
from secagg.http.bodies import Limits
from secagg.http.problems import Problem
from secagg.session import Session
from secagg.testing import make_identity
from vectors_reader import Vector, b, load

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "http-binding.md").read_text(encoding="utf-8")
VECTORS = load("http")


def part(name: str) -> str:
    """Return the text between a mark and the next end."""
    return TEXT.split(f"<!-- {name} -->\n")[1].split("<!-- end -->")[0]


def rows(text: str) -> list[list[str]]:
    """Return the cells of all rows of tables."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def requests_of(service: str) -> dict[str, list[str]]:
    """Return the cells of each request of a service in the page."""
    return {cells[0].strip("`"): cells[1:] for cells in rows(part(service))[1:]}


def members() -> list[Route]:
    registry = Registry({u: make_identity(u).public for u in range(3)})
    return Members(Session(registry), registry, Limits()).routes()


def helpers() -> list[Route]:
    service = helper.HelperService(lambda _: pytest.fail("not called"), make_identity(0).public)
    service.close()
    return service.routes()


def collection() -> list[Route]:
    service = Service(SQLite(Path("none")), None, Limits())
    service.close()
    return service.routes()


def served_by(routes: list[Route]) -> set[str]:
    """Return methods and paths of requests, but those of every service."""
    return {
        f"{method} {re.sub(':path', '', route.path)}"
        for route in routes
        for method in route.methods or ()
        if method != "HEAD" and route.path not in {"/health", "/openapi.json"}
    }


SERVICES = {"members": (members, openapi.members), "helper": (helpers, openapi.helper)}


@pytest.mark.parametrize("service", SERVICES)
def test_requests_and_statuses_are_those_of_the_code(service: str) -> None:
    routes, document = SERVICES[service]
    page = requests_of(service)
    assert set(page) == served_by(routes())
    described = operations(document)
    for request, (signed, body, success, _, others) in page.items():
        operation = described[request]
        headers = {one["name"] for one in operation.get("parameters", [])}
        assert (signed == "yes") == ("Signature" in headers)
        assert (body != "–") == ("requestBody" in operation)
        assert f"{success}, {others}".split(", ") == list(operation["responses"])


def test_requests_of_a_collection_are_those_of_the_code() -> None:
    page = requests_of("collection")
    assert set(page) == served_by(collection())
    # every status of the vectors is one of the request
    for case in (*VECTORS["collection"]["open"], *VECTORS["collection"]["closed"]):
        pattern = re.sub(r"/[0-9a-fx]+(/|$)", r"/{digest}\1", case["target"][len("/v1") :])
        _, _, success, _, others = page[f"{case['method']} /v1{pattern}"]
        assert str(case["status"]) in f"{success}, {others}".split(", ")


def operations(document: Callable[[], openapi.Document]) -> dict[str, Vector]:
    """Return the operations of a description by method and path."""
    paths = document()["paths"]
    assert isinstance(paths, dict)
    return {
        f"{method.upper()} {path}": operation
        for path, methods in paths.items()
        for method, operation in methods.items()
    }


def test_checks_are_those_of_the_code() -> None:
    """Every pair of a status and a check that the code states is in a table of the page."""
    stated = problems(*(ROOT / "secagg" / "http").glob("*.py"))
    stated |= {(str(status), check) for status, check in asgi._CHECKS.items()}
    stated |= {(str(status), check) for check, status in application._STATUS.items()}
    before, collection = TEXT.split("## 5. Collection")
    assert statuses(before) == stated
    files = (ROOT / "secagg" / "collect" / name for name in ("service.py", "offers.py"))
    of_collections = problems(*files)
    assert of_collections == statuses(collection) - {("408", "deadline"), ("413", "length")}


def problems(*paths: Path) -> set[tuple[str, str]]:
    """Return the statuses and checks of errors that files state."""
    code = "\n".join(path.read_text() for path in paths)
    return set(re.findall(r'Problem[(,]\s*(\d{3}),\s*"(\w+)"', code))


def statuses(text: str) -> set[tuple[str, str]]:
    """Return the statuses and checks of the tables of a text."""
    return {
        (cells[0], cells[1].strip("`"))
        for cells in rows(text)
        if re.fullmatch(r"\d{3}", cells[0]) and cells[1].startswith("`")
    }


def at(monkeypatch: pytest.MonkeyPatch, now: int) -> None:
    """Set the clock of the signatures."""
    monkeypatch.setattr(signatures, "time", SimpleNamespace(time=lambda: now))


@pytest.mark.parametrize("case", VECTORS["requests"], ids=lambda case: case["name"])
def test_signatures_are_those_of_the_vectors(
    case: Vector, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, case["now"])
    u, target, body = int(case["client"]), case["target"], b(case["body"])
    identity = Identity(b(case["identity_seed"]))
    assert identity.public == b(case["identity_key"])
    headers = signatures.sign(identity, u, case["method"], target, body)
    assert {name.lower(): value for name, value in headers.items()} == case["headers"]
    keys = {u: identity.public}
    found = signatures.verify(keys, case["method"], target, case["headers"].items())
    assert found == (u, case["headers"]["content-digest"])


@pytest.mark.parametrize("case", VECTORS["refused"], ids=lambda case: case["name"])
def test_faults_of_the_vectors_are_rejected(
    case: Vector, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, case["now"])
    keys = {int(case["client"]): b(case["identity_key"])}
    with pytest.raises(Problem) as caught:
        signatures.verify(keys, case["method"], case["target"], case["headers"].items())
    assert (caught.value.status, caught.value.check) == (case["status"], case["check"])


def test_the_pages_example_is_a_vector() -> None:
    case = VECTORS["requests"][0]
    lines = [f"{case['method']} {case['target']}", "", "client:", f"    {case['client']}"]
    lines += ["identity seed:", f"    {case['identity_seed']}", "base:"]
    lines += [f"    {line}" for line in case["base"].split("\n")] + ["headers:"]
    lines += [f"    {name}: {value}" for name, value in sorted(case["headers"].items())]
    assert part("example") == "```text\n" + "\n".join(lines) + "\n```\n"
