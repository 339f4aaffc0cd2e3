"""Training of a node: after the beginning, nothing of the outcome raises an error."""

from __future__ import annotations

import logging

from flwr.app import Context, Message
from flwr.clientapp.typing import ClientAppCallable

from secagg import FixedPoint, RoundParams
from secagg._secrets import without_frames
from secagg.client.inputs import Outcome, Sent
from secagg.encoding.clipping import is_lost
from secagg.errors import ParameterError, RemoteProtocolError
from secagg.flower.node import content_of, log_error
from secagg.flower.shown import call_agreed
from secagg.flower.vectors import Layout
from secagg.flower.wire import Plan, Task, violation
from secagg.oneshot import OneShotParams

logger = logging.getLogger("flwr.secagg")


class Trainer:
    """Application of a node, and the places of the reply in the vector of a sum.

    Parameters
    ----------
    task : Task
    plan : Plan
    params : RoundParams or OneShotParams
    message, context, call_next
        Arguments of the mod.

    Raises
    ------
    RemoteProtocolError
        The parameters have another number of elements than the message ("parameters").
    ParameterError
        The message has no model that can be summed.
    """

    def __init__(
        self,
        task: Task,
        plan: Plan,
        params: RoundParams | OneShotParams,
        message: Message,
        context: Context,
        call_next: ClientAppCallable,
    ) -> None:
        assert isinstance(params.encoding, FixedPoint), "checked before"  # noqa: S101
        self._layout = Layout(plan, message.content, params.encoding.clip)
        if self._layout.length != params.length:
            why = "the message has another number of elements"
            raise violation(task.phase, "parameters", why)
        self._largest, self._encoding = params.max_weight, params.encoding
        self._lost = False  # elements other than 0, all below half a step of the encoding
        self._call = (message, context, call_next)

    def outcome(self) -> Outcome:
        """Return the vector and weight of the application's reply, or the error of either.

        A `RemoteProtocolError` of the application is raised: the server broke the application's
        own protocol, and knows that.
        """
        try:
            reply = content_of(call_agreed(*self._call))
            vector, weight = self._layout.vector(reply, self._largest)
            # metrics follow the update
            self._lost = is_lost(vector[: self._layout.size], self._encoding)
            return Outcome(vector, weight)
        except RemoteProtocolError:
            raise
        except SystemExit:
            return Outcome(
                None, error=ParameterError("the app called sys.exit; raise an error")
            )
        except Exception as error:
            return Outcome(None, error=error)

    def note(self, sent: Sent, clipped: int) -> None:
        """Log in the node what became of the input; the server gets nothing of the log."""
        if self._lost and sent.error is None:
            logger.warning(
                "secagg: all elements of the update are below half a step of the encoding, so "
                "the sum loses them; raise fractional_bits at the server, or the learning rate"
            )
        if clipped:
            logger.warning("secagg: clipped elements of the update: %d", clipped)
        if sent.lowered:
            logger.warning(
                "secagg: this node's weight was lowered to the sum's max_weight; raise it at "
                "the server: SecAgg(max_weight=…), or OneShot(max_weight=…)"
            )
        if sent.error is not None:
            try:
                _raise(sent.error)
            except Exception as error:
                log_error("zeros of weight 0 were sent in place of the update", error)


@without_frames
def _raise(error: Exception) -> None:
    """Raise an error without the frames that have the vector."""
    raise error
