"""Clients that a session leaves out of the next attempt at a round."""

from __future__ import annotations

from secagg.errors import RemoteProtocolError, TooFewSurvivors
from secagg.graph.matching import maximum_matching
from secagg.protocol import RoundParams


def to_leave_out(error: TooFewSurvivors | RemoteProtocolError, params: RoundParams) -> set[int]:
    """Return the clients that have to stay away after the error of an attempt.

    These are the clients that verdicts name, and the sender of a wrong message. In the
    semi-honest variant dealers in disputes follow. After the check "dealer" of the active
    variant, of each complaint the dealer or the holder lies, and nobody knows which of them. So
    both ends of a largest set of disjoint complaints stay away. Each of these pairs has another
    liar, so no more honest clients are lost than there are liars, in all attempts together.

    Parameters
    ----------
    error : TooFewSurvivors or RemoteProtocolError
    params : RoundParams
        Parameters of the attempt.
    """
    found = {verdict.client for verdict in error.verdicts}
    if isinstance(error, TooFewSurvivors):
        return found
    if error.sender is not None:
        found.add(error.sender)
    if not params.active:
        return found | {dispute.dealer for dispute in error.disputes}
    if error.check == "dealer":
        # the liars that are known already explain their complaints
        undecided = (pair for pair in error.disputes if found.isdisjoint(pair))
        for pair in maximum_matching(undecided):
            found |= {*pair}
    return found
