"""One-shot sums with helpers: each client sends one message, keeps no state and may leave.

A client draws a seed for each subset S of t − 1 helpers, and masks the vector with every
PRG(k_S). The client seals each seed to the helpers *not* in S: replicated secret sharing (Ito,
Saito, Nishizeki 1987) of PRG seeds (Cramer, Damgård, Ishai 2005). An `Accumulator` adds the
masked vectors of a batch. A `Helper` checks the boxes with seeds, and reserves the list of
clients in a `HelperJournal`. Then the helper opens the *sums* M_S of the masks that the helper
knows. The sum of the vectors is Σ y − Σ_S M_S mod R. With `Noise`, all holders add the same
noise to M_S, for the differential privacy of `epsilon`. docs/oneshot.md specifies all bytes and
checks.

If security is "active", the aggregator with any t − 1 helpers and any clients learns the sum
over the honest clients of each opened batch, and nothing else. Corrupt helpers C with |C| = t −
1 lack exactly the seeds of S = C. Honest helpers release sums of their masks over disjoint
lists only. All helpers without the aggregator learn who reported, and nothing of a vector.

Not protected:

- Correctness and availability. ℓ − t + 1 helpers, or ℓ − q + 1 before a list is reserved, can
  stop a batch. Nobody else can check a helper's verdict on a box.
- Helper keys chosen by the aggregator, who then reads every vector. Parameters come from the
  application, or `OneShotPolicy` has the helpers' identities and all helpers endorse.
- Helpers that are not independent. A helper run by the aggregator's operator counts among the
  t − 1 corrupt helpers.
- A replica, clone or restored copy of a helper's journal. The copy opens twice, and the helper
  counts as corrupt. New keys for each session, deleted at the session's end, keep recorded
  boxes shut.
- Differences between sessions, or between sums over similar cohorts.
- Sybils without a registry. Colluding clients count towards `min_clients` but hide nobody.
- Signatures and quantum computers: the hybrid suite protects confidentiality alone.
- A client with a source of entropy that repeats a state, as on a cloned machine: two reports in
  one session then have the same masks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secagg._lazily import lazily

if TYPE_CHECKING:
    from secagg.oneshot.accumulator import Accumulator
    from secagg.oneshot.client import report
    from secagg.oneshot.helper import Helper
    from secagg.oneshot.journal import HelperJournal
    from secagg.oneshot.noise import Noise
    from secagg.oneshot.params import OneShotParams
    from secagg.oneshot.policy import OneShotPolicy
    from secagg.oneshot.result import OneShotResult

__all__ = [
    "Accumulator",
    "Helper",
    "HelperJournal",
    "Noise",
    "OneShotParams",
    "OneShotPolicy",
    "OneShotResult",
    "report",
]

if not TYPE_CHECKING:  # a client starts a process for each report, and needs no helper
    _HOMES = {
        "accumulator": ("Accumulator",),
        "client": ("report",),
        "helper": ("Helper",),
        "journal": ("HelperJournal",),
        "noise": ("Noise",),
        "params": ("OneShotParams",),
        "policy": ("OneShotPolicy",),
        "result": ("OneShotResult",),
    }
    __getattr__, __dir__ = lazily(__name__, _HOMES)
