"""Helpers of one-shot sums, served on loopback in a thread of this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal

from secagg import Identity, Registry
from secagg.http import serve_helper
from secagg.oneshot import HelperJournal
from secagg.simulate import temporary_journals


class Helpers:
    """Helpers that run; a job names them by `entries`.

    Attributes
    ----------
    entries : list of dict
        What ``secagg helper keygen --json`` prints of each, with its "url".
    identity : str
        File with the key of the aggregator.
    trusted : list of str
        Ed25519 keys in hex, for `SitePolicy`.
    """

    def __init__(
        self, folder: Path, journals: list[HelperJournal], portal: BlockingPortal
    ) -> None:
        key = Identity.generate()
        path = folder / "aggregator.pem"
        path.write_bytes(key.to_pem())
        self.identity, self._aggregator = str(path), key.public
        self.journals, self._portal = journals, portal
        self.entries: list[dict[str, str]] = []
        self._stacks: list[ExitStack] = []

    @property
    def trusted(self) -> list[str]:
        return [entry["ed25519"] for entry in self.entries]

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of `OneShotFedAvg`."""
        return {"helpers": self.entries, "identity": self.identity}

    def serve(self, journal: HelperJournal, registry: Registry | None = None) -> None:
        """Serve one more helper."""
        service = serve_helper(journal, self._aggregator, port=0, registry=registry)
        stack = ExitStack()
        url = stack.enter_context(self._portal.wrap_async_context_manager(service))
        hpke, ed25519 = journal.public
        self.entries.append(
            {"url": url, "suite": "x25519", "hpke": hpke.hex(), "ed25519": ed25519.hex()}
        )
        self._stacks.append(stack)

    def end(self, number: int) -> None:
        """End the helper with this number, from 1 on."""
        self._stacks[number - 1].close()


@contextmanager
def helpers(folder: Path, count: int, registry: Registry | None = None) -> Iterator[Helpers]:
    """Yield helpers that run until the end of the block."""
    with temporary_journals(count, "x25519") as journals, start_blocking_portal() as portal:
        made = Helpers(folder, journals, portal)
        for journal in journals:
            made.serve(journal, registry)
        try:
            yield made
        finally:
            for number in range(1, len(made.entries) + 1):
                made.end(number)
