"""What the server's stages have in common: reading, refusing, knowing the cohort."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import ClassVar, TypeVar

from msgspec import Struct

from secagg.errors import RemoteProtocolError, TooFewSurvivors
from secagg.protocol import Phase, RoundParams
from secagg.protocol.messages import (
    ConsistencySignature,
    MaskedInput,
    ShareKeys,
    UnmaskShares,
    decode,
)
from secagg.server.cohort import Cohort

__all__ = ["SessionStage", "Stage"]

M = TypeVar("M", bound=Struct)
FromClient = ShareKeys | MaskedInput | ConsistencySignature | UnmaskShares


class Stage:
    """What the stages have in common: reading a message and refusing one."""

    phase: ClassVar[Phase]

    def __init__(self, params: RoundParams) -> None:
        self.params = params

    def read(self, u: int, data: bytes, kind: type[M]) -> M:
        """Decode a message of client u, or refuse it."""
        return decode(data, kind, self.params, sender=u, phase=self.phase)

    def require(self, condition: bool, u: int, check: str, why: str) -> None:
        """Refuse a message of client u unless the condition holds."""
        if not condition:
            raise RemoteProtocolError(why, sender=u, phase=self.phase, check=check)

    def enough(self, survivors: int, needed: int, who: str) -> None:
        """Give up the round if there are fewer survivors than needed."""
        if survivors < needed:
            raise TooFewSurvivors(
                f"{survivors} {who} and it takes {needed}; nothing has been unmasked",
                phase=self.phase,
                survivors=survivors,
                needed=needed,
            )


class SessionStage(Stage):
    """A stage after round 0: it knows the cohort and whose messages it expects."""

    def __init__(self, cohort: Cohort, expected: Iterable[int]) -> None:
        super().__init__(cohort.params)
        self.cohort = cohort
        self.expected = frozenset(expected)

    def check_origin(self, u: int, message: FromClient) -> None:
        """Refuse a message that names another sender or session."""
        self.require(message.sender == u, u, "sender", f"it names client {message.sender}")
        same = message.session == self.cohort.session
        self.require(same, u, "session", "a message of another session")

    def seen_by(self, u: int, clients: Container[int]) -> list[int]:
        """Return those of `clients` that are u's holders, ascending."""
        return [v for v in self.cohort.graph.holders[u] if v in clients]

    def is_enough_for(self, u: int, clients: Container[int]) -> bool:
        """Tell whether client u sees enough of `clients` to accept the next message."""
        return len(self.seen_by(u, clients)) >= self.params.min_survivors
