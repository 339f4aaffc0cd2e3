"""One-shot sums simulated in one process, with absent clients and a report of the costs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast

from secagg._check import check_integer, check_kind
from secagg._secrets import without_frames
from secagg.encoding import Entropy, Vector
from secagg.encoding.clipping import is_lost, warn_of_losses
from secagg.errors import ParameterError
from secagg.oneshot import (
    Accumulator,
    Helper,
    HelperJournal,
    OneShotParams,
    OneShotPolicy,
    OneShotResult,
)
from secagg.oneshot.client import write_report
from secagg.oneshot.params import MAX_HELPERS
from secagg.protocol import Identity, Registry
from secagg.protocol.client_ids import ByClient, ClientKey, Names
from secagg.protocol.suites import SuiteName
from secagg.simulate.inputs import keys_of, timed, weights_of

T = TypeVar("T")

HELD = 1 << 26  # bytes of the reports that wait for the helpers


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SimulatedOneShot(OneShotResult):
    """Result and costs of a simulated one-shot sum; see `OneShotResult` for the sum.

    Attributes
    ----------
    clipped : int
        Number of clipped elements in the vectors of all clients that reported.
    client_seconds, server_seconds : float
        Seconds that all clients together took, and seconds that the aggregator took.
    helper_seconds : dict of int to float
        Seconds of each helper that took part, by the helper's number.
    report_bytes : int
        Bytes of a report, the only message of a client.
    helper_bytes_in, helper_bytes_out : dict of int to int
        Bytes that each helper received, and bytes that each helper sent.
    """

    clipped: int
    client_seconds: float
    server_seconds: float
    helper_seconds: Mapping[int, float] = field(repr=False)
    report_bytes: int
    helper_bytes_in: Mapping[int, int] = field(repr=False)
    helper_bytes_out: Mapping[int, int] = field(repr=False)


@contextmanager
def temporary_journals(
    helpers: int, suite: SuiteName = "hybrid"
) -> Iterator[list[HelperJournal]]:
    """Yield journals of new helpers, in a folder that is deleted at the end of the block.

    Parameters
    ----------
    helpers : int
        Number of helpers, 1 to 16.
    suite : "hybrid" or "x25519"
        ``OneShotParams.suite`` of the helpers' sessions.

    Raises
    ------
    ParameterError
        An argument is invalid.
    MissingExtra
        The installed cryptography lacks the suite.
    """
    check_integer("helpers", helpers, 1, MAX_HELPERS)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        yield [
            stack.enter_context(HelperJournal.create(Path(folder) / f"helper {j}", suite))
            for j in range(1, helpers + 1)
        ]


@without_frames
def simulate_one_shot(
    vectors: ByClient[Vector] | Sequence[Vector] | Vector,
    params: OneShotParams,
    journals: Collection[HelperJournal],
    *,
    absent: Collection[ClientKey] = (),
    weights: ByClient[int] | Sequence[int] | None = None,
    policy: OneShotPolicy | None = None,
    batch: int = 0,
    entropy: Entropy = os.urandom,
    progress: Callable[[str, int, int], None] | None = None,
) -> SimulatedOneShot:
    """Run one batch with real clients, an aggregator and real helpers that exchange bytes.

    A `ClippingWarning` has the number of clipped elements, if there are any.

    Parameters
    ----------
    vectors : mapping of client id to vector, sequence of vectors, or matrix with a row each
        Inputs of the clients. In a sequence or matrix the ids are the positions. Each vector is
        looked up once, when the client reports, so a mapping may compute the vector then. In
        all arguments a name stands for its `client_id`; the result has ids only.
    params : OneShotParams
        Parameters of the session, with `n_clients` at least the number of reports.
    journals : collection of HelperJournal
        Journals of the helpers that take part; the other helpers of `params` are missing. The
        journals keep the list of this batch, so these clients are spent in this session.
    absent : collection of client ids, optional
        Clients that never report.
    weights : mapping of client id to int or sequence of int, optional
        Weight of each vector. Required if the parameters have a `max_weight`, an error if not.
    policy : OneShotPolicy, optional
        Policy of all clients and helpers; the defaults of `OneShotPolicy` if None.
    batch : int
        Number of the batch in the session, 0 ≤ batch < 2^64.
    entropy : callable, optional
        Source of random bytes, except for HPKE, which draws separately.
    progress : callable, optional
        Function called as ``progress("report", done, total)`` after each client's message.

    Raises
    ------
    ParameterError
        An argument is invalid, too few helpers take part, or two clients have the same id.
    TooFewSurvivors
        Too few clients reported.
    RemoteProtocolError
        "spent" or "batch": a journal has another list with one of these clients, or with this
        number. Or "sum" or "weight".
    JournalError
        A journal failed or is closed.
    """
    check_kind("params", params, OneShotParams, "a secagg.oneshot.OneShotParams")
    names = Names()
    keys = keys_of(vectors, names)
    vector_of = cast("Mapping[ClientKey, Vector]", vectors)  # or a sequence, by positions
    weight_of = weights_of(weights, keys, names)
    away = names.keys(dict.fromkeys(absent))
    for u, client in away.items():
        if u not in keys:
            raise ParameterError(f"absent names client {client}, which has no vector")
    # identities for this run alone: nobody outside the simulation verifies a signature
    identities = {u: Identity.generate(entropy) for u in keys} if params.active else {}
    registry = Registry({u: i.public for u, i in identities.items()}) if identities else None
    accumulator = Accumulator(params, registry=registry, batch=batch)
    policy = OneShotPolicy() if policy is None else policy
    helpers = [Helper(params, one, registry=registry, policy=policy) for one in journals]
    seconds = {"client": 0.0, "server": 0.0}
    costs = _Costs(helpers)
    clipped = lost = 0

    def settle() -> None:
        """Let the helpers check the reports so far, which need not be kept then."""
        for helper in helpers:
            chunks = accumulator.boxes(helper.number)
            while True:
                # a chunk is made only now, so its time is the aggregator's
                with timed(seconds, "server"):
                    chunk = next(chunks, None)
                if chunk is None:
                    break
                costs.call(helper, Helper.check, chunk)
        accumulator.settle()

    reporting = [u for u in keys if u not in away]
    leaf = max(1, HELD // params.layout.report)
    # client by client, so that a mapping need not keep all vectors
    for done, u in enumerate(reporting, start=1):
        with timed(seconds, "client"):
            vector = vector_of[keys[u]]
            try:
                data, beyond = write_report(
                    vector,
                    params,
                    u,
                    weight_of.get(u),
                    identity=identities.get(u),
                    policy=policy,
                    entropy=entropy,
                )
            except ParameterError as error:
                # a client's error does not say which client it was
                raise ParameterError(f"client {keys[u]}: {error}") from None
        clipped += beyond
        lost += is_lost(vector, params.encoding)
        with timed(seconds, "server"):
            accumulator.add(data)
        if progress is not None:
            progress("report", done, len(reporting))
        if done % leaf == 0:
            settle()
    settle()
    with timed(seconds, "server"):
        request = accumulator.request()
    if params.quorum:
        reserved = [costs.call(helper, Helper.reserve, request) for helper in helpers]
        with timed(seconds, "server"):
            request = accumulator.request(reserved)
    answers = [costs.call(helper, Helper.open, request) for helper in helpers]
    with timed(seconds, "server"):
        result = accumulator.result(answers)
    # a single warning for all clients
    warn_of_losses(params.encoding, clipped, len(reporting) * params.length, lost)
    return SimulatedOneShot(
        **vars(result) | {"clipped": clipped},
        client_seconds=seconds["client"],
        server_seconds=seconds["server"],
        helper_seconds=costs.seconds,
        report_bytes=params.layout.report,
        helper_bytes_in=costs.bytes_in,
        helper_bytes_out=costs.bytes_out,
    )


class _Costs:
    """Seconds and bytes of helpers, by their numbers."""

    def __init__(self, helpers: Sequence[Helper]) -> None:
        numbers = [helper.number for helper in helpers]
        self.seconds = dict.fromkeys(numbers, 0.0)
        self.bytes_in, self.bytes_out = dict.fromkeys(numbers, 0), dict.fromkeys(numbers, 0)

    def call(self, helper: Helper, step: Callable[[Helper, bytes], T], data: bytes) -> T:
        self.bytes_in[helper.number] += len(data)
        with timed(self.seconds, helper.number):
            answer = step(helper, data)
        if isinstance(answer, bytes):  # a chunk of boxes has none
            self.bytes_out[helper.number] += len(answer)
        return answer
