"""Rounds in which a site has reported, on its disk: it reports once, also after a restart."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from secagg.errors import RemoteProtocolError

__all__ = ["report_once"]


def report_once(folder: Path, job: str, number: int) -> None:
    """Record a report in a round of a job; one of several threads and processes succeeds.

    Two reports of one round would be of almost the same update. The difference between the two
    sums could be the vector of one site.

    Parameters
    ----------
    folder : Path
        Folder of this site; it is made if there is none.
    job : str
    number : int
        Number of the round.

    Raises
    ------
    RemoteProtocolError
        "repeated": this site has reported in this round.
    OSError
        The folder cannot be written.
    """
    name = hashlib.sha256(job.encode()).hexdigest()[:32]  # an id of a job may be no file's name
    rounds = folder / name
    rounds.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        os.close(os.open(rounds / str(number), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise RemoteProtocolError(
            f"this site has reported in round {number} of this job; submit another job",
            sender=None,
            phase="report",
            check="repeated",
        ) from None
    for path in (rounds, folder, folder.parent):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
