from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings

# "full": `make test-full`, and `make test-all` for the folders of --full. "few": `make
# test-python`. See support/effort.py
settings.register_profile(
    "full",
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.register_profile("fast", settings.get_profile("full"), max_examples=20)
settings.register_profile("few", settings.get_profile("full"), max_examples=5)
settings.load_profile("fast")

# a collection keeps nearly all that it makes, and a search of garbage goes through all of it
gc.disable()

# with threads of its own for small matrices, each process waits for processors that others use
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# a shell that runs the tests in the background lets them ignore SIGINT, which some tests send
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# treat an empty variable as unset, before modules check whether their data is there
if not os.environ.get("FEDMF_DATA"):
    os.environ.pop("FEDMF_DATA", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full",
        action="append",
        default=[],
        metavar="FOLDER",
        help='draw the examples of the profile "full" for the properties of this folder',
    )


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Import the modules of the folders of --full under the profile "full"."""
    root, before = collector.config.rootpath, settings.get_current_profile_name()
    if any(collector.path.is_relative_to(root / one) for one in collector.config.option.full):
        settings.load_profile("full")
    try:
        return (yield)
    finally:
        settings.load_profile(before)


@pytest.fixture
def ram_path(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: kill −9 loses nothing there, and sync is free."""
    shared = Path("/dev/shm")  # noqa: S108
    if not os.access(shared, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        yield Path(folder)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return a worker more than processors: many tests wait, for processes and deadlines."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark test_check07_… with check(7), to select lines of a list; put large tests first.

    A large test that begins last keeps one worker busy while the others have nothing to do.
    """
    for item in items:
        name = item.name.removeprefix("test_check")
        if name != item.name and name[:2].isdigit():
            item.add_marker(pytest.mark.check(int(name[:2])))
    items.sort(key=lambda item: item.get_closest_marker("large") is None)


def pytest_collection_finish() -> None:
    """Look for garbage again, and let servers of tests ask every 2 ms whether they should end.

    A server of uvicorn looks two to four times before it has ended, else every 100 ms.
    """
    gc.enable()
    if server := sys.modules.get("uvicorn.server"):
        hasty = {"sleep": lambda seconds: asyncio.sleep(seconds / 50)}
        server.asyncio = SimpleNamespace(**vars(asyncio) | hasty)
