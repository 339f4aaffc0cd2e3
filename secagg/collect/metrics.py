"""Metrics of a collection for Prometheus: counts and times, nothing of a client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cache, partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.requests import ClientDisconnect

from secagg.collect.overview import Overview
from secagg.collect.states import State
from secagg.http.problems import Problem

_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)
_REPORTS = (1, 3, 10, 30, 100, 300, 500)
_UNDER_WAY = tuple(State)[1:-1]


class Metrics:
    """Metrics of a process that takes reports, in a collector registry of their own.

    Parameters
    ----------
    held : callable
        Function that returns the bytes of bodies in flight.
    """

    def __init__(self, held: Callable[[], float]) -> None:
        self._registry = own = CollectorRegistry()
        self._gauge = partial(Gauge, namespace="secagg", registry=own)
        seconds = partial(Histogram, namespace="secagg", registry=own)
        self._answers = Counter(
            "collect_answers",
            "Answers by request; the answer is ok, a check, or gone.",
            ["request", "answer"],
            namespace="secagg",
            registry=own,
        )
        self._answer = cache(self._answers.labels)
        # there from the start, so that an alert sees a service without any report
        self._answer("report", "ok")
        self._commit = seconds(
            "collect_commit_seconds", "Seconds of a commit.", buckets=_SECONDS
        )
        self._reports = seconds("collect_commit_reports", "Reports a commit.", buckets=_REPORTS)
        self.gauge("collect_bytes_in_flight", "Bytes of bodies, until the commit.", held)
        self._batches = _Batches()
        own.register(self._batches)

    def gauge(self, name: str, what: str, value: Callable[[], float]) -> None:
        """Add a gauge that is read whenever the metrics are read."""
        self._gauge(name, what).set_function(value)

    def answering(self, request: str) -> AbstractContextManager[None]:
        """Count the answer of the block to a request."""
        return _Answering(partial(self._answer, request))

    def committed(self, reports: int, seconds: float) -> None:
        """Count a commit."""
        self._commit.observe(seconds)
        self._reports.observe(reports)

    def text(self, found: Overview | None) -> bytes:
        """Return all metrics in the text format of Prometheus.

        Parameters
        ----------
        found : Overview or None
            Batches of the database; None if the database is away.
        """
        self._batches.found = found
        return generate_latest(self._registry)


def text(found: Overview) -> bytes:
    """Return the metrics of a database in the text format of Prometheus."""
    registry = CollectorRegistry()
    registry.register(_Batches(found))
    return generate_latest(registry)


def is_ready(found: Overview | None) -> bool:
    """Return True if the database is there, and some batch takes reports."""
    return found is not None and State.OPEN in found.groups


class _Answering(AbstractContextManager[None]):
    """Block that answers a request; the end counts the answer.

    A class, since a generator takes several times as long for every report.
    """

    def __init__(self, counter: Callable[[str], Counter]) -> None:
        self._counter = counter

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._counter(_answer(error)).inc()


def _answer(error: BaseException | None) -> str:
    """Return the name of an answer: ok, a check, or gone."""
    if error is None:
        return "ok"
    if isinstance(error, Problem):
        return error.check
    # neither an error nor a disconnected client: a task that was cancelled
    failed = isinstance(error, Exception) and not isinstance(error, ClientDisconnect)
    return "server" if failed else "gone"


class _Batches(Collector):
    """Metrics of an overview."""

    def __init__(self, found: Overview | None = None) -> None:
        self.found = found

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics."""
        family = partial(GaugeMetricFamily, labels=["state"])
        found, about = self.found, "secagg_collect_"
        ready = "1 if the database is there, and a batch takes reports."
        yield GaugeMetricFamily(f"{about}ready", ready, is_ready(found))
        if found is None:
            return
        batches = family(f"{about}batches", "Batches in a state.")
        reports = family(f"{about}reports", "Reports of the batches in a state.")
        oldest = family(f"{about}oldest_seconds", "Seconds of the longest stay in a state.")
        for state in State:
            group = found.groups.get(state)
            batches.add_metric([state], group.batches if group else 0)
            reports.add_metric([state], group.reports if group else 0)
            if state in _UNDER_WAY:
                oldest.add_metric([state], found.now - group.changed if group else 0)
        yield from (batches, reports, oldest)
        left = "Slices that workers are to add."
        yield GaugeMetricFamily(f"{about}slices_left", left, found.slices)
