"""A transport of one's own with a bug in it, and the property test that finds it.

``Chunks`` cuts messages into packets, as a message queue with a size limit asks for. It counts
packets instead of looking at which they are, so a packet that the network brings twice makes a
message of the wrong pieces. No round on a good day shows that. ``MendedChunks`` looks.

    python examples/find_a_bug.py
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import Phase, given, settings

from secagg import testing

SIZE = 64
Ends = tuple[int | None, int | None]


class Chunks:
    """Packets of a message's number, their place in it, their count, and up to 64 bytes."""

    def __init__(self) -> None:
        self.sent = 0
        self.chunks: dict[tuple[Ends, int], list[bytes]] = {}

    def send(self, sender: int | None, receiver: int | None, data: bytes) -> list[bytes]:
        """Cut a message up."""
        pieces = [data[i : i + SIZE] for i in range(0, len(data), SIZE)]
        self.sent += 1
        head = self.sent.to_bytes(4, "little")
        return [head + bytes([i, len(pieces)]) + piece for i, piece in enumerate(pieces)]

    def deliver(self, sender: int | None, receiver: int | None, packet: bytes) -> list[bytes]:
        """Put a message together when its last packet comes."""
        number, count = int.from_bytes(packet[:4], "little"), packet[5]
        chunks = self.chunks.setdefault(((sender, receiver), number), [])
        chunks.append(packet)
        if len(chunks) < count:
            return []
        return [b"".join(chunk[6:] for chunk in sorted(chunks))]


class MendedChunks(Chunks):
    """The same, but a packet that has come already is not counted again."""

    def deliver(self, sender: int | None, receiver: int | None, packet: bytes) -> list[bytes]:
        """Put a message together when all its packets have come."""
        number = int.from_bytes(packet[:4], "little")
        if packet in self.chunks.get(((sender, receiver), number), []):
            return []
        return super().deliver(sender, receiver, packet)


def check(transport: Callable[[], testing.Transport]) -> str | None:
    """Run any rounds over any network; return the smallest case that fails, if one does."""

    @settings(
        max_examples=100,
        phases=[Phase.generate, Phase.shrink],
        deadline=None,
        database=None,
        derandomize=True,
    )
    @given(testing.rounds(), testing.schedules())
    def every_round_ends_well(round: testing.Round, schedule: testing.Schedule) -> None:
        testing.run_over(transport(), round, schedule)

    try:
        every_round_ends_well()
    except AssertionError as error:
        return "\n".join([str(error), *getattr(error, "__notes__", ())])
    return None


if __name__ == "__main__":
    print(f"Chunks: {check(Chunks)}")
    print(f"MendedChunks: {check(MendedChunks) or 'no bug found'}")
