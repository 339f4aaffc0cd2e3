"""System for one-shot sums: a whole batch, with every helper in a separate process."""

from __future__ import annotations

import statistics
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from secagg.bench import cases
from secagg.bench.cases import ENCODING, F64, Case, Figure, Load, Row, System, Vectors
from secagg.bench.roles import Role
from secagg.bench.ss import ALONE, DROPOUT, SUITE, Progress
from secagg.oneshot import Accumulator, Helper, HelperJournal, OneShotParams, report

HELPERS, ENOUGH = 3, 2

ONE_SHOT = System(
    name="one-shot",
    label=f"One-shot, {ENOUGH} of {HELPERS}",
    family="one-shot",
    messages=1,
    dropouts=f"{DROPOUT:.0%} never report; {ENOUGH} helpers must be there",
    decrypts=f"{ENOUGH} helpers with the server, which sees the sum",
)


class Reporters:
    """Clients of a batch, in one process; ``vector(u)`` makes the vector of client u."""

    def __init__(self, params: OneShotParams, vector: Vectors) -> None:
        self._params, self._vector = params, vector
        self._drawn: F64

    def draw(self, u: int) -> None:
        """Make client u's vector before the measured step."""
        self._drawn = self._vector(u)

    def report(self, u: int) -> bytes:
        """Return client u's report."""
        return report(self._drawn, self._params, u)


def boxes(total: Accumulator, helper: int) -> list[bytes]:
    """Return the chunks of boxes for a helper."""
    return list(total.boxes(helper))


class Opener:
    """Helper with a new journal in a file."""

    def __init__(self, path: Path) -> None:
        self._journal = HelperJournal.create(path, SUITE)
        self._helper: Helper

    def begin(self) -> tuple[bytes, bytes]:
        """Return the helper's public keys."""
        return self._journal.public

    def load(self, params: OneShotParams) -> None:
        """Take the parameters of the session."""
        self._helper = Helper(params, self._journal)

    def check(self, boxes: bytes) -> tuple[int, ...]:
        """Check a chunk of boxes."""
        return self._helper.check(boxes)

    def open(self, request: bytes) -> bytes:
        """Return the answer to a request."""
        return self._helper.open(request)


def parameters(case: Case, keys: list[tuple[bytes, bytes]]) -> OneShotParams:
    """Return the parameters of a case for helpers with these keys."""
    found = OneShotParams.suggest(
        case.clients,
        case.length,
        ENCODING,
        helpers=keys,
        security="semi-honest",
        dropout=DROPOUT,
        threshold=ENOUGH,
        session=b"secagg bench",
    )
    return replace(found, modulus_bits=None)  # 32 bits need no packing


def measure(case: Case, progress: Progress) -> Row:
    """Run a batch of a case, check the sum and return the costs; see `parameters`."""
    gone = cases.leaving(case.clients, DROPOUT)
    ids = [u for u in range(case.clients) if u not in gone]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        openers = [
            stack.enter_context(Role(f"helper {j}", partial(Opener, folder / f"helper {j}")))
            for j in range(1, HELPERS + 1)
        ]
        params = parameters(case, [one.do(Opener.begin).result for one in openers])
        held = sum(one.do(Opener.load, params).seconds for one in openers)
        server = stack.enter_context(Role("server", partial(Accumulator, params)))
        # a process for a single client, so that its memory is the memory of one client
        alone, crowd = (
            stack.enter_context(Role(name, partial(Reporters, params, case.vector)))
            for name in ("client", "clients")
        )
        central, seconds, into, out = 0.0, [], 0, 0
        for done, u in enumerate(ids, start=1):
            party = alone if u == ALONE else crowd
            party.do(Reporters.draw, u)
            sent = party.do(Reporters.report, u)
            seconds.append(sent.seconds)
            central += server.do(Accumulator.add, sent.result).seconds
            progress("report", done, len(ids))
        for j, one in enumerate(openers, start=1):
            chunks = server.do(boxes, j)
            central += chunks.seconds
            for chunk in chunks.result:
                held += one.do(Opener.check, chunk).seconds
                into += len(chunk)
        request = server.do(Accumulator.request)
        answers = [one.do(Opener.open, request.result) for one in openers]
        result = server.do(Accumulator.result, [answer.result for answer in answers])
        central += request.seconds + result.seconds
        held += sum(answer.seconds for answer in answers)
        into += HELPERS * len(request.result)
        out += sum(len(answer.result) for answer in answers)
        memory = alone.memory, server.memory, max(one.memory for one in openers)
    cases.check_sum(result.result.integers, result.result.survivors, case.vector)
    return Row(
        system=ONE_SHOT,
        case=case,
        setting=f"{SUITE}, semi-honest, {len(gone)} never report, helpers together",
        clients_run=case.clients,
        client=Load(Figure(statistics.median(seconds)), memory[0]),
        server=Load(Figure(central), memory[1]),
        holder=Load(Figure(held), memory[2]),
        bytes_up=Figure(params.layout.report),
        bytes_down=Figure(0),
        holder_bytes_in=Figure(into),
        holder_bytes_out=Figure(out),
    )
