"""What `secagg.graph.recommend` returns: a pair, with what the pair achieves."""

from __future__ import annotations

from typing import Self

__all__ = ["Recommendation"]


class Recommendation(tuple[int | None, int]):
    """The neighbours k and the threshold t to take: the pair ``k, t``, and what it achieves.

    Attributes
    ----------
    neighbours : int or None
        k, even. None: the complete graph, where the cohort is too small for less.
    threshold : int
        t, the smallest that is private.
    highest_threshold : int
        Any threshold from `threshold` to this one keeps both promises; a higher one withstands
        more colluding clients and fewer dropouts.
    privacy_bits : float
        −log2 of the probability, over the graph, that a client is exposed; infinite where it
        cannot happen.
    completion_bits : float
        −log2 of the probability that dropouts leave some client's secret beyond recovery.
    """

    highest_threshold: int
    privacy_bits: float
    completion_bits: float

    # a tuple, so that type checkers know that in `k, t = …` only k can be None
    def __new__(
        cls,
        neighbours: int | None,
        threshold: int,
        highest_threshold: int,
        privacy_bits: float,
        completion_bits: float,
    ) -> Self:
        """Make the pair, and keep beside it what it achieves."""
        self = super().__new__(cls, (neighbours, threshold))
        vars(self).update(
            highest_threshold=highest_threshold,
            privacy_bits=privacy_bits,
            completion_bits=completion_bits,
        )
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} cannot be set: recommendations are remembered and shared")

    def __getnewargs__(self) -> tuple[int | None, int, int, float, float]:
        return *self, self.highest_threshold, self.privacy_bits, self.completion_bits

    def __repr__(self) -> str:
        shown = {"neighbours": self[0], "threshold": self[1], **vars(self)}
        return f"Recommendation({', '.join(f'{name}={x}' for name, x in shown.items())})"

    @property
    def neighbours(self) -> int | None:
        """k, even, or None for the complete graph."""
        return self[0]

    @property
    def threshold(self) -> int:
        """t, the smallest that is private."""
        return self[1]
