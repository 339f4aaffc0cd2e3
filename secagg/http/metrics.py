"""Metrics for Prometheus, from the events of a session: counts, never contents."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from secagg.session import (
    Event,
    Gathering,
    HelperFailed,
    MemberDeclined,
    MessageAccepted,
    MessageRejected,
    PhaseClosed,
    RoundBegun,
    RoundFailed,
    RoundFinished,
)

_SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000)


class Metrics:
    """Counters, gauges and histograms of a session, in a collector registry of their own.

    Labels have few values: names of phases, checks and errors, never ids of clients.
    """

    def __init__(self) -> None:
        # not prometheus_client's global registry, where a second session would clash
        self._registry = CollectorRegistry()
        own = self._registry
        self._cohort = Gauge("secagg_cohort", "Clients of the attempt that runs.", registry=own)
        self._present = Gauge(
            "secagg_gather_present", "Members present, while a round waits.", registry=own
        )
        self._wanted = Gauge(
            "secagg_gather_wanted", "Members that the round waits for.", registry=own
        )
        self._survivors = Gauge("secagg_survivors", "Clients in the last sum.", registry=own)
        self._rounds = Counter(
            "secagg_attempts", "Attempts at a round, by outcome.", ["outcome"], registry=own
        )
        self._round = Histogram(
            "secagg_round_seconds",
            "Seconds of an attempt with a result.",
            buckets=_SECONDS,
            registry=own,
        )
        self._phase = Histogram(
            "secagg_phase_seconds",
            "Seconds of a phase.",
            ["phase"],
            buckets=_SECONDS,
            registry=own,
        )
        self._missing = Counter(
            "secagg_missing", "Answers that did not come in time.", ["phase"], registry=own
        )
        self._accepted = Counter("secagg_answers", "Accepted answers.", ["phase"], registry=own)
        self._rejected = Counter(
            "secagg_answers_rejected", "Rejected answers.", ["phase", "check"], registry=own
        )
        self._declined = Counter(
            "secagg_declined", "Members that declined a task.", registry=own
        )
        self._helpers = Counter(
            "secagg_helper_failures", "Failures of helpers.", ["helper", "phase"], registry=own
        )
        self._bytes = Counter(
            "secagg_bytes", "Bytes of tasks and accepted answers.", ["direction"], registry=own
        )

    def gauge(self, name: str, what: str, value: Callable[[], float]) -> None:
        """Add a gauge that is read whenever the metrics are read."""
        Gauge(name, what, registry=self._registry).set_function(value)

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)

    def __call__(self, event: Event) -> None:
        """Count an event."""
        match event:
            case Gathering():
                self._gather(event.present, event.wanted)
            case RoundBegun():
                self._gather(0, 0)
                self._cohort.set(event.cohort)
            case MessageAccepted():
                self._accepted.labels(event.phase).inc()
            case MessageRejected():
                self._rejected.labels(event.phase, event.check).inc()
            case MemberDeclined():
                self._declined.inc()
            case HelperFailed():
                self._helpers.labels(str(event.helper), event.phase).inc()
            case PhaseClosed():
                self._phase.labels(event.phase).observe(event.seconds)
                self._missing.labels(event.phase).inc(len(event.missing))
                self._bytes.labels("down").inc(event.bytes_down)
                self._bytes.labels("up").inc(event.bytes_up)
            case RoundFinished():
                self._over("finished")
                self._survivors.set(event.survivors)
                self._round.observe(event.seconds)
            case RoundFailed():
                self._over(event.error)

    def _gather(self, present: int, wanted: int) -> None:
        self._present.set(present)
        self._wanted.set(wanted)

    def _over(self, outcome: str) -> None:
        self._gather(0, 0)
        self._cohort.set(0)
        self._rounds.labels(outcome).inc()
