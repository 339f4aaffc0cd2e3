"""Parties of a run: database, helpers, and the commands ``secagg collect``, a process each."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from benches.collection.load import CLIP, HELPERS, Load, write_registry
from benches.collection.postgres import PostgreSQL
from benches.collection.programs import ROOT, SECAGG, Program
from secagg import Identity
from secagg.oneshot import HelperJournal

_COLLECT = (*SECAGG, "collect")


class Parties(ExitStack):
    """Parties with files in a folder, which end with the block.

    Attributes
    ----------
    database : PostgreSQL
    helpers, serves, works, generators : list of Program
    closer : Program
        Command that leads the batch to the sum, which `start` does not start.
    ports, helper_ports : list of int
    journals : list of Path
    out : Path
        Folder of the sums.
    """

    def __init__(self, load: Load, folder: Path, cache: Path | None = None) -> None:
        super().__init__()
        self.load, self.folder = load, folder
        load.write(folder)
        self._registry = (cache or folder) / f"registry-{load.clients}.json"
        if not self._registry.exists():
            write_registry(self._registry, load.ids)
        self.ports = [free_port() for _ in range(load.serves)]
        self.helper_ports = [free_port() for _ in range(HELPERS)]
        self.journals = [folder / f"helper-{j}" for j in range(1, HELPERS + 1)]
        self.out = folder / "sums"
        self._write_keys()
        self.database = PostgreSQL(folder / "postgres")
        url, registry = self.database.url, ("--registry", self._registry)
        keys = "--helpers", folder / "helpers.json", "--identity", folder / "a.pem"
        lease = "--lease", load.lease
        self.serves = [
            self._program(
                f"serve-{at}", "collection: ", "serve", url, *registry, "--port", port
            )
            for at, port in enumerate(self.ports)
        ]
        self.works = [
            self._program(f"work-{at}", "working", "work", url, *registry, *keys, *lease)
            for at in range(load.works)
        ]
        out = "--out", self.out
        self.closer = self._program("close", "", "close", url, *registry, *keys, *out, *lease)
        self.generators = [
            Program(
                f"generator-{at}",
                [sys.executable, "-m", "benches.collection.generator", folder, at, *self.ports],
                folder,
                "generating",
            )
            for at in range(load.generators)
        ]
        policy = "--length", load.length, "--clip", CLIP, "--modulus-bits", load.bits
        self._begin = [*_COLLECT, "begin", url, self._registry, *policy, *keys]

    def start(self) -> None:
        """Start everybody but `closer`, begin the session, and count from the first report."""
        self.callback(self.database.stop)
        self.database.start()
        for one in (*self.helpers, *self.serves, *self.works, *self.generators, self.closer):
            self.callback(one.kill)
        self._start(self.helpers)
        subprocess.run(  # noqa: S603
            list(map(str, self._begin)), check=True, stdout=subprocess.DEVNULL, cwd=ROOT
        )
        self._start([*self.serves, *self.works])
        self._start(self.generators)

    def _start(self, programs: list[Program]) -> None:
        for one in programs:
            one.start()
        for one in programs:
            one.await_ready()
            one.mark()

    def _program(self, name: str, ready: str, *words: object) -> Program:
        return Program(name, (*_COLLECT, *words), self.folder, ready)

    def _write_keys(self) -> None:
        aggregator, entries = Identity.generate(), []
        (self.folder / "a.pem").write_bytes(aggregator.to_pem())
        self.helpers = []
        for path, port in zip(self.journals, self.helper_ports, strict=True):
            with HelperJournal.create(path, self.load.suite) as journal:
                box, identity = (key.hex() for key in journal.public)
            entry = {"suite": self.load.suite, "hpke": box, "ed25519": identity}
            entries.append(entry | {"url": f"http://127.0.0.1:{port}"})
            words = "--aggregator", aggregator.public.hex(), "--registry", self._registry
            command = *SECAGG, "helper", "serve", path, *words, "--port", port
            self.helpers.append(Program(path.name, command, self.folder, "helper: "))
        (self.folder / "helpers.json").write_text(json.dumps(entries), encoding="utf-8")


def free_port() -> int:
    """Return a port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        port: int = one.getsockname()[1]
        return port
