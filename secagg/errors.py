"""Errors of secagg: every failure is one of these errors, and no error carries a secret.

``ParameterError`` and ``LocalProtocolError`` are mistakes of the caller: nothing has changed,
so correct the call and retry. ``RemoteProtocolError`` is a violation by the peer.
``TooFewSurvivors`` ends a round without a violation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from secagg._printable import printable


class SecAggError(Exception):
    """Base of every error that secagg raises on purpose.

    Errors pickle and copy with message and attributes, so a pool of processes returns them.
    """

    def __reduce__(self) -> tuple[object, ...]:
        # the standard way passes the message alone to the constructor, and some need more
        _, args, *state = tuple(super().__reduce__())
        return _restored, (type(self), args), *state


def _restored(kind: type[SecAggError], args: tuple[object, ...]) -> SecAggError:
    """Return an error without a call of its constructor; pickle restores the attributes."""
    error = kind.__new__(kind, *args)
    super(SecAggError, error).__init__(*args)
    return error


class ParameterError(SecAggError, ValueError):
    """An argument is invalid; the message has its name and the remedy."""


class BudgetSpent(ParameterError):
    """A sum would exceed the budget of privacy; nothing was spent, and nothing leaves.

    Attributes
    ----------
    completed : pair of tuples of int
        Rounds and reports that a member completed before, as in `secagg.session.Completed`.
    verdicts : tuple of Verdict
        Proofs against clients, of attempts at the same active round that had room.
    """

    completed: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    verdicts: tuple[Verdict, ...] = ()


class JournalError(SecAggError):
    """A journal cannot be opened, read or written, or its content is wrong.

    A server ends if a write fails; every message that the server acknowledged is stored.
    """


class DatabaseError(SecAggError):
    """A collection's database cannot be reached, read or written, or is of a newer version.

    The transaction has no effect, or its end is unknown. Every step can be repeated.
    """


class LinkError(SecAggError):
    """A server cannot be reached, or rejects a party for good.

    Attributes
    ----------
    check : str
        A short stable name of the reason, e.g. ``"patience"``, ``"client"`` or ``"signature"``.
    """

    def __init__(self, message: str, *, check: str) -> None:
        self.check = printable(check)  # the server's words may be in both
        super().__init__(printable(message))


class LocalProtocolError(SecAggError, RuntimeError):
    """A method was called out of order or on a machine that has ended; nothing has changed."""


class MissingExtra(SecAggError, ModuleNotFoundError):
    """A part of secagg needs a package that is not installed; the message names the extra."""


@contextmanager
def needing(what: str, install: str, *packages: str) -> Iterator[None]:
    """Raise `MissingExtra` if the imports of the block lack one of some packages.

    Any other missing module is a fault of an installation, so that error stays.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in packages:
            raise
        text = f"{what} needs {package}: pip install {install}"
        raise MissingExtra(text, name=package) from None


class ClippingWarning(UserWarning):
    """Elements of a client's or a simulation's vectors were clipped, and the sum with them."""


class PrecisionWarning(UserWarning):
    """An encoding's step is so large that rounding changes much of every element."""


class Dispute(NamedTuple):
    """A share that the dealer and the holder cannot both have handled right.

    Either client may be at fault: the dealer dealt a wrong share or the holder changed a share.

    Attributes
    ----------
    dealer, holder : int
        Ids of the two clients, equal if a client changed a share of the client's own secret.
    """

    dealer: int
    holder: int


@dataclass(frozen=True)
class Verdict:
    """A proof, for everybody who has the registry, that a client broke the protocol.

    `secagg.blame.check` and ``secagg judge`` verify the proof. A verdict names no honest client
    and has no share of an honest client.

    Attributes
    ----------
    client : int
        Id of the client at fault.
    kind : str
        The client's fault. ``"shares"``: the dealt shares do not give the published secret.
        ``"answer"``: a revealed share is not the share that was accepted. ``"complaints"``:
        more holders complain of the client than may collude. ``"contribution"``: parts of
        pairwise keys are not of the client's seed. ``"complainer"``: complaints of more dealers
        than may be at fault.
    data : bytes
        The proof (docs/protocol.md, §14).
    """

    client: int
    kind: str
    data: bytes

    def __repr__(self) -> str:
        return f"<Verdict: client {self.client}, {self.kind}, {len(self.data):,} bytes>"


class RemoteProtocolError(SecAggError):
    """A message from the peer breaks the protocol.

    Attributes
    ----------
    sender : int or None
        The client that sent the message. None for the server, and for an unknown sender.
    phase : str
        The round of the protocol, e.g. ``"masked_input"``.
    check : str
        A short stable name of the check that failed, e.g. ``"length"``.
    disputes : tuple of Dispute
        For the check ``"shares"``: the dealer of the secret that the shares do not give, and
        each client that revealed a share of this secret.
    helpers : tuple of int
        In one-shot sums: numbers of the helpers with wrong or contradictory messages.
    verdicts : tuple of Verdict
        In the active variant: proofs against clients, found until the error was raised.
    """

    def __init__(
        self,
        message: str,
        *,
        sender: int | None,
        phase: str,
        check: str,
        disputes: tuple[Dispute, ...] = (),
        helpers: tuple[int, ...] = (),
        verdicts: tuple[Verdict, ...] = (),
    ) -> None:
        self.sender = sender
        self.phase = printable(phase)  # the peer's words may be in all three
        self.check = printable(check)
        self.disputes = disputes
        self.helpers = helpers
        self.verdicts = verdicts
        who = "" if sender is None else f"client {sender}, "
        super().__init__(f"{who}{self.phase}, {self.check}: {printable(message)}")


class TooFewSurvivors(SecAggError):
    """Fewer clients are left than the threshold, the minimum cohort or the ledger asks for.

    Nothing has been unmasked and there is no partial result. The machine has ended.

    Attributes
    ----------
    phase : str
        The round with too few clients.
    survivors, needed : int
        Actual and required number of clients. If a `CohortLedger` rejects the cohort, its
        difference to an earlier cohort, in clients, and ``min_difference``.
    verdicts : tuple of Verdict
        In the active variant: proofs against clients, found until the round ended.
    disputes : tuple of Dispute
        In the active variant, after the masked inputs: complaints that convict nobody.
    """

    def __init__(
        self,
        message: str,
        *,
        phase: str,
        survivors: int,
        needed: int,
        verdicts: tuple[Verdict, ...] = (),
        disputes: tuple[Dispute, ...] = (),
    ) -> None:
        self.phase = phase
        self.survivors = survivors
        self.needed = int(needed)  # a plain int, also of parameters whose m is a default
        self.verdicts = verdicts
        self.disputes = disputes
        super().__init__(f"{phase}: {message}")


class VaultError(SecAggError):
    """A suspended client cannot be restored, or its vault cannot be read or written.

    Nothing was answered. A client that has lost its state drops out of the round.

    Attributes
    ----------
    check : str
        ``"used"``: the state was restored before. ``"latest"``: the state is not the vault's
        latest state, or was altered. ``"client"``, ``"session"``, ``"parameters"``,
        ``"version"``: the state is of another client, session, parameters or version.
        ``"length"``, ``"content"``: the state is damaged. ``"file"``: the vault's file cannot
        be read or written.
    """

    def __init__(self, message: str, *, check: str) -> None:
        self.check = check
        super().__init__(f"{check}: {message}")
