"""docs/how-to/collection.md: the trial of the page ends with its sum."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "collection.md"


@pytest.mark.large
def test_trial_of_the_page_ends_with_its_sum(tmp_path: Path) -> None:
    ((script, lines),) = re.findall(
        r"```bash\n(.*?)```.*?```text\n(.*?)```", PAGE.read_text(), re.DOTALL
    )
    with ExitStack() as stack:
        free = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        for old, one in zip(("8443", "9001", "9002"), free, strict=True):
            script = script.replace(old, str(one.getsockname()[1]))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = ["bash", "-e", "-c", f"trap 'kill $(jobs -p)' EXIT\n{script}"]
    done = subprocess.run(  # noqa: S603
        command, cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip
    assert done.stdout.endswith(lines), done.stdout + done.stderr
    assert np.load(tmp_path / "sums" / "sum-0.npy").tolist() == [3.0, 1.5, 0.75]
