"""Entropy of the vectors: bytes that follow from a label."""

from collections.abc import Iterable

from independent_primitives import Source, sha256, u64le


def draw(label: str, count: int) -> bytes:
    """SHA-256 in counter mode over a label."""
    blocks = (sha256(label.encode(), u64le(i)) for i in range(-(-count // 32)))
    return b"".join(blocks)[:count]


def given(draws: Iterable[bytes]) -> Source:
    """A source of these draws, in their order."""
    left = list(draws)

    def source(size: int) -> bytes:
        assert len(left[0]) == size
        return left.pop(0)

    return source
