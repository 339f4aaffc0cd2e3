"""Vectors of a sum: the update of a model, the metrics after it, and the way back."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping
from typing import TypeVar

import numpy as np
from flwr.app import Array, ArrayRecord, MetricRecord, RecordDict
from numpy.typing import NDArray

from secagg import Schema, flatten
from secagg.client.inputs import count_spoiled
from secagg.errors import ParameterError
from secagg.flower.wire import CLIPPED_NODES, Plan

__all__ = ["Layout", "check_arrays", "check_finite"]

logger = logging.getLogger("flwr.secagg")

Floats = NDArray[np.float64]
R = TypeVar("R", ArrayRecord, MetricRecord)


def check_arrays(record: ArrayRecord, exclude: Collection[str]) -> None:
    """Raise `ParameterError` unless the arrays of a model can be summed, or are excluded.

    They are finite floats, and no excluded array has a NaN; see `count_spoiled`.
    """
    unknown = sorted(set(exclude) - set(record))
    if unknown:
        raise ParameterError(
            f"exclude has {unknown[0]!r}, and the model has no such array; leave it out"
        )
    for name, array in record.items():
        if name not in exclude and not _is_float(array.dtype):
            raise ParameterError(
                f"array {name!r} is of {array.dtype}, and only floats are summed; convert "
                f"it, or pass exclude=({name!r},), with which it keeps the server's value"
            )
    check_finite(record, exclude)


def check_finite(record: ArrayRecord, exclude: Collection[str]) -> None:
    """Raise `ParameterError` for elements that no training can use; see `count_spoiled`."""
    for name, array in record.items():
        if not _is_float(array.dtype):
            continue
        if spoiled := count_spoiled(array.numpy(), summed=name not in exclude):
            raise ParameterError(
                f"array {name!r} of the global model has {spoiled} elements that are NaN or "
                f"infinite; restore an earlier model, or pass exclude=({name!r},) if infinite "
                "elements belong there"
            )


def _is_float(dtype: str) -> bool:
    try:
        return np.dtype(dtype).kind == "f"
    except TypeError:  # of another library, such as bfloat16
        return False


class Layout:
    """Places of a model's arrays and of metrics in the vector of a sum.

    Parameters
    ----------
    plan : Plan
    content : RecordDict
        Content of the application's message, with the global model.
    clip : float
        Clip of the sum's encoding, to which the metrics are scaled.

    Attributes
    ----------
    size, length : int
        Number of elements of the update, and d, that of the whole vector.

    Raises
    ------
    ParameterError
        The model is missing, or has an array that is neither a float nor excluded.
    """

    def __init__(self, plan: Plan, content: RecordDict, clip: float) -> None:
        self._plan, self._clip = plan, clip
        self._record = ArrayRecord()
        self._model: Floats = np.empty(0)
        self._schema: Schema[dict[str, NDArray[np.generic]]] | None = None
        if plan.arrays is not None:
            record = content.get(plan.arrays)
            if not isinstance(record, ArrayRecord):
                raise ParameterError(
                    f"the message has no ArrayRecord {plan.arrays!r}; send one"
                )
            check_arrays(record, plan.exclude)
            self._record = record
            self._model, self._schema = flatten(self._summed(record))
        self.size = self._model.size
        self.length = self.size + len(plan.metrics)

    def vector(self, reply: RecordDict, max_weight: int | None = None) -> tuple[Floats, int]:
        """Return the vector of an application's reply, shape (length,), and its weight.

        A metric beyond its bound, or that is no number, is an element beyond the clip. A weight
        above `max_weight` is returned as it is; `secagg.client.inputs` lowers it.

        Raises
        ------
        ParameterError
            The reply has not exactly one MetricRecord with the weight, an integer. Or, if
            there is a model, not one ArrayRecord with arrays of its names and shapes.
        """
        measured = _only(reply, MetricRecord, "MetricRecord")
        weight = _scalar(measured, self._plan.weight)
        if isinstance(weight, float) and not weight.is_integer():
            raise ParameterError(f"{self._plan.weight!r} is a weight and must be an integer")
        scaled = [
            self._scaled(measured.get(name), name, bound)
            for name, bound in self._plan.metrics
            if name != CLIPPED_NODES
        ]
        vector = np.concatenate([self._update(reply), scaled])
        if len(scaled) < len(self._plan.metrics):
            largest = max(np.max(vector, initial=0.0), -np.min(vector, initial=0.0))
            lowered = max_weight is not None and weight > max_weight
            clipped = lowered or largest > self._clip
            vector = np.append(vector, self._clip if clipped else 0.0)
        return vector, int(weight)

    def restored(self, mean: Floats) -> tuple[ArrayRecord, dict[str, float]]:
        """Return the new model and the metrics of a mean; excluded arrays are unchanged."""
        size = self._model.size
        metrics = {
            name: float(value) / self._clip * bound
            for (name, bound), value in zip(self._plan.metrics, mean[size:], strict=True)
        }
        if self._schema is None:
            return ArrayRecord(), metrics
        summed = self._schema.unflatten(self._model + mean[:size])
        record = {
            name: Array(np.asarray(summed[name])) if name in summed else array
            for name, array in self._record.items()
        }
        return ArrayRecord(record), metrics

    def _scaled(self, value: object, name: str, bound: float) -> float:
        """Return the element of a metric; zeros in its place would depend on the metric."""
        if not isinstance(value, int | float) or value != value:  # NaN; isnan overflows for int
            # not zeros with weight 0 for the node: by the name of a metric that only one node
            # has, a server would sum the vector of that node alone
            logger.error("secagg: the metric %r is no number; its bound was sent", name)
            value = math.inf
        if abs(value) > bound:
            beyond = math.nextafter(self._clip, math.inf)
            return -beyond if value < 0 else beyond
        return value / bound * self._clip

    def _update(self, reply: RecordDict) -> Floats:
        """Return the difference of the reply's arrays to the global model."""
        schema = self._schema
        if schema is None:
            return self._model
        local, found = flatten(self._summed(_only(reply, ArrayRecord, "ArrayRecord")))
        if (found.names, found.shapes) != (schema.names, schema.shapes):
            raise ParameterError(
                "names or shapes of the reply's arrays are not those of the global model; "
                "reply with the arrays that were received, trained"
            )
        return local - self._model

    def _summed(self, record: ArrayRecord) -> Mapping[str, NDArray[np.generic]]:
        return {
            name: array.numpy()
            for name, array in record.items()
            if name not in self._plan.exclude
        }


def _only(reply: RecordDict, kind: type[R], name: str) -> R:
    """Return the reply's only record of a kind."""
    found = [record for record in reply.values() if isinstance(record, kind)]
    if len(found) != 1:
        raise ParameterError(f"the reply has {len(found)} records of kind {name}; send one")
    return found[0]


def _scalar(record: MetricRecord, name: str) -> float:
    value = record.get(name)
    if not isinstance(value, int | float):
        raise ParameterError(f"the reply has no number {name!r} in its MetricRecord; add it")
    return value
