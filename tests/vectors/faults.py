"""Messages to reject (docs/protocol.md §8), with one fault in each."""

from kinds import but, tag_of
from whole_round import Round

from independent_messages import KINDS, Field

Cases = list[dict[str, object]]


class Faults:
    """Faults of the message of this phase that client u sends, or gets.

    A call appends a case to `out`: the message with these changes, or another message. `where`
    has what differs in the machine's state (`before`, `accepted`) or in the sender (`from`).
    """

    def __init__(self, out: Cases, side: str, r: Round, phase: str, u: int) -> None:
        self.out, self.good = out, r.message(side, phase, u)
        self.kind = KINDS[tag_of(self.good)][0]
        who: dict[str, object] = {"from": u, "accepted": []}
        if side == "client":
            who = {"client": u, "before": None}
        self.where = {"side": side, "round": r.name, "phase": phase, "kind": self.kind} | who

    def __call__(
        self,
        name: str,
        check: str,
        *,
        message: bytes | None = None,
        where: dict[str, object] | None = None,
        **changes: Field,
    ) -> None:
        self.out.append(self.where | (where or {}) | {
            "name": f"{self.kind}: {name}", "check": check, "error": "RemoteProtocolError",
            "bytes": but(self.good, **changes) if message is None else message,
        })  # fmt: skip

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
