"""Figures of a comparison as tables, as data for JSON, and beside their targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from statistics import median

from benches.flower_rounds.measure import Round, Settings
from benches.flower_rounds.variants import VARIANTS
from secagg.kit.table import Column, Strong, Table, volume
from secagg.kit.timing import machine

PLAIN, OTHERS = "plain", "secaggplus"
"""Variants that all others are compared with."""


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s"


def _two(ratio: float) -> str:
    return f"{ratio:.2f}"


@dataclass(frozen=True)
class Target:
    """Largest ratio of a variant's median to another's, `most`."""

    variant: str
    other: str
    what: str
    most: float


TARGETS = (
    Target("oneshot", PLAIN, "seconds", 1.15),
    Target("secagg", OTHERS, "seconds", 1.0),
    Target("secagg", OTHERS, "up", 0.6),
)
COLUMNS = (
    Column("variant"),
    Column("a round", _seconds),
    Column("least", _seconds),
    Column("most", _seconds),
    Column("n"),
    Column("÷ plain", _two),
    Column("÷ SecAgg+", _two),
    Column("exchanges"),
    Column("a node sends", volume),
    Column("÷ SecAgg+", _two),
    Column("it receives", volume),
    Column("processor", _seconds),
    Column("÷ plain", _two),
    Column("error", lambda error: f"{error:.1g}"),
    Column("load", lambda load: f"{load:.1f}"),
)


def facts() -> dict[str, str]:
    """Return the machine and the versions of what was measured."""
    return machine() | {"flwr": version("flwr")}


def values(rounds: Sequence[Round], variant: str, length: int, what: str) -> list[float]:
    """Return a figure of all rounds of a variant and a length, by its name in `Round`."""
    chosen = (one for one in rounds if (one.variant, one.length) == (variant, length))
    return [float(getattr(one, what)) for one in chosen]


def ratio(
    rounds: Sequence[Round], variant: str, other: str, length: int, what: str
) -> float | None:
    """Return a variant's median ÷ another's, or None if one of them was not measured."""
    above, below = (values(rounds, name, length, what) for name in (variant, other))
    return median(above) / median(below) if above and below else None


def lengths(rounds: Sequence[Round]) -> list[int]:
    """Return the lengths that were measured, ascending."""
    return sorted({one.length for one in rounds})


def table(rounds: Sequence[Round], length: int) -> Table:
    """Return the table of a length, with a line for each variant that was measured."""
    lines = []
    for name, variant in VARIANTS.items():

        def of(what: str, name: str = name) -> list[float]:
            return values(rounds, name, length, what)

        def against(other: str, what: str, name: str = name) -> float | None:
            return ratio(rounds, name, other, length, what)

        seconds = of("seconds")
        if seconds:
            lines.append(
                [
                    variant.label,
                    *(median(seconds), min(seconds), max(seconds), len(seconds)),
                    *(against(PLAIN, "seconds"), against(OTHERS, "seconds")),
                    *(median(of("exchanges")), median(of("up")), against(OTHERS, "up")),
                    *(median(of("down")), median(of("processor"))),
                    *(against(PLAIN, "processor"), max(of("error")), median(of("load"))),
                ]
            )
    return Table(columns=COLUMNS, rows=lines)


def target_table(rounds: Sequence[Round]) -> Table:
    """Return a line per target and length, with the ratio that was measured."""
    lines: list[list[str | float | Strong | None]] = []
    for target in TARGETS:
        for length in lengths(rounds):
            found = ratio(rounds, target.variant, target.other, length, target.what)
            if found is not None:
                name, other = VARIANTS[target.variant].label, VARIANTS[target.other].label
                met = "met" if found <= target.most else Strong("missed")
                what = {"seconds": "seconds of a round", "up": "bytes that a node sends"}
                head = f"{what[target.what]}: {name} ÷ {other}"
                lines.append([head, length, found, target.most, met])
    columns = (
        *(Column("target"), Column("d"), Column("measured", _two), Column("at most", _two)),
        Column("", left=True),
    )
    return Table(columns=columns, rows=lines)


def notes(settings: Settings) -> Iterator[str]:
    """Yield the notes that explain the figures."""
    yield (
        f"SuperNodes: {settings.nodes}. Runs of each variant, in turn: {settings.runs}. Rounds "
        f"of a run, without evaluation: {settings.rounds}. A round: the median of all."
    )
    yield (
        "Bytes: protobufs of the messages of a round to and from a node, counted in the "
        "ServerApp, without the transport's own and those of helpers."
    )
    yield (
        "Processor: processor time of a run ÷ its rounds, of all processes of the network, the "
        "start of the ServerApp included."
    )
    yield (
        f"`SecAgg` and `OneShot` look for replies every {settings.poll:g} s, and Flower's own "
        "loop, for the other two, every 3 s. "
        "Error: the largest of an element of a model."
    )
    yield ", ".join(f"{name} {value}" for name, value in facts().items()) + "."


def document(settings: Settings, rounds: Sequence[Round]) -> dict[str, object]:
    """Return all figures as data."""
    return {"machine": facts(), "settings": asdict(settings), "rounds": list(rounds)}
