"""Bare endpoint that stores what it gets: ``python -m benches.collection.endpoint URL PORT``.

The endpoint stores the same bytes in the same way as ``secagg collect serve``, behind the same
parser of HTTP, without any check.
"""

from __future__ import annotations

import asyncio
import sys

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from secagg.collect import batches, open_database, sessions
from secagg.collect.intake import Intake
from secagg.collect.reports import Report
from secagg.http.server import listening
from secagg.oneshot import messages
from secagg.session.exchange import Thread


async def run(url: str, port: int) -> None:
    """Serve until this process is killed."""
    database = open_database(url)
    with database.transaction() as tx:
        session = sessions.find(tx, batches.newest(tx))
    assert session is not None
    intake = Intake(database, Thread())

    async def store(request: Request) -> Response:
        content = await request.body()
        await intake.add(session, Report.of(messages.reporter(content), content))
        return Response(status_code=204)

    path = f"/v1/parameters/{session.params.digest.hex()}/reports"
    app = Starlette(routes=[Route(path, store, methods=["POST"])])
    async with listening(app, "127.0.0.1", port, None):
        print("ready", flush=True)
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], int(sys.argv[2])))
