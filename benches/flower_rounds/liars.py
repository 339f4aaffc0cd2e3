"""Servers that ask nodes for both shares of one node: of its mask's seed and of its key.

Whoever has enough of both removes the masks of that node's vector alone. An honest server asks
for the seed's shares of survivors, and for the key's shares of nodes that dropped out.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common import bytes_to_ndarray
from flwr.common.secure_aggregation.crypto.shamir import combine_shares
from flwr.common.secure_aggregation.crypto.symmetric_encryption import generate_shared_key
from flwr.common.secure_aggregation.ndarrays_arithmetic import (
    factor_extract,
    get_parameters_shape,
    parameters_addition,
    parameters_mod,
    parameters_subtraction,
)
from flwr.common.secure_aggregation.quantization import dequantize
from flwr.common.secure_aggregation.secaggplus_constants import (
    RECORD_KEY_CONFIGS,
    Key,
    Stage,
)
from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen
from flwr.supercore.primitives.asymmetric import bytes_to_private_key, bytes_to_public_key
from numpy.typing import NDArray

from benches.flower_rounds.app.work import CLIP, F64
from benches.flower_rounds.local import Configs
from secagg import Phase, RoundParams
from secagg.flower.testing import LocalGrid
from secagg.flower.wire import RECORD, Task, read_task, task_record
from secagg.protocol.messages import UnmaskRequest, decode, encode, pack_ids


class SecAggPlusLiar(LocalGrid):
    """Server of SecAgg+ that names its victim as a survivor and as a dropped-out node.

    The sum goes on as if nothing had happened, because the server drops the second share.

    Attributes
    ----------
    gave_both : int
        Number of nodes that sent both shares of the victim.
    """

    def __init__(self, app: ClientApp, nodes: Configs, victim: int) -> None:
        super().__init__(app, nodes)
        self.gave_both = 0
        self._victim = victim
        self._public: dict[int, bytes] = {}
        self._masked: list[NDArray[np.int64]] = []
        self._seed: list[bytes] = []
        self._key: list[bytes] = []
        self._range = self._modulus = 0

    def deliver(self, message: Message) -> Message | None:
        """Return a node's reply, and keep what the victim's vector can be read from."""
        asked = cast(ConfigRecord, message.content[RECORD_KEY_CONFIGS])
        stage, node = asked[Key.STAGE], message.metadata.dst_node_id
        if stage == Stage.SETUP:
            self._range = cast(int, asked[Key.TARGET_RANGE])
            self._modulus = cast(int, asked[Key.MOD_RANGE])
        if stage == Stage.UNMASK:
            asked[Key.DEAD_NODE_ID_LIST] = [self._victim]
        reply = super().deliver(message)
        assert reply is not None
        answer = cast(ConfigRecord, reply.content[RECORD_KEY_CONFIGS])
        if stage == Stage.SETUP:
            self._public[node] = cast(bytes, answer[Key.PUBLIC_KEY_1])
        elif stage == Stage.COLLECT_MASKED_VECTORS and node == self._victim:
            masked = cast(list[bytes], answer[Key.MASKED_PARAMETERS])
            self._masked = [bytes_to_ndarray(array) for array in masked]
        elif stage == Stage.UNMASK:
            ids = cast(list[int], answer[Key.NODE_ID_LIST])
            shares = cast(list[bytes], answer[Key.SHARE_LIST])
            self.gave_both += ids.count(self._victim) == 2
            self._seed.append(shares[ids.index(self._victim)])
            self._key.append(shares.pop())
            ids.pop()
        return reply

    def vector(self) -> F64:
        """Return the victim's vector, which the server reads from its masked vector."""
        shapes = get_parameters_shape(self._masked)
        seed, key = combine_shares(self._seed), combine_shares(self._key)
        found = parameters_subtraction(
            self._masked, pseudo_rand_gen(seed, self._modulus, shapes)
        )
        for node, public in self._public.items():
            if node != self._victim:
                agreed = generate_shared_key(
                    bytes_to_private_key(key), bytes_to_public_key(public)
                )
                mask = pseudo_rand_gen(agreed, self._modulus, shapes)
                remove = parameters_subtraction if self._victim > node else parameters_addition
                found = remove(found, mask)
        ratio, found = factor_extract(parameters_mod(found, self._modulus))
        (vector,) = dequantize(found, CLIP, self._range)
        return np.asarray(vector * (self._range / ratio))


class SecAggLiar(LocalGrid):
    """Server of `SecAgg` that asks for both shares, in one request or in a second one.

    Attributes
    ----------
    gave_both, refused : int
        Numbers of nodes that sent both shares of the victim, and that refused.
    """

    def __init__(self, app: ClientApp, nodes: Configs, victim: int, *, second: bool) -> None:
        super().__init__(app, nodes)
        self.gave_both = self.refused = 0
        self._victim, self._second = victim, second

    def deliver(self, message: Message) -> Message | None:
        """Return a node's reply."""
        task = read_task(message.content)
        assert task is not None
        if task.phase != Phase.UNMASKING:
            return super().deliver(message)
        forged = _forged(task, self._victim, both=not self._second)
        honest = super().deliver(message) if self._second else None
        message.content = forged
        reply = self.answer(message)
        self.refused += reply.has_error()
        self.gave_both += not reply.has_error()
        return honest or reply


def _forged(task: Task, victim: int, *, both: bool) -> RecordDict:
    """Return the content that names the victim as dropped out, and as a survivor if `both`."""
    params = RoundParams.from_bytes(task.params)
    request = decode(task.data, UnmaskRequest, params, sender=None, phase=Phase.UNMASKING)
    ids = np.frombuffer(request.survivors, np.uint64).tolist()
    kept = [node for node in ids if both or node != victim]
    forged = UnmaskRequest(
        session=request.session,
        survivors=pack_ids(kept),
        dropped=pack_ids([victim]),
        signers=request.signers,
        signatures=request.signatures,
    )
    return RecordDict({RECORD: task_record(task._replace(data=encode(forged)))})
