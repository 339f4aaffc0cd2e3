"""Grid that replaces a batch of messages to nodes by a secure sum with one reply."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid

from secagg.errors import ParameterError, RemoteProtocolError, TooFewSurvivors
from secagg.flower.batches import Sum, Summing
from secagg.flower.vectors import check_finite
from secagg.flower.wire import CLIPPED_NODES, MISSING, Plan, is_computed
from secagg.protocol import Phase

if TYPE_CHECKING:
    from flwr.supercore.run import Run


logger = logging.getLogger("flwr.secagg")

CLIPPED = "secagg-clipped"
"""Key of the number of clipped elements in the metrics of a round."""
_NUMBERS = itertools.count(1)  # of all sums of this process, so of all that a run can have


@dataclass(frozen=True, kw_only=True)
class Averages:
    """Contents of the vectors that a strategy averages; see `SecAgg`."""

    weight: str
    exclude: tuple[str, ...]
    train: Mapping[str, float]
    evaluate: Mapping[str, float]
    on_failure: Literal["raise", "skip"]


class SecureGrid(Grid):
    """Grid around a ServerApp's Grid that answers train messages by one reply, the mean.

    `SecAgg.start` and `OneShot.start` make this grid. Messages outside of sums, such as
    queries, pass unchanged. All other methods are the methods of the ServerApp's Grid.

    Parameters
    ----------
    grid : Grid
        Grid of the ServerApp.
    summing : callable
        `Summing` of the protocol.
    averages : Averages
    """

    def __init__(self, grid: Grid, summing: Summing, averages: Averages) -> None:
        self._grid, self._summing, self._averages = grid, summing, averages

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Return one reply with the mean of the nodes' replies, and the errors of nodes.

        Parameters
        ----------
        messages : iterable of Message
            Messages of one kind, with the same content for all nodes.
        timeout : float, optional
            Seconds for the exchange in which the nodes train; an hour if None.

        Raises
        ------
        ParameterError
            The messages differ, the model is not finite, or a sum of this model and number of
            nodes is impossible.
        TooFewSurvivors, RemoteProtocolError
            The sum failed, unless failures are to be skipped. Nothing has been unmasked, or
            the weights of all nodes are 0 ("weight").
        LinkError
            The SuperLink took no message.
        """
        batch = list(messages)
        kinds = {message.metadata.message_type.partition(".")[0] for message in batch}
        metrics = self._averages.train if kinds == {"train"} else self._averages.evaluate
        if "evaluate" in kinds:  # before any node gets the model; a sum checks it for training
            for record in batch[0].content.array_records.values():
                check_finite(record, self._averages.exclude)
        if "train" not in kinds and (kinds != {"evaluate"} or not metrics):
            return self._grid.send_and_receive(batch, timeout=timeout)
        plan = Plan(
            self._averages.weight,
            _model(batch[0].content) if kinds == {"train"} else None,
            self._averages.exclude if kinds == {"train"} else (),
            (*metrics.items(), *((MISSING + name, 1.0) for name in metrics)),
        )
        return self._summed(batch, plan, 3600.0 if timeout is None else timeout)

    def _summed(self, batch: Sequence[Message], plan: Plan, timeout: float) -> list[Message]:
        number = next(_NUMBERS)  # spent by a failed sum, too: nodes may have stored it
        try:
            done = self._summing(self._grid, batch, plan, number=number, timeout=timeout)
            if not done.result.weight:
                raise RemoteProtocolError(
                    f"the weights {plan.weight!r} of {len(done.result.survivors)} nodes add up "
                    "to 0, so there is no mean: their trainings failed, or they have no "
                    "examples; the reason is in each node's own log",
                    sender=None,
                    phase=Phase.FINISHED,
                    check="weight",
                )
        except (TooFewSurvivors, RemoteProtocolError) as error:
            if self._averages.on_failure == "raise":
                raise
            logger.warning("secagg: this round has no result: %s", error)
            return []
        return [_reply(batch[0], plan, done), *done.errors]

    @property
    def run(self) -> Run:
        """Run of the ServerApp."""
        return self._grid.run

    def set_run(self, run: Run) -> None:
        """Set the run of the ServerApp's Grid."""
        self._grid.set_run(run)

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """Return a new message; see Flower's Grid."""
        return self._grid.create_message(content, message_type, dst_node_id, group_id, ttl)

    def get_node_ids(self) -> Iterable[int]:
        """Return the ids of the nodes that are connected."""
        return self._grid.get_node_ids()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Push messages unchanged; nodes with a mod of this package refuse to train."""
        return self._grid.push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Return the replies to pushed messages."""
        return self._grid.pull_messages(message_ids)

    def __getattr__(self, name: str) -> object:
        """Return an attribute of the ServerApp's Grid that Flower's Grid does not declare."""
        return getattr(self._grid, name)


def _model(content: RecordDict) -> str:
    """Return the name of the record with the global model."""
    names = [name for name, record in content.items() if isinstance(record, ArrayRecord)]
    if len(names) != 1:
        raise ParameterError(
            f"a train message has {len(names)} ArrayRecords, and the update of one is summed; "
            "send the global model alone"
        )
    return names[0]


def _reply(message: Message, plan: Plan, done: Sum) -> Message:
    """Return the mean of a sum as the reply to a message of the sum."""
    result = done.result
    arrays, metrics = done.layout.restored(result.mean)
    logger.info(
        "secagg: summed the replies of %d nodes, whose weights %r add up to %d; a node whose "
        "training failed is one of them, with the weight 0, and only its own log says so",
        len(result.survivors),
        plan.weight,
        result.weight,
    )
    metrics = _whole(metrics)
    measured = MetricRecord({plan.weight: result.weight or 0, **metrics})
    if result.clipped is not None:
        measured[CLIPPED] = result.clipped
    if result.clipped:
        logger.warning(
            "secagg: clipped elements: %d, of %d nodes, with lowered weights and missing "
            "metrics; raise clip, max_weight or a bound of metrics",
            result.clipped,
            len(result.survivors),
        )
    if metrics.get(CLIPPED_NODES, 0.0) > 0:
        logger.warning(
            "secagg: nodes with %.3g %% of the weight clipped elements, lowered their weight "
            "or lack a metric; raise clip, max_weight or a bound of metrics",
            100 * metrics[CLIPPED_NODES],
        )
    content = RecordDict({"metrics": measured})
    if plan.arrays is not None:
        content[plan.arrays] = arrays
    return Message(content, reply_to=message)


def _whole(means: Mapping[str, float]) -> dict[str, float]:
    """Return the means of metrics, without metrics that were no number at some nodes.

    A part of the weight above 1 is an error of the encoding, and becomes 1.
    """
    found = {
        name: min(mean, 1.0) if is_computed(name) else mean for name, mean in means.items()
    }
    for name in means:
        if not name.startswith(MISSING):
            continue
        metric, part = name.removeprefix(MISSING), found.pop(name)
        if part > 0:
            # some elements of this metric saturated at the clip, so the mean is meaningless
            del found[metric]
            logger.warning(
                "secagg: the metric %r is left out: it is missing or no finite number at nodes "
                "with %.3g %% of the weight; compare its name and type with the replies of the "
                "nodes' functions",
                metric,
                100 * part,
            )
    return found
