"""Clients that a session leaves out of the next attempt at a round."""

from __future__ import annotations

from collections.abc import Iterable

from secagg.errors import RemoteProtocolError, TooFewSurvivors, Verdict
from secagg.graph.matching import maximum_matching
from secagg.protocol import RoundParams


def convicted(verdicts: Iterable[Verdict]) -> set[int]:
    """Return the clients that verdicts name."""
    return {verdict.client for verdict in verdicts}


def at_fault(error: TooFewSurvivors | RemoteProtocolError, params: RoundParams) -> set[int]:
    """Return the clients that the error of an attempt shows to be at fault.

    These are the clients that verdicts name and the sender of a wrong message. In the
    semi-honest variant dealers in disputes follow, of whom any may be honest.

    Parameters
    ----------
    error : TooFewSurvivors or RemoteProtocolError
    params : RoundParams
        Parameters of the attempt.
    """
    found = convicted(error.verdicts)
    if isinstance(error, TooFewSurvivors):
        return found
    if error.sender is not None:
        found.add(error.sender)
    if not params.active:
        found |= {dispute.dealer for dispute in error.disputes}
    return found


def in_doubt(error: TooFewSurvivors | RemoteProtocolError, guilty: set[int]) -> set[int]:
    """Return both ends of disjoint complaints, if complaints can explain the error.

    They can after the check "dealer" of an active round, and after too few survivors: who deals
    bad boxes, or complains of good ones, may then drop out.

    The dealer or the holder of a complaint lies, and nobody knows which of them. Each pair of a
    largest set of disjoint complaints has another liar. So if all of these clients stay away,
    no more honest clients do than there are liars.

    Parameters
    ----------
    error : TooFewSurvivors or RemoteProtocolError
    guilty : set of int
        Clients at fault, whose lies explain their complaints and the complaints about them.
    """
    if isinstance(error, RemoteProtocolError) and error.check != "dealer":
        return set()
    undecided = (pair for pair in error.disputes if guilty.isdisjoint(pair))
    return {end for pair in maximum_matching(undecided) for end in pair}
