"""Meter of a ServerApp: seconds, exchanges and bytes of its rounds, in a file."""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from flwr.app import Context, Message
from flwr.common.serde import message_to_proto
from flwr.serverapp import Grid
from numpy.typing import NDArray

RESULT = "result.json"


class Meter:
    """Counter of the messages that pass a grid.

    A message counts with the size of its protobuf, which is what a node sends or receives,
    without the transport's own bytes.

    Parameters
    ----------
    grid : Grid
        Grid of the ServerApp, whose pushes and pulls are counted from now on.
    folder : Path
        Folder for the models and figures.

    Attributes
    ----------
    reported : dict
        Metrics of training that the application was told, by the number of the round.
    """

    def __init__(self, grid: Grid, folder: Path) -> None:
        self.reported: object = {}
        self.rounds: list[dict[str, float]] = []
        self._folder = folder
        self._push, self._pull = grid.push_messages, grid.pull_messages
        grid.push_messages = self._counted_push  # type: ignore[method-assign]
        grid.pull_messages = self._counted_pull  # type: ignore[method-assign]
        self._begin()

    def after_round(self, number: int, model: NDArray[np.generic]) -> None:
        """Note the figures of a round, 0 before the first, and store the model."""
        seconds = time.perf_counter() - self._began
        if number:
            figures = {"exchanges": self._exchanges, "down": self._down, "up": self._up}
            self.rounds.append({"seconds": seconds, **figures, "load": os.getloadavg()[0]})
            np.save(self._folder / f"model-{number}.npy", model)
        self._begin()

    def _begin(self) -> None:
        self._exchanges = self._down = self._up = 0
        self._began = time.perf_counter()

    def _counted_push(self, messages: Iterable[Message]) -> Iterable[str]:
        batch = list(messages)
        self._exchanges += bool(batch)
        self._down += sum(map(_size, batch))
        return self._push(batch)

    def _counted_pull(self, message_ids: Iterable[str]) -> Iterable[Message]:
        replies = list(self._pull(message_ids))
        self._up += sum(map(_size, replies))
        return replies


@contextmanager
def metered(grid: Grid, context: Context) -> Iterator[Meter]:
    """Measure the rounds in the block, and write their figures, or the reason of a failure."""
    folder = Path(str(context.run_config["folder"]))
    meter, failure = Meter(grid, folder), ""
    try:
        yield meter
    except Exception:
        failure = traceback.format_exc()
        raise
    finally:
        figures = {"rounds": meter.rounds, "reported": meter.reported, "failure": failure}
        part = folder / "part"
        part.write_text(json.dumps(figures, default=dict), encoding="utf-8")
        part.replace(folder / RESULT)


def _size(message: Message) -> int:
    size: int = message_to_proto(message).ByteSize()
    return size
