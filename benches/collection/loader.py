"""Loader of the reports of a file: ``python -m benches.collection.loader FOLDER PORT``."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benches.collection.generator import Sender
from benches.collection.load import Load
from secagg.oneshot import OneShotParams, messages

REPORTS, PARAMS = "reports", "params"
"""Names of the files with the reports and with their parameters."""


def read(path: Path, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield the clients and the reports of a file."""
    with path.open("rb") as file:
        while body := file.read(size):
            yield messages.reporter(body), body


def main(folder: Path, port: int) -> None:
    """Send all reports, and print the seconds."""
    params = OneShotParams.from_bytes((folder / PARAMS).read_bytes())
    load = replace(Load.read(folder), connections=128)
    sender, began = Sender(load, 0, params, [port]), time.monotonic()
    sender.send(read(folder / REPORTS, params.layout.report))
    print(time.monotonic() - began)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
