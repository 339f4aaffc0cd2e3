"""Fuzz target of verdicts: the judge and a judge of the document alone name the same client.

The first byte selects the round of a registry, the rest is a verdict.
"""

from __future__ import annotations

from functools import cache

from blamed_round import CASES, IDS, POLICY, SignedRound, guilty
from independent_judge import judge
from independent_policy import Policy
from independent_primitives import ParameterError as OtherParameterError
from independent_primitives import ProtocolError
from secagg import ParameterError, Registry, RemoteProtocolError, blame

SUITES = "hybrid", "x25519"
CHECKS = {
    "version", "length", "kind", "parameters", "unknown client", "signature", "ids", "root",
    "leaf", "share", "count", "innocent",
}  # fmt: skip
"""All checks of the judge (docs/protocol.md, §14.2)."""


@cache
def registry(suite: str) -> Registry:
    """The clients of a round."""
    return SignedRound(suite, IDS[:4]).registry


def named(data: bytes, of: Registry) -> int | None:
    """The client that the judge names; None if nobody."""
    try:
        return blame.check(data, of, POLICY)
    except RemoteProtocolError as error:
        assert error.check in CHECKS
        assert (error.phase, error.sender) == ("verdict", None)
    except ParameterError:
        pass  # the policy rejects the parameters
    return None


def named_apart(data: bytes, of: Registry) -> int | None:
    """The client that the judge of the document alone names; None if nobody."""
    try:
        return judge(data, of, Policy(colluders=POLICY.colluders))[0]
    except (ProtocolError, OtherParameterError):
        return None


def verdicts(data: bytes) -> None:
    """Judge bytes twice."""
    if data:
        of = registry(SUITES[data[0] % len(SUITES)])
        assert named(data[1:], of) == named_apart(data[1:], of)


@cache
def verdict_seeds() -> list[bytes]:
    """A verdict of each kind and suite."""
    return [
        bytes([SUITES.index(suite)]) + guilty(SignedRound(suite, IDS[:4]), kind).data
        for suite, kind in CASES
    ]
