"""Bounds, origins and metrics of a served collection."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import threading
from base64 import b64decode

import pytest

from cli_processes import invoke
from collect_parts import Collected, Databases
from collect_site import NEWEST, served
from oneshot_parties import parties
from secagg.http import Limits
from secagg.http.problems import Problem
from secagg.session import bind

ORIGIN = "https://app.example:8080"
ALLOWED = "Access-Control-Allow-Origin"
REPORTED = '{answer="ok",request="report"}'


async def test_bytes_beyond_the_bound_are_turned_away(
    databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes of a report count until the commit."""
    monkeypatch.setattr("secagg.collect.operator._SECONDS", 0.05)
    with parties() as made:
        collected = Collected(databases.open(), made)
        go, begun = threading.Event(), threading.Event()

        def before(statement: str) -> None:
            if statement == "INSERT INTO secagg_clients":
                begun.set()
                go.wait()

        limits = Limits(bytes_in_flight=1, poll_seconds=0.05)
        async with served(collected, before, limits=limits, operator_port=0) as site:
            first = asyncio.ensure_future(site.report(0))
            await asyncio.to_thread(begun.wait)
            size = made.params.layout.report
            assert (await site.metrics())["secagg_collect_bytes_in_flight"] == size
            found = await site.http.post(f"{site.path}/reports", content=made.report(1))
            assert (found.status_code, found.headers["Retry-After"]) == (503, "1")
            go.set()
            assert await first == [""]


async def test_metrics_count_answers_commits_and_batches(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made, slices=3)
        async with served(collected, operator_port=0) as site:
            assert (await site.metrics())["secagg_collect_answers_total" + REPORTED] == 0
            await site.report(0, 1, 2)
            assert await site.post(made.report(1, seed=1)) == "409 id"
            collected.close(reopen=True)
            databases.time += 60
            found = await site.metrics()
            assert await site.look("health") == {"status": "ok"}
            collected.close()
            with collected.database.transaction() as tx:
                tx.run("DELETE FROM secagg_batches WHERE state = 'open'")
            assert (await site.look("ready"))["check"] == "parameters"
    named = {re.sub("secagg_collect_|_total", "", name): one for name, one in found.items()}
    expected = {
        "answers" + REPORTED: 3,
        'answers{answer="id",request="report"}': 1,
        "commit_reports_sum": 4,
        "bytes_in_flight": 0,
        "ready": 1,
        'batches{state="open"}': 1,
        'batches{state="closing"}': 1,
        'reports{state="closing"}': 3,
        'oldest_seconds{state="closing"}': 60,
        'oldest_seconds{state="fixed"}': 0,
        "slices_left": 3,
    }
    assert {name: named.get(name) for name in expected} == expected
    assert named["commit_seconds_count"] == named["commit_reports_count"] > 0


def test_status_prints_the_metrics_of_the_database(databases: Databases) -> None:
    with parties() as made:
        Collected(databases.open(), made).report(0, 1)
    status = ("collect", "status", databases.where, "--metrics")
    lines = invoke(*status).stdout.splitlines()
    assert 'secagg_collect_reports{state="open"} 2.0' in lines
    assert "secagg_collect_slices_left 0.0" in lines
    assert invoke(*status, "--json").exit_code == 2


def test_status_shows_the_batches_beside_an_altered_batch(databases: Databases) -> None:
    with parties() as made, parties(session=b"next model") as other:
        first = Collected(databases.open(), made)
        Collected(first.database, other).report(0, 1)
        with first.database.transaction() as tx:
            tx.run("UPDATE secagg_batches SET reports = -1 WHERE number = 0")
    done = invoke("collect", "status", databases.where, "--json")
    assert [one["number"] for one in json.loads(done.stdout)["batches"]] == [1]
    assert done.exit_code == 2
    assert "Batch 0 was altered" in " ".join(done.stderr.split())
    with first.database.transaction() as tx:
        tx.run("UPDATE secagg_batches SET reports = -1 WHERE number = 1")
    done = invoke("collect", "status", databases.where)
    assert not done.stdout.strip()
    assert all(f"Batch {at} was altered" in " ".join(done.stderr.split()) for at in (0, 1))


async def test_refusals_keep_no_report_in_memory(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        async with served(collected) as site:
            await site.report(0)
            assert await site.post(made.report(0, seed=1)) == "409 id"
        gc.collect()
        kept = [one for one in gc.get_objects() if isinstance(one, Problem)]
        assert [one.check for one in kept if one.__traceback__ is not None] == []


async def test_pages_of_listed_origins_read_the_answers(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        async with served(collected, origins=[ORIGIN]) as site:
            for path in (NEWEST, "/v1/parameters/x"):
                for origin, allowed in ((ORIGIN, ORIGIN), ("https://app.example", None)):
                    found = await site.http.get(path, headers={"Origin": origin})
                    assert found.headers.get(ALLOWED) == allowed
                assert "Retry-After" in found.headers["Access-Control-Expose-Headers"]
            asked = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST"}
            found = await site.http.options(f"{site.path}/reports", headers=asked)
            assert (found.status_code, found.headers[ALLOWED]) == (200, ORIGIN)
            asked["Origin"] = "null"
            found = await site.http.options(f"{site.path}/reports", headers=asked)
            assert (found.status_code, found.headers.get(ALLOWED)) == (400, None)
        async with served(collected) as site:
            found = await site.http.get(NEWEST, headers={"Origin": ORIGIN})
            assert not [name for name in found.headers if name.startswith("access-control")]


async def test_readers_of_a_large_message_have_turns(databases: Databases) -> None:
    """Strangers that do not read fill no memory."""
    message = bytes(1 << 23)
    with parties(session=bind(b"session", message)) as made:
        collected = Collected(databases.open(), made, message=message)
        limits = Limits(bytes_in_flight=1, poll_seconds=0.05)
        async with served(collected, limits=limits) as site:
            at = site.http.base_url
            reader, writer = await asyncio.open_connection(at.host, at.port)
            writer.write(f"GET {NEWEST} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert b" 200 " in await reader.readline()
            assert (await site.http.get(NEWEST)).status_code == 503
            writer.close()
            while (found := await site.http.get(site.path)).status_code == 503:
                pass
            assert b64decode(found.json()["message"]) == message
