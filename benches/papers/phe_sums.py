"""What FedMF's sums take where every float is a ciphertext of phe: a sample, and its scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate.stopwatch import Stopwatch
from fedmf.errors import MissingExtra

__all__ = ["PheSample", "measure_phe"]


@dataclass(frozen=True, kw_only=True)
class PheSample:
    """What was measured of phe, in seconds and bytes per float.

    Attributes
    ----------
    users, floats
        How many vectors were summed, and of how many floats.
    encrypting, adding, decrypting
        What a float takes the user, the server for each user after the first, and the key
        holder.
    bytes_up
        What a float weighs.
    error
        The largest difference between a sum that phe gave and that of the floats.
    """

    users: int
    floats: int
    encrypting: float
    adding: float
    decrypting: float
    bytes_up: float
    error: float


def measure_phe(vectors: Sequence[NDArray[np.float64]], bits: int) -> PheSample:
    """Sum vectors under a key holder's key, as FedMF was first secured.

    Parameters
    ----------
    vectors
        At least two, of one shape (d,).
    bits
        Of the key, which phe makes.

    Raises
    ------
    MissingExtra
        If phe is not installed.
    """
    try:
        from secagg.bench import peers
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != "phe":
            raise
        raise MissingExtra(
            "measuring phe needs phe: pip install 'secagg[bench]', or leave it out "
            "(--no-phe, with_phe=False)"
        ) from None
    public, private = peers.generate(bits)
    user, server = peers.FloatParty(public), peers.FloatParty(public)
    holder = peers.FloatHolder(public, private)
    length = vectors[0].size
    encrypting, adding, decrypting = Stopwatch(), Stopwatch(), Stopwatch()
    sent = 0
    for number, vector in enumerate(vectors):
        with encrypting.running():
            message = user.encrypt(vector)
        sent += len(message)
        with adding.running(for_each_of=min(number, 1)):  # the first is only kept
            server.add(message, length)
    with decrypting.running():
        total = holder.decrypt(server.total(), length)
    return PheSample(
        users=len(vectors),
        floats=length,
        encrypting=encrypting.seconds / (len(vectors) * length),
        adding=adding.seconds / ((len(vectors) - 1) * length),
        decrypting=decrypting.seconds / length,
        bytes_up=sent / (len(vectors) * length),
        error=float(np.abs(total.sum - np.add.reduce(vectors)).max()),
    )
