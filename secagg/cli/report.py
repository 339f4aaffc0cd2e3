"""What the command ``secagg`` shows: a table for people, one JSON document for programs."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from secagg.cli.estimate import Seconds
from secagg.graph import Recommendation
from secagg.graph.assumptions import Adversary
from secagg.protocol import Phase, RoundParams
from secagg.protocol.traffic import Traffic
from secagg.simulate import SimulatedRound

__all__ = ["Document", "params_document", "print_params", "print_trial", "trial_document"]

Document = dict[str, object]


def params_document(
    found: Recommendation,
    params: RoundParams,
    traffic: dict[Phase, Traffic],
    seconds: Seconds,
) -> Document:
    """Return a recommendation and its costs as plain values; null stands for infinite bits."""
    return {
        **_shape(params),
        "highest_threshold": found.highest_threshold,
        "privacy_bits": _finite(found.privacy_bits),
        "completion_bits": _finite(found.completion_bits),
        "bytes_up": sum(phase.up for phase in traffic.values()),
        "bytes_down": sum(phase.down for phase in traffic.values()),
        "phases": {
            str(phase): {"bytes_up": each.up, "bytes_down": each.down}
            for phase, each in traffic.items()
        },
        "client_seconds": seconds.client,
        "server_seconds": seconds.server,
    }


def print_params(
    found: Recommendation,
    params: RoundParams,
    traffic: dict[Phase, Traffic],
    seconds: Seconds,
    server: Adversary,
) -> None:
    """Print a recommendation and its costs."""
    event = "a client is exposed"
    if server == "semi-malicious":
        event = "both secrets of one client are rebuilt"
    best = (
        "" if found.highest_threshold == found.threshold else f" to {found.highest_threshold}"
    )
    _print(
        ("neighbours k", _neighbours(params)),
        ("threshold t", f"{found.threshold}{best}"),
        ("privacy", _chance(event, found.privacy_bits)),
        *_caveat(server),
        ("completion", _chance("dropouts end the round", found.completion_bits)),
        ("modulus", str(params.ring)),
        ("a client sends", _size(sum(phase.up for phase in traffic.values()))),
        ("a client receives", _size(sum(phase.down for phase in traffic.values()))),
        ("a client's time", _time(seconds.client)),
        ("the server's time", _time(seconds.server)),
    )


def trial_document(result: SimulatedRound, params: RoundParams, memory: int) -> Document:
    """Return a simulated round as plain values; bytes and seconds are a client's mean."""
    n = params.n_clients
    return {
        **_shape(params),
        "survivors": len(result.survivors),
        "exact": True,
        "bytes_up": sum(result.bytes_up.values()) / n,
        "bytes_down": sum(result.bytes_down.values()) / n,
        "client_seconds": result.client_seconds / n,
        "server_seconds": result.server_seconds,
        "peak_memory": memory,
    }


def print_trial(result: SimulatedRound, params: RoundParams, memory: int) -> None:
    """Print a simulated round and its costs."""
    n = params.n_clients
    _print(
        ("sum", f"exact, of {len(result.survivors)} of {n} vectors"),
        ("neighbours k", _neighbours(params)),
        ("threshold t", str(params.threshold)),
        ("modulus", str(params.ring)),
        ("a client sends", _size(sum(result.bytes_up.values()) / n)),
        ("a client receives", _size(sum(result.bytes_down.values()) / n)),
        ("a client's time", _time(result.client_seconds / n)),
        ("the server's time", _time(result.server_seconds)),
        ("peak memory", f"{_size(memory)}, all in one process"),
    )


def _shape(params: RoundParams) -> Document:
    return {
        "clients": params.n_clients,
        "neighbours": params.neighbours,
        "threshold": params.threshold,
        "length": params.length,
        "modulus_bits": params.ring.bits,
    }


def _print(*rows: tuple[str, str]) -> None:
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    for row in rows:
        table.add_row(*row)
    Console(highlight=False).print(table)


def _neighbours(params: RoundParams) -> str:
    return "all others" if params.neighbours is None else str(params.neighbours)


def _finite(bits: float) -> float | None:
    return None if bits == float("inf") else bits


def _chance(event: str, bits: float) -> str:
    return f"{event}: " + ("never" if _finite(bits) is None else f"at most 2^-{bits:.1f}")


def _caveat(server: Adversary) -> list[tuple[str, str]]:
    if server == "semi-honest":
        return []
    return [("", "not counted: dropouts that such a server invents")]


def _size(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def _time(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"
