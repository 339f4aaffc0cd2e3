"""Helper of one-shot sums: ``python -m benches.http_load.helper FOLDER NUMBER``.

With a third argument it lies: a bit of every answer that opens a sum is another one.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from benches.http_load.load import Load
from benches.http_load.server import AGGREGATOR
from secagg.http import serve_helper
from secagg.oneshot import Helper, HelperJournal
from secagg.testing import make_identity


def lie() -> None:
    """Alter every answer of this process from now on."""
    honest = Helper.open

    def lying(self: Helper, request: bytes) -> bytes:
        answer = bytearray(honest(self, request))
        answer[-1] ^= 1
        return bytes(answer)

    Helper.open = lying  # type: ignore[method-assign]


async def run(load: Load, folder: Path, number: int) -> None:
    """Serve until this process is killed."""
    with HelperJournal.open(folder / f"helper-{number}") as journal:
        service = serve_helper(
            journal,
            make_identity(AGGREGATOR).public,
            registry=load.registry if load.kind == "active" else None,
            port=load.helpers[number - 1].port,
        )
        async with service:
            print("ready", flush=True)
            await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    if sys.argv[3:]:
        lie()
    where = Path(sys.argv[1])
    asyncio.run(run(Load.read(where), where, int(sys.argv[2])))
