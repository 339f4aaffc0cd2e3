"""Roles of docs/how-to/collection-operation.md: each process can do its work, and no more."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from cli_processes import invoke
from collect_parts import Collected
from oneshot_parties import parties
from secagg import DatabaseError
from secagg.collect import Database, open_database
from secagg.collect.reports import Verdict

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "collection-operation.md"
FORBIDDEN = {
    "serve": (
        "SELECT report FROM secagg_reports_1",
        "SELECT outcome FROM secagg_batches",
        "UPDATE secagg_batches SET state = 'closing'",
        "SELECT part FROM secagg_slices",
    ),
    "work": ("UPDATE secagg_batches SET reports = 9", "DELETE FROM secagg_reports_1"),
    "status": (
        "SELECT id FROM secagg_clients",
        "SELECT outcome FROM secagg_batches",
        "SELECT part FROM secagg_slices",
    ),
}


def opened(stack: ExitStack, url: str, role: str) -> Database:
    database = open_database(url.replace("user=postgres", f"user=sums_{role}"))
    stack.callback(database.close)
    return database


async def test_roles_of_the_page_have_the_rights_they_need_and_no_more(postgres: str) -> None:
    import psycopg

    roles, rights, grants = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    url = postgres.replace("/postgres?", "/sums?")

    def run(where: str, statements: str) -> None:
        with psycopg.connect(where, autocommit=True) as connection:
            for statement in statements.split(";"):
                connection.execute(statement.encode())

    run(postgres, roles)
    run(url, rights)
    with ExitStack() as stack, parties() as made:
        owner = opened(stack, url, "owner")
        run(url, grants)
        others = {role: opened(stack, url, role) for role in FORBIDDEN}
        collected = Collected(owner, made)
        assert collected.report(0, 1, 2, database=others["serve"]) == [Verdict.STORED] * 3
        collected.close(reopen=True)  # the next table has the rights, too
        assert collected.report(3, database=others["serve"]) == [Verdict.STORED]
        while await collected.worker(database=others["work"]).step():
            pass
        await collected.finish()
        shown = invoke("collect", "status", url.replace("user=postgres", "user=sums_status"))
        assert "done, 3 reports" in shown.output
        for role, statements in FORBIDDEN.items():
            for statement in statements:
                denied = pytest.raises(DatabaseError, match="InsufficientPrivilege")
                with denied, others[role].transaction() as tx:
                    tx.run(statement.replace("reports_1", "reports_1"))
