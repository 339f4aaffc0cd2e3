"""Messages to reject (docs/protocol.md §8), with one fault in each."""

from collections.abc import Iterable

from kinds import but, tag_of
from parties import Round

from independent_messages import KINDS, Field

Cases = list[dict[str, object]]


class Faults:
    """Faults of the message of this phase that client u sends, or gets.

    A call appends a case to `out`: the message with these changes, or another one. `before` is
    what the client is sent earlier instead of the round's own messages.
    """

    def __init__(
        self, out: list[dict[str, object]], side: str, r: Round, phase: str, u: int
    ) -> None:
        self.out, self.side, self.r, self.u = out, side, r, u
        self.good = r.message(side, phase, u)

    def __call__(
        self,
        name: str,
        check: str,
        *,
        message: bytes = b"",
        u: int | None = None,
        accepted: Iterable[int] = (),
        before: list[bytes] | None = None,
        **changes: Field,
    ) -> None:
        message = message or but(self.good, **changes)
        kind, phase, _ = KINDS[tag_of(message)]
        u = self.u if u is None else u
        who = {"from": u, "accepted": [*accepted]}
        if self.side == "client":
            who = {"client": u, "before": before}
        self.out.append({
            "side": self.side, "round": self.r.name, "phase": phase, "kind": kind,
            "name": f"{kind}: {name}", "bytes": message, "error": "RemoteProtocolError",
            "check": check,
        } | who)  # fmt: skip

    def each(self, check: str, field: str, values: dict[str, bytes]) -> None:
        """One case by its name for each value of a field."""
        for name, value in values.items():
            self(name, check, **{field: value})


def flip(value: bytes, at: int = 0, bit: int = 0) -> bytes:
    """The bytes with one bit changed."""
    at %= len(value)
    return value[:at] + bytes([value[at] ^ 1 << bit]) + value[at + 1 :]


def at_word(shares: bytes, place: int, value: int) -> bytes:
    """The bytes with another u64le in this place."""
    return shares[: 8 * place] + value.to_bytes(8, "little") + shares[8 * place + 8 :]
