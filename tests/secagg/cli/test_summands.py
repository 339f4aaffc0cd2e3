"""Named, whole and noised sums of `secagg serve`: what is asked, agreed and written."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from cli_processes import address, invoke, process
from secagg import Identity, Registry
from secagg.cli.files import create_identity, read_identity, write_keys
from secagg.cli.inputs import read_given
from secagg.cli.requests import Request
from secagg.cli.summands import content_of, encoding_of, named
from secagg.cli.sums import Sums
from secagg.cli.vectors import Vectors
from secagg.errors import ParameterError
from secagg.session import LocalLink, Session, take_part

NAMES = ("bern", "cork", "delft", "essen")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working folder with a registry, identities, and a table of each client."""
    monkeypatch.chdir(tmp_path)
    keys = {name: create_identity(tmp_path / f"{name}.pem").public for name in NAMES}
    write_keys(tmp_path / "r.json", keys)
    for u, name in enumerate(NAMES):
        (tmp_path / f"{name}.csv").write_text(f"visits;deaths\n{1000 + u};{u}\n")
    return tmp_path


def serve(*more: object) -> tuple[object, ...]:
    ports = ("--port", 0, "--operator-port", 0)
    return ("serve", "r.json", "--out", "sums", *ports, "--deadline", 60, *more)


COUNTS = ("--integers", "--clip", 100_000)
WRONG = {
    "neither": ([*COUNTS], "--length"),
    "both": ([*COUNTS, "--length", 3, "--columns", "a,b"], "--length"),
    "formula": ([*COUNTS, "--columns", "a,=b"], "=b"),
    "twice": ([*COUNTS, "--columns", "a,a"], "'a'"),
    "empty": ([*COUNTS, "--columns", ""], "name"),
    "open quotes": ([*COUNTS, "--columns", 'a,"b'], "--columns"),
    "lines": ([*COUNTS, "--columns", "a\nb"], "--columns"),
    "no file": ([*COUNTS, "--columns", "c.csv"], "c.csv"),
    "fraction": (["--integers", "--clip", 7.5, "--length", 3], "--clip"),
    "beyond integers": (["--integers", "--clip", 1e30, "--length", 3], "--clip"),
    "infinite": (["--integers", "--clip", "inf", "--length", 3], "--clip"),
    "noise without helpers": ([*COUNTS, "--length", 3, "--noise", 1e6], "--helpers"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_sum_ends_a_server_before_it_listens(name, folder):
    more, shown = WRONG[name]
    ran = invoke(*serve(*more))
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (2, "", 1), ran.stderr
    assert shown in ran.stderr
    assert not (folder / "sums").exists()


def test_sum_has_the_names_of_its_columns(folder):
    """The names of the server are in the message, and the file of the sum is exact."""
    columns, length = named("visits,deaths", None)
    registry = Registry({u: Identity.generate().public for u in range(4)})
    shape = (encoding_of(1e5, integers=True), None, None, "semi-honest", 0.0, 0.0)
    sums = Sums(registry, length, *shape, name="s", run=b"", columns=columns)
    assert sums.file(3) == "sum-3.csv"
    assert sums.request(0, None) == Request(columns=("visits", "deaths"))

    async def run() -> bytes:
        session = Session(range(4), deadlines=60, name="s")
        members = [
            asyncio.create_task(
                take_part(
                    LocalLink(session, u), u, Vectors([Path(f"{name}.csv")], integers=True)
                )
            )
            for u, name in enumerate(NAMES)
        ]
        result = await sums.next(session, 0, None)
        await session.close()
        assert [await one for one in members] == [1] * 4
        return content_of(result.sum, columns)

    assert asyncio.run(run()) == b"visits,deaths\n4006,6\n"


def test_sum_without_names_is_of_numpys_format(tmp_path):
    (tmp_path / "s.npy").write_bytes(content_of(np.array([0.5, -1]), ()))
    assert read_given(tmp_path / "s.npy", integers=False).vector.tolist() == [0.5, -1]
    with pytest.raises(ParameterError):
        named(None, None)


@pytest.mark.large
def test_noised_count_of_named_columns_by_commands(folder):
    """The noise is of the agreed parameters: helpers that saw none would not open the sum."""
    create_identity(folder / "a.pem")
    public = read_identity(folder / "a.pem").public.hex()
    with ExitStack() as stack:
        entries = []
        for j in (1, 2):
            made = invoke("helper", "keygen", f"{j}.journal", "--suite", "x25519", "--json")
            more = ("--aggregator", public, "--port", 0, "--log", "info")
            helper = stack.enter_context(process("helper", "serve", f"{j}.journal", *more))
            entries.append(json.loads(made.stdout) | {"url": address(helper, ".*helper")})
        (folder / "h.json").write_text(json.dumps(entries))
        helpers = ("--helpers", "h.json", "--identity", "a.pem", "--noise", 2)
        server = stack.enter_context(
            process(*serve(*COUNTS, "--columns", "bern.csv", *helpers, "--min-clients", 4))
        )
        url = address(server, "members")
        least = ("--helpers", "h.json", "--integers", "--min-clients", 4)
        members = [
            stack.enter_context(
                process(
                    "join",
                    url,
                    "--client",
                    name,
                    "--identity",
                    f"{name}.pem",
                    "--vector",
                    f"{name}.csv",
                    *least,
                )
            )
            for name in NAMES
        ]
        for one in members:
            out, error = one.communicate()
            assert (one.returncode, out) == (0, "reports sent: 1\n"), error
        _, error = server.communicate()
        assert server.returncode == 0, error
        helper.kill()
        assert "Z info: open is done" in helper.communicate()[1]
    record = json.loads((folder / "sums" / "record-0000.json").read_text())
    assert (record["noise"], record["columns"]) == (2, 2)
    lines = (folder / "sums" / "sum-0.csv").read_text().splitlines()
    assert lines[0] == "visits,deaths"
    visits, deaths = map(int, lines[1].split(","))
    # two seeds, σ = 2: beyond 10 σ √2 with probability below 2^-71
    assert abs(visits - 4006) <= 29
    assert abs(deaths - 6) <= 29
