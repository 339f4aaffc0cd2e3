from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from secagg import _fast
from secagg.oneshot import HelperJournal

if TYPE_CHECKING:
    from flower_helpers import Door, Party

# without kernels these tests show the same, and what they call is tested
collect_ignore_glob = [] if find_spec("flwr") and _fast.COMPILED else ["test_*.py"]
# rounds with faults log their errors with tracebacks, a quarter of the processor time here
logging.getLogger("flwr.secagg").setLevel(logging.CRITICAL)


@pytest.fixture(scope="package")
def journals() -> Iterator[list[HelperJournal]]:
    """Journals of four helpers; every sum has parameters of its own, so tests share them."""
    shared = Path("/dev/shm")  # noqa: S108
    with (
        TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder,
        ExitStack() as stack,
    ):
        paths = [Path(folder) / f"{j}" for j in range(4)]
        yield [stack.enter_context(HelperJournal.create(path, "x25519")) for path in paths]


def party_of(journals: list[HelperJournal], *, active: bool) -> Party:
    from flower_helpers import Party  # needs flwr

    return Party(journals[: 4 if active else 3], active=active)


@pytest.fixture(params=["semi-honest", "active"])
def party(request: pytest.FixtureRequest, journals: list[HelperJournal]) -> Party:
    return party_of(journals, active=request.param == "active")


@pytest.fixture
def semi_honest(journals: list[HelperJournal]) -> Party:
    return party_of(journals, active=False)


@pytest.fixture
def active(journals: list[HelperJournal]) -> Party:
    return party_of(journals, active=True)


@pytest.fixture(params=["four", "one"])
def door(request: pytest.FixtureRequest, semi_honest: Party) -> Door:
    from flower_helpers import Door

    return Door(request.param, semi_honest)
