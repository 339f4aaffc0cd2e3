"""Custom transport with a bug, and the property test that finds it.

``Chunks`` cuts messages into packets, for example for a message queue with a size limit. It
counts packets without checking their places, so a repeated packet gives a message of the wrong
pieces. Rounds without network faults do not show the bug. ``MendedChunks`` fixes it.

    python examples/find_a_bug.py
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import Phase, given, settings

from secagg import testing

SIZE = 64
Ends = tuple[int | None, int | None]


class Chunks:
    """Packets with message number, place in the message, packet count and up to 64 bytes."""

    def __init__(self) -> None:
        self.sent = 0
        self.chunks: dict[tuple[Ends, int], list[bytes]] = {}

    def send(self, sender: int | None, receiver: int | None, data: bytes) -> list[bytes]:
        """Cut a message into packets."""
        pieces = [data[i : i + SIZE] for i in range(0, len(data), SIZE)]
        self.sent += 1
        head = self.sent.to_bytes(4, "little")
        return [head + bytes([i, len(pieces)]) + piece for i, piece in enumerate(pieces)]

    def deliver(self, sender: int | None, receiver: int | None, packet: bytes) -> list[bytes]:
        """Join the packets once their number is complete; counting repeats is the bug."""
        number, count = int.from_bytes(packet[:4], "little"), packet[5]
        chunks = self.chunks.setdefault(((sender, receiver), number), [])
        chunks.append(packet)
        if len(chunks) < count:
            return []
        return [b"".join(chunk[6:] for chunk in sorted(chunks))]


class MendedChunks(Chunks):
    """The same transport, but a repeated packet is not counted again."""

    def deliver(self, sender: int | None, receiver: int | None, packet: bytes) -> list[bytes]:
        """Join the packets of a message once all of them have arrived."""
        number = int.from_bytes(packet[:4], "little")
        if packet in self.chunks.get(((sender, receiver), number), []):
            return []
        return super().deliver(sender, receiver, packet)


def check(transport: Callable[[], testing.Transport]) -> str | None:
    """Run random rounds over random networks; return the smallest failing case, or None."""

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
