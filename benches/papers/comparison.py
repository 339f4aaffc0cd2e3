"""What an experiment with encryption found, as a table and as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from benches.papers.phe_sums import PheSample
from secagg.bench.table import NONE, duration, volume
from secagg.bench.timing import machine

__all__ = ["Comparison", "Cost"]

HEADS = ("", "a user", "server", "key holder", "everybody", "a user sends")


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What an iteration takes on average, in seconds and bytes.

    Attributes
    ----------
    how
        What was run.
    user, server, key_holder
        By role: one user, the server, the key holder.
    everybody
        All users, the server and the key holder, one after the other.
    bytes_up
        What a user sends; None where it was not counted.
    scaled
        Whether a sample was measured, and scaled up.
    """

    how: str
    user: float
    server: float
    key_holder: float
    everybody: float
    bytes_up: float | None = None
    scaled: bool = False


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A training under encryption beside the same in the clear.

    Attributes
    ----------
    data
        What was trained on.
    users, items, factors, rounds, bits
        The size of it, and of the key.
    rmse_plain, rmse_encrypted
        On the test ratings, after the last round.
    same_integers
        Whether all sums, or all item matrices, were the same integers.
    refreshes
        How often the item matrix was encrypted anew; None where none is encrypted.
    costs
        One for each way it was run.
    phe
        The sample that phe's cost was scaled up from, if there was one.
    """

    data: str
    users: int
    items: int
    factors: int
    rounds: int
    bits: int
    rmse_plain: float
    rmse_encrypted: float
    same_integers: bool
    refreshes: int | None = None
    costs: tuple[Cost, ...]
    phe: PheSample | None = None

    @property
    def difference(self) -> float:
        """By how much encryption changed the error."""
        return abs(self.rmse_encrypted - self.rmse_plain)

    def document(self) -> dict[str, object]:
        """Return all of it, and what it was measured on, for ``json.dumps``."""
        return asdict(self) | {"difference": self.difference, "machine": machine()}

    def table(self) -> str:
        """Return it as lines for people."""
        used = machine()
        anew = "" if self.refreshes is None else f", encrypted anew {self.refreshes}×"
        same = "the same" if self.same_integers else "DIFFERENT"
        rows = [HEADS, *(_cells(cost) for cost in self.costs)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            f"{self.data}: {self.users} users, {self.items} items, k = {self.factors}, "
            f"{self.rounds} iterations{anew}",
            f"test RMSE in the clear {self.rmse_plain:.12f}, encrypted "
            f"{self.rmse_encrypted:.12f}, difference {self.difference:.1e}; the integers are "
            f"{same}",
            "",
            *("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows),
            "",
            f"all of it per iteration; {used['cpu']}, {used['gmp']}, kernels {used['tier']}",
        ]
        if self.phe is not None:
            lines.append(
                f"~ scaled from a sum of {self.phe.floats} floats each of {self.phe.users} "
                f"users, which was right to {self.phe.error:.0e}"
            )
        return "\n".join(lines)


def _cells(cost: Cost) -> tuple[str, ...]:
    mark = "~" if cost.scaled else ""
    times = (cost.user, cost.server, cost.key_holder, cost.everybody)
    return (
        cost.how,
        *(mark + duration(time) if time else NONE for time in times),
        NONE if cost.bytes_up is None else mark + volume(cost.bytes_up),
    )
