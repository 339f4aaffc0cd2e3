"""The server of the protocol: it holds no secret of its own and learns one sum.

Messages go in one at a time; a bad one is refused and spoils nothing. The caller owns the
clock: a time-out is ``close_round()``. What happens to a message is in ``stages``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from cryptography.hazmat.primitives.poly1305 import Poly1305
from numpy.typing import NDArray

from secagg.errors import LocalProtocolError, ParameterError, RemoteProtocolError, SecAggError
from secagg.exclusive import Exclusive
from secagg.identities import Registry, check_registry
from secagg.messages import as_bytes
from secagg.params import Entropy, RoundParams, check_integer
from secagg.rounds import Phase, out_of_order
from secagg.stages import Advertising, Consistency, Masking, Sharing
from secagg.unmasking import Unmasked, Unmasking

__all__ = ["RoundResult", "Server"]


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundResult:
    """The sum of the survivors' vectors.

    Attributes
    ----------
    sum : array, shape (d,)
        float64 for FixedPoint, int64 for Integers; weighted if the round is.
    integers : int64 array, shape (d,)
        The exact sum of the encoded vectors.
    survivors : tuple of ids, ascending
        U3: exactly these clients' vectors are in the sum.
    weight : int or None
        The sum of their weights, if the round is weighted.
    faulty : tuple of ids, ascending
        Clients whose shares were wrong, as far as they can be told apart: up to half of the
        shares beyond the threshold, or a single one. The sum is right all the same. Liars in
        larger numbers can agree on shares that put the blame on somebody else.
    """

    sum: NDArray[np.float64] | NDArray[np.int64]
    integers: NDArray[np.int64]
    survivors: tuple[int, ...]
    weight: int | None = None
    faulty: tuple[int, ...] = ()

    @property
    def mean(self) -> NDArray[np.float64]:
        """The sum divided by the total weight, or by the number of survivors.

        Raises
        ------
        ParameterError
            All weights are zero.
        """
        total = len(self.survivors) if self.weight is None else self.weight
        if total == 0:
            raise ParameterError("the survivors' weights add up to 0: there is no mean")
        return np.asarray(self.sum / total, dtype=np.float64)


class Server:
    """One session, from the first key to the sum.

    Parameters
    ----------
    params : RoundParams
        The same as every client's.
    registry : Registry, optional
        The public keys of all who may take part; required exactly when the parameters say
        "active".
    entropy : callable, optional
        Where the random graph comes from; replace it only to replay a round in a test.

    Raises
    ------
    ParameterError
        The registry is missing or not wanted.
    """

    def __init__(
        self,
        params: RoundParams,
        *,
        registry: Registry | None = None,
        entropy: Entropy = os.urandom,
    ) -> None:
        check_registry(params, registry)
        self.params = params
        self._stage: _Stage = Advertising(params, registry, entropy)
        self._exclusive = Exclusive()
        self._received: set[int] = set()
        # tags of every accepted message, so that a repetition is known as one; under a key
        # that nobody else has, Poly1305 is as good as a digest here and six times faster
        self._accepted: dict[int, set[bytes]] = {}
        self._tag_key = entropy(32)

    def __repr__(self) -> str:
        """Show where the server stands."""
        return f"Server(phase={self.phase}, received={len(self._received)})"

    @property
    def phase(self) -> Phase:
        """The messages this server waits for."""
        return self._stage.phase

    @property
    def waiting(self) -> frozenset[int]:
        """The clients whose message of this phase has not come; empty in round 0."""
        return frozenset(self._stage.expected or ()) - self._received

    def receive(self, client_id: int, data: bytes) -> None:
        """Take one message, check it, count it once.

        The same bytes again, also late, are ignored.

        Parameters
        ----------
        client_id : int
            Whom the transport says it is from.
        data : bytes
            The message.

        Raises
        ------
        ParameterError
            The id is not an int, or the message not bytes.
        RemoteProtocolError
            The message is refused; the server is as it was.
        LocalProtocolError
            The round is over, or another thread is inside.
        """
        check_integer("client_id", client_id, 0, (1 << 64) - 1)
        with self._exclusive:
            self._receive(int(client_id), as_bytes(data))

    def close_round(self) -> dict[int, bytes]:
        """End the phase with the messages that have come, and say what to send to whom.

        Returns
        -------
        dict of client id to bytes
            Clients that are not in it take no further part. Empty after the last phase:
            then ``result()`` is there.

        Raises
        ------
        TooFewSurvivors
            Too few messages came; nothing has been unmasked and the server has ended.
        RemoteProtocolError
            Shares are wrong beyond repair; likewise.
        LocalProtocolError
            The round is over.
        """
        with self._exclusive:
            return self._close_round()

    def result(self) -> RoundResult:
        """Return the sum.

        Raises
        ------
        LocalProtocolError
            The round is not finished, or has failed.
        """
        if not isinstance(self._stage, _Over) or self._stage.result is None:
            raise LocalProtocolError(f"there is no result in phase {self.phase}")
        return self._stage.result

    def _receive(self, client_id: int, data: bytes) -> None:
        stage = self._running("receive")
        tag = Poly1305.generate_tag(self._tag_key, data)
        if tag in self._accepted.get(client_id, ()):
            return
        if stage.expected is not None and client_id not in stage.expected:
            raise self._refusal(client_id, "unknown client", "it is not part of this round")
        if client_id in self._received:
            raise self._refusal(client_id, "repeated", "another message of it was accepted")
        stage.take(client_id, data)
        self._received.add(client_id)
        self._accepted.setdefault(client_id, set()).add(tag)

    def _close_round(self) -> dict[int, bytes]:
        stage = self._running("close_round")
        try:
            closed, answers = stage.close()
        except SecAggError:
            self._stage = _Over(Phase.FAILED, None)
            raise
        if isinstance(closed, Unmasked):
            self._stage = _Over(Phase.FINISHED, self._decode(closed))
        else:
            self._stage = closed
        self._received = set()
        return answers

    def _decode(self, unmasked: Unmasked) -> RoundResult:
        params = self.params
        total, integers = params.encoding.decode(unmasked.total[: params.length], params.ring)
        weighted = params.max_weight is not None
        return RoundResult(
            sum=total,
            integers=integers,
            survivors=unmasked.survivors,
            weight=int(unmasked.total[params.length]) if weighted else None,
            faulty=unmasked.faulty,
        )

    def _running(self, call: str) -> Advertising | Sharing | Masking | Consistency | Unmasking:
        if isinstance(self._stage, _Over):
            raise out_of_order(call, self.phase)
        return self._stage

    def _refusal(self, client_id: int, check: str, why: str) -> RemoteProtocolError:
        return RemoteProtocolError(why, sender=client_id, phase=self.phase, check=check)


@dataclass(frozen=True)
class _Over:
    """Finished with a result, or failed without."""

    phase: Phase
    result: RoundResult | None
    expected: None = None


_Stage = Advertising | Sharing | Masking | Consistency | Unmasking | _Over
