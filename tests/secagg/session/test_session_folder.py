"""The folder of a session: a server that is killed goes on, and does nothing twice."""

from __future__ import annotations

import asyncio
import hashlib
import json
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import session_server
from secagg.oneshot import HelperJournal, OneShotPolicy
from secagg.session import take_part
from secagg.testing import toy_policy
from session_party import vector_of
from session_server import HELPERS, LENGTH, PARAMS, ROUNDS, N, SocketLink


async def run_killed(path: Path, mode: str, kind: str, points: list[int]) -> list[list[Any]]:
    """Run the program until it ends; each of its processes dies at a point. Return results."""
    address, up = str(path / "socket"), asyncio.Event()
    seen: dict[int, set[bytes]] = {u: set() for u in range(N)}
    options: dict[str, Any] = {"policy": toy_policy(PARAMS)}
    if mode == "one-shot":
        with ExitStack() as stack:
            made = [
                HelperJournal.create(path / f"helper {j}", "x25519") for j in range(HELPERS)
            ]
            keys = [stack.enter_context(journal).public[1] for journal in made]
        options["one_shot_policy"] = OneShotPolicy(helpers=frozenset(keys))

    def train(u: int, message: bytes) -> np.ndarray:
        seen[u].add(message)
        return vector_of(u, LENGTH) + message[0] / 64

    members = [
        asyncio.create_task(
            take_part(SocketLink(address, u, up), u, lambda m, p, u=u: train(u, m), **options)
        )
        for u in range(N)
    ]
    outputs = []
    for point in [*points, -1]:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            session_server.__file__,
            *map(str, (path, address, kind, point, mode)),
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        lines = []
        while line := await process.stdout.readline():
            if line == b"ready\n":
                up.set()
            else:
                lines.append(json.loads(line))
        up.clear()
        died = await process.wait()
        outputs.append(lines)
        if died == 0:
            break
        assert died == -signal.SIGKILL
    assert await asyncio.gather(*members) == [ROUNDS] * N
    assert all(len(messages) == ROUNDS for messages in seen.values())
    return outputs


def assert_same_exact_sums(outputs: list[list[Any]]) -> None:
    assert len(outputs[-1]) == ROUNDS
    for lines in outputs:  # finished rounds give the same again
        assert lines == outputs[-1][: len(lines)]
    model = b"first model"
    for line in outputs[-1]:
        assert line["ids"] == list(range(N))
        exact = sum(vector_of(u, LENGTH) + model[0] / 64 for u in range(N))
        assert line["sum"] == exact.tolist()
        model = hashlib.sha256(model + exact.tobytes()).digest()


POINTS = {"event": [4, 16, 23, 31, 38], "commit": [2, 9, 15, 21, 24, 27]}


@pytest.mark.parametrize("kind", POINTS)
@pytest.mark.parametrize("mode", ["round", "one-shot"])
def test_a_killed_server_goes_on_where_it_was(mode, kind, ram_path):
    outputs = asyncio.run(run_killed(ram_path, mode, kind, POINTS[kind]))
    assert_same_exact_sums(outputs)
    assert len(outputs) > 2
    left = {entry.name for entry in (ram_path / "session").iterdir()}
    assert left == {"session"}  # nothing of finished rounds but their results


@pytest.mark.large
@pytest.mark.parametrize("kind", POINTS)
@pytest.mark.parametrize("mode", ["round", "one-shot"])
def test_a_server_may_be_killed_at_any_point(mode, kind, ram_path):
    for point in range(1, 70, 3):
        path = ram_path / str(point)
        path.mkdir()
        assert_same_exact_sums(asyncio.run(run_killed(path, mode, kind, [point])))
