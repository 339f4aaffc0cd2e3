"""Helper in a process of its own, there to be killed.

As a script: it opens the journal at a path, checks a chunk of boxes and answers one request,
with files for everything. It kills itself before the first statement that begins with a given
text, or after the last one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import nursery
from oneshot_parties import LENIENT, registry_for
from secagg import SecAggError
from secagg.oneshot import Helper, HelperJournal, OneShotParams

ROOT = Path(__file__).parents[2]


def call(
    folder: Path,
    journal: Path,
    request: bytes,
    *,
    die_at: str = "",
    under: Sequence[str] = (),
) -> bytes | None:
    """Return the answer to a request, b"rejected …" for an error, or None if it was killed.

    `under` is a command that runs the process, such as strace.
    """
    (folder / "request").write_bytes(request)
    (folder / "answer").unlink(missing_ok=True)
    paths = [ROOT, ROOT / "tests", ROOT / "tests" / "support"]
    done = subprocess.run(  # noqa: S603
        [*under, sys.executable, "-B", __file__, str(folder), str(journal), die_at],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))},
        check=False,
        timeout=120,  # only so that a deadlock fails instead of lasting
    )
    if done.returncode == -signal.SIGKILL:
        return None
    assert done.returncode == 0
    return (folder / "answer").read_bytes()


def main(folder: Path, path: Path, die_at: str) -> None:
    params = OneShotParams.from_bytes((folder / "params").read_bytes())
    with HelperJournal.open(path) as journal:
        helper = Helper(params, journal, registry=registry_for(params), policy=LENIENT)
        assert helper.check((folder / "chunk").read_bytes()) == ()
        if die_at:
            nursery.die_at(journal, die_at)
        try:
            answer = helper.open((folder / "request").read_bytes())
        except SecAggError as error:
            answer = f"rejected {getattr(error, 'check', '')}".encode()
        if die_at == "answered":
            os.kill(os.getpid(), signal.SIGKILL)
        (folder / "answer").write_bytes(answer)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
