"""Nodes that drop out of a sum, in the log of the server and in the error of the sum.

The events of a session have neither a node's reason nor the class of its error.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from flwr.app import Error

from secagg._printable import printable
from secagg.errors import ParameterError, RemoteProtocolError, TooFewSurvivors
from secagg.flower.wire import ERROR, NO_PROTOCOL, RAISED, REFUSED
from secagg.session.outcomes import reason

logger = logging.getLogger("flwr.secagg")

_LONGEST = 64
"""Most characters of a class's name in the error of a sum; a node chooses that name."""
_FOREIGN = "without the protocol"


class Dropouts:
    """Nodes that have dropped out of a sum; each node is logged, and counted by the error."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def __str__(self) -> str:
        return ", ".join(f"{count:,} {how}" for how, count in self._counts.items())

    @property
    def hint(self) -> str:
        """Advice for the case that nodes rejected parameters, or an empty text."""
        if f"with {ParameterError.__name__}" not in self._counts:
            return ""
        return (
            "; with ParameterError: other bounds than at its first sum, or its policy, such as "
            "a min_clients above that of the sum"
        )

    def add(self, node: int, why: str, how: str) -> None:
        """Count a node; `why` is for the log, and `how` is the kind of the error, in words."""
        # `why` can be the text of a node, which could forge lines of the log
        logger.warning("secagg: node %d drops out: %s", node, printable(why))
        self._counts[how] += 1

    def add_error(self, node: int, error: Error) -> None:
        """Count a node that replied, or for which the SuperLink replied, with an error."""
        text = error.reason or ""
        name = text.removeprefix(ERROR)
        if error.code not in (RAISED, REFUSED):  # of Flower itself, such as a lost node
            self.add(node, text, f"with Flower's error {error.code}")
        elif name == text:
            self.add(node, f"{text}; {NO_PROTOCOL}", _FOREIGN)
        # the error of the sum repeats a name at most: a node could write anything else there
        elif error.code == RAISED and name.isidentifier() and len(name) <= _LONGEST:
            self.add(node, text, f"with {name}")
        else:
            self.add(node, text, "with a refusal")

    def add_invalid(self, node: int, error: RemoteProtocolError) -> None:
        """Count a node whose reply failed a check."""
        how = _FOREIGN if error.check == "record" else "with an invalid reply"
        self.add(node, str(error), how)


@contextmanager
def dropouts(fewest: str) -> Iterator[Dropouts]:
    """Yield the record of a sum's dropouts; a `TooFewSurvivors` of the block gets the record.

    `fewest` is the strategy's argument for the number of nodes that must stay.
    """
    lost = Dropouts()
    try:
        yield lost
    except TooFewSurvivors as error:
        why = reason(error)
        if lost.hint:  # neither time nor more nodes help against a refusal
            why = why.partition("; ")[0]
        if str(lost):
            why = (
                f"nodes dropped out ({lost}; the reason for an error is in the node's own log"
                f"{lost.hint}), and {why}"
            )
        raise TooFewSurvivors(
            f"{why}; {fewest} of the strategy says how many must stay, and with "
            'on_failure="skip" the run goes on without this round',
            phase=error.phase,
            survivors=error.survivors,
            needed=error.needed,
        ) from None
