"""Suite of the sums: the options, and the suite in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from secagg.cli.console import Document, flag
from secagg.cli.lines import fact
from secagg.errors import ParameterError
from secagg.kit.table import volume
from secagg.oneshot import OneShotParams
from secagg.protocol import RoundParams
from secagg.protocol.shape import smallest_bits
from secagg.protocol.suggestion import HYBRID_UP_TO, hybrid_bytes
from secagg.protocol.suites import SuiteName, as_suite

SuiteOption = Annotated[
    str | None,
    typer.Option(
        "--suite",
        metavar="hybrid|x25519",
        help="Key agreement: hybrid hides all vectors also from who records the messages and "
        "has a quantum computer later; x25519 has smaller messages.",
        show_default="hybrid, if its bytes stay below a vector's and the clients are at most "
        f"{HYBRID_UP_TO}",
    ),
]
RequireHybrid = Annotated[
    bool,
    flag("--require-hybrid", "Take part in no sum of the suite x25519; see --suite of serve."),
]


def as_chosen(name: str | None) -> SuiteName | None:
    """Return the suite of an option, or None for the default of the parameters."""
    return None if name is None else as_suite(name)


def as_served(params: RoundParams, chosen: SuiteName | None, bits: int | None) -> RoundParams:
    """Return parameters in the suite that `secagg serve` takes for them.

    Parameters
    ----------
    params : RoundParams
        Parameters with words of 32 bits, if `bits` is None.
    chosen : "hybrid", "x25519" or None
        Suite of the option.
    bits : int or None
        Bits of the option. None: a server takes as few as the sum needs, and their bytes
        decide the suite.
    """
    if bits is None:
        served = replace(params, modulus_bits=smallest_bits(params), suite=chosen)
        return replace(params, suite=served.suite)
    return params


def check_helpers(chosen: SuiteName | None, params: OneShotParams) -> None:
    """Raise `ParameterError` if an option asks for another suite than the helpers have."""
    if chosen not in (None, params.suite):
        raise ParameterError(
            f"--suite is {chosen}, and the helpers' keys are of {params.suite}; leave --suite "
            f"out, or make the keys with secagg helper keygen --suite {chosen}"
        )


def in_words(params: RoundParams | OneShotParams, chosen: SuiteName | None) -> str:
    """Return why a sum has its suite, in a few words; `chosen` is the suite of the option."""
    if isinstance(params, OneShotParams):
        return "of the helpers' keys"
    added = hybrid_bytes(params.holders)
    size = -(-params.elements * smallest_bits(params) // 8)
    if (added < size) != (params.suite == "hybrid"):
        size = params.ring.packed_bytes(params.elements)  # of given bits
    more, vector = volume(added), volume(size)
    if chosen is not None:
        return "as --suite asks"
    if params.suite == "hybrid":
        return f"which adds {more} to a vector of {vector}"
    if params.n_clients > HYBRID_UP_TO:
        return f"the default above {HYBRID_UP_TO} clients"
    return f"as hybrid would add {more} to a vector of {vector}"


def as_document(params: RoundParams | OneShotParams, chosen: SuiteName | None) -> Document:
    """Return the suite of a sum, and the reason, for JSON."""
    return {"suite": params.suite, "suite_why": in_words(params, chosen)}


def announce(params: RoundParams | OneShotParams, chosen: SuiteName | None) -> None:
    """Print the suite of a sum, and the reason."""
    fact(f"suite: {params.suite}, {in_words(params, chosen)}")
