"""Vectors of a sum: the update of a model, the metrics after it, and the way back."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping
from typing import TypeGuard, TypeVar

import numpy as np
from flwr.app import Array, ArrayRecord, MetricRecord, RecordDict
from numpy.typing import NDArray

from secagg import Bounded, FixedPoint, Schema, flatten
from secagg.client.inputs import count_spoiled
from secagg.errors import ParameterError
from secagg.flower.wire import CLIPPED_NODES, MISSING, Plan, is_computed

logger = logging.getLogger("flwr.secagg")

Floats = NDArray[np.float64]
R = TypeVar("R", ArrayRecord, MetricRecord)


def check_finite(record: ArrayRecord, exclude: Collection[str]) -> None:
    """Raise `ParameterError` for elements that no training can use; see `count_spoiled`."""
    for name, array in record.items():
        if not _is_float(array.dtype):
            continue
        values = array.numpy()
        if nans := count_spoiled(values, summed=False):  # excluded arrays, too, may have none
            raise ParameterError(
                f"array {name!r} of the global model has {nans} elements that are NaN; replace "
                "the NaN elements, or restore an earlier model"
            )
        if spoiled := count_spoiled(values, summed=name not in exclude):
            raise ParameterError(
                f"array {name!r} of the global model has {spoiled} elements that are infinite; "
                f"restore an earlier model, or pass exclude=({name!r},) if infinite elements "
                "belong there"
            )


def _is_float(dtype: str) -> bool:
    try:
        return np.dtype(dtype).kind == "f"
    except TypeError:  # of another library, such as bfloat16
        return False


def clip_of(encoding: FixedPoint | Bounded) -> float:
    """Return the clip of an encoding; vectors of bounded norm have none, and no metrics."""
    return encoding.clip if isinstance(encoding, FixedPoint) else 0.0


class Layout:
    """Places of a model's arrays and of metrics in the vector of a sum.

    Parameters
    ----------
    plan : Plan
    content : RecordDict
        Content of the application's message, with the global model.
    clip : float
        Clip of the sum's encoding, to which the metrics are scaled; see `clip_of`.

    Attributes
    ----------
    size, length : int
        Number of elements of the update, and d, the number of elements of the whole vector.

    Raises
    ------
    ParameterError
        The model is missing, or has an array that is neither a float nor excluded, or not
        finite; see `check_finite`. Or `exclude` leaves no array, or has an unknown name.
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
            if not set(record) - set(plan.exclude):
                raise ParameterError(
                    f"exclude has all {len(record)} arrays of the global model, and none is "
                    "left to sum; leave the trained arrays out of exclude"
                    if record
                    else "the global model has no arrays; pass start an ArrayRecord with one "
                    "or more"
                )
            if unknown := sorted(set(plan.exclude) - set(record)):
                raise ParameterError(
                    f"exclude has {unknown[0]!r}, and the model has no such array; leave it out"
                )
            remedy = "convert it, or pass its name to exclude; it then keeps the server's value"
            arrays = self._summed(record, remedy)
            check_finite(record, plan.exclude)
            self._record = record
            self._model, self._schema = flatten(arrays)
        self.size = self._model.size
        self.length = self.size + len(plan.metrics)

    def vector(
        self, reply: RecordDict, max_weight: int | None = None
    ) -> tuple[Floats, int | None]:
        """Return the vector of an application's reply, shape (length,), and the weight.

        The weight is None if the plan has no weight; metrics of the reply are then not read.

        A metric beyond the bound, or no finite number, is an element beyond the clip. A weight
        above `max_weight` is returned unchanged; `secagg.client.inputs` lowers the weight.

        Raises
        ------
        ParameterError
            The reply has not exactly one MetricRecord with the weight, an integer ≥ 0. Or, if
            there is a model, not one ArrayRecord with the model's names and shapes.
        """
        if self._plan.weight is None:
            return self._update(reply), None
        measured = _only(reply, MetricRecord)
        weight = measured.get(self._plan.weight)
        if not isinstance(weight, int | float):
            raise ParameterError(
                f"the reply has no number {self._plan.weight!r} in its MetricRecord; add it"
            )
        if isinstance(weight, float) and not weight.is_integer():
            raise ParameterError(f"{self._plan.weight!r} is a weight and must be an integer")
        if weight < 0:  # private, so its value is not repeated
            raise ParameterError(
                f"the weight {self._plan.weight!r} in the reply's MetricRecord is below 0; "
                "reply with the number of examples, 0 or more"
            )
        scaled = []
        for name, bound in self._plan.metrics:
            if name.startswith(MISSING):
                number = _is_number(measured.get(name.removeprefix(MISSING)))
                scaled.append(0.0 if number else self._clip)
            elif name != CLIPPED_NODES:
                scaled.append(self._scaled(measured.get(name), name, bound))
        vector = np.concatenate([self._update(reply), scaled])
        if len(scaled) < len(self._plan.metrics):
            largest = max(np.max(vector, initial=0.0), -np.min(vector, initial=0.0))
            lowered = max_weight is not None and weight > max_weight
            clipped = lowered or largest > self._clip
            vector = np.append(vector, self._clip if clipped else 0.0)
        return vector, int(weight)

    def restored(self, mean: Floats) -> tuple[ArrayRecord, dict[str, float]]:
        """Return the new model and the metrics of a mean; excluded arrays are unchanged.

        A metric that was no finite number at some node is left out, with a warning.
        """
        size, metrics = self._model.size, {}
        for (name, bound), value in zip(self._plan.metrics, mean[size:], strict=True):
            measured = float(value) / self._clip * bound
            # a part of the weight above 1 is an error of the encoding
            metrics[name] = min(measured, 1.0) if is_computed(name) else measured
        for name in [name for name in metrics if name.startswith(MISSING)]:
            metric, part = name.removeprefix(MISSING), metrics.pop(name)
            if part > 0:
                # some elements of this metric saturated at the clip, so the mean is meaningless
                del metrics[metric]
                logger.warning(
                    "secagg: the metric %r is left out: it is missing or no finite number at "
                    "nodes with %.3g %% of the weight; compare its name and type with the "
                    "replies of the nodes' functions",
                    metric,
                    100 * part,
                )
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
        if not _is_number(value):
            # not zeros with weight 0 for the node: by the name of a metric that only one node
            # has, a server would sum the vector of that node alone
            logger.error("secagg: the metric %r is missing or no finite number", name)
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
        remedy = "reply with floats, as in the global model"
        arrays = self._summed(_only(reply, ArrayRecord), remedy)
        local, found = flatten(arrays)
        if (found.names, found.shapes) != (schema.names, schema.shapes):
            raise ParameterError(
                "names or shapes of the reply's arrays are not those of the global model; "
                "reply with the arrays that were received, trained"
            )
        with np.errstate(over="ignore"):  # an infinite difference is an error below
            changed: Floats = local - self._model
        if not np.isfinite(changed).all():
            raise ParameterError(_first_spoiled(arrays))
        return changed

    def _summed(self, record: ArrayRecord, remedy: str) -> Mapping[str, NDArray[np.generic]]:
        """Return the arrays that are not excluded, or raise `ParameterError` if not floats."""
        summed = {n: array for n, array in record.items() if n not in self._plan.exclude}
        for name, array in summed.items():
            if not _is_float(array.dtype):
                raise ParameterError(
                    f"array {name!r} is of {array.dtype}, and only floats are summed; {remedy}"
                )
        return {name: array.numpy() for name, array in summed.items()}


def _first_spoiled(arrays: Mapping[str, NDArray[np.generic]]) -> str:
    """Return the place of an update's first element that is NaN or infinite, in words."""
    for name, array in sorted(arrays.items()):
        spoiled = np.flatnonzero(~np.isfinite(np.asarray(array, np.float64)))
        if spoiled.size:
            return (
                f"array {name!r}, element {spoiled[0]} of the reply is NaN or infinite, as "
                f"{spoiled.size} of its {array.size} elements are; look for divergence in the "
                "training"
            )
    return "the reply is too far from the global model for floats; train with a smaller step"


def _is_number(value: object) -> TypeGuard[float]:
    """Return True for a finite number; an int can be too large for a float."""
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


def _only(reply: RecordDict, kind: type[R]) -> R:
    """Return the reply's only record of a kind."""
    found = [record for record in reply.values() if isinstance(record, kind)]
    if len(found) != 1:
        raise ParameterError(
            f"the reply has {len(found)} records of kind {kind.__name__}; send one"
        )
    return found[0]
