"""Mixed mode of the FedMMF paper: parties send plain gradients or secure gradients."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from fedmf.aggregate.aggregation import Dropouts, Phase, in_the_sum
from fedmf.aggregate.paillier import PaillierSum
from fedmf.aggregate.plain import PlainSum
from fedmf.aggregate.protocols import OneShotSum, SecAggSum
from fedmf.aggregate.vectors import Aggregate, Vectors
from fedmf.errors import SettingError
from fedmf.settings import Settings


@dataclass(frozen=True, eq=False)
class MixedSum(Settings):
    """Sum of section 3.2 of Yang et al. 2021: plain for some users, secure for the rest.

    **Use this sum to reproduce the paper, not to protect anybody**: see docs/privacy.md. The
    `warning` is issued if any user is exposed. The result has the same integers as a secure sum
    over all users.

    Parameters
    ----------
    secure
        Sum of the gradients of users that are not exposed, a `SecAggSum`, `OneShotSum` or
        `PaillierSum`. The encoding of this sum is used for all users.
    exposed
        Ids of the users who send plain gradients. The paper's choice is the result of
        `benches.papers.indicator.well_masked`.
    """

    secure: SecAggSum | OneShotSum | PaillierSum
    exposed: Collection[int]

    def _check(self) -> None:
        if not isinstance(self.secure, SecAggSum | OneShotSum | PaillierSum):
            raise SettingError(
                f"secure = {self.secure!r} must be a secure sum: a SecAggSum, OneShotSum or "
                "PaillierSum"
            )
        object.__setattr__(self, "exposed", frozenset(self.exposed))
        if self.exposed:
            warnings.warn(self.warning, stacklevel=4)  # the caller of the constructor

    @property
    def warning(self) -> str:
        """Text of the warning about exposed users."""
        return (
            f"{len(self.exposed)} users send their gradients in the clear: the server can "
            "compute their masked ratings from two rounds, and from these and the items' "
            "public features nearly all their ratings. A good mask (a small J) does not "
            "prevent that; secure aggregation for everybody does. The others lose the "
            "protection of min_raters: raters are counted over all users, but the secure sum "
            "is over the others alone, and at an item that only one of them rated it is that "
            "user's gradient."
        )

    def sum(self, vectors: Vectors, *, dropouts: Dropouts, session: bytes = b"") -> Aggregate:
        """Sum tables of floats, see `Aggregation`; RoundAborted if too few users are left."""
        there = [user for user in vectors if user in self.exposed]
        rest = [user for user in vectors if user not in self.exposed]
        plain = PlainSum(clip=self.secure.clip, fractional_bits=self.secure.fractional_bits)
        if not rest:
            return plain.sum(vectors, dropouts=dropouts, session=session)
        hidden = self.secure.sum(
            _part(vectors, rest), dropouts=_of(rest, dropouts), session=session
        )
        seen = _part(vectors, there)
        if not in_the_sum(seen, dropouts):  # none is exposed, or all have dropped out
            return hidden
        shown = plain.sum(seen, dropouts=_of(there, dropouts), session=session)
        integers = shown.integers + hidden.integers
        part = len(there) / len(vectors)
        return replace(
            hidden,
            sum=plain.encoding.decode_integers(integers),
            integers=integers,
            survivors=tuple(sorted((*shown.survivors, *hidden.survivors))),
            clipped=shown.clipped + hidden.clipped,
            client_seconds=shown.client_seconds + hidden.client_seconds,
            server_seconds=shown.server_seconds + hidden.server_seconds,
            bytes_up=part * shown.bytes_up + (1 - part) * hidden.bytes_up,
            bytes_down=part * shown.bytes_down + (1 - part) * hidden.bytes_down,
        )

    def count(self, vectors: Vectors, *, dropouts: Dropouts, session: bytes = b"") -> Aggregate:
        """Add up tables of zeros and ones, securely for all users; see `Aggregation`."""
        return self.secure.count(vectors, dropouts=dropouts, session=session)


def _part(vectors: Vectors, users: Sequence[int]) -> Vectors:
    return Vectors(users, vectors.__getitem__, vectors.shape, vectors.blocks)


def _of(users: Sequence[int], dropouts: Dropouts) -> dict[int, Phase]:
    return {user: dropouts[user] for user in users if user in dropouts}
