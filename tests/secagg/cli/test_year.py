"""A year of monthly, noised sums of counts: commands only, each in a process of its own.

Five organisations and two helpers take part over TLS. Members come late and stay away, a helper
and the server are killed, an identity is replaced, a certificate renewed, the disk is full, and
the server is upgraded from an older package.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from cli_processes import MAIN, ROOT, invoke
from fast_clock import FastClock
from secagg.cli.records import Chain, name_of

pytestmark = pytest.mark.slow

NAMES = ("aachen", "bern", "cork", "delft", "essen")
COLUMNS = ("births", "deaths", "visits")
MONTHS = [f"2026-{month:02d}" for month in range(1, 13)]
SIGMA = 2
DEADLINE = 20
PATIENCE = 120.0
"""Seconds after which a step of the test counts as failed."""
OLDER = "OLDER_WHEEL"
"""Variable with the path of the older wheel."""
COMMIT = "69f39be439a354dc213a7f37191924bb62d1baf5"
"""Commit of the older package, if the variable is not set."""


def wheel_of(commit: str, folder: Path) -> Path:
    """Build the wheel of a commit."""
    archive = folder / "older.tar"
    run = subprocess.run
    run(["git", "-C", ROOT, "archive", "-o", archive, commit], check=True, capture_output=True)
    shutil.unpack_archive(archive, folder / "sources", filter="data")
    flags = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "-w", folder)
    command = [sys.executable, "-m", "pip", "wheel", *flags, folder / "sources"]
    run(command, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path | str:
    """Folder with the older package, or the reason why there is none."""
    folder = tmp_path_factory.mktemp("older")
    try:
        wheel = Path(os.environ[OLDER]) if OLDER in os.environ else wheel_of(COMMIT, folder)
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        return f"no wheel of {COMMIT}, and {OLDER} is not set: {error}"
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Small disk of its own for the server's files, which the test can fill."""
    path = tmp_path / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(path)]
    try:
        subprocess.run(mount, check=True, capture_output=True)  # noqa: S603
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        pytest.skip(f"a full disk needs a small disk, which root can mount: {error}")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)  # noqa: S603, S607


def until(true: Callable[[], Any]) -> Any:
    """Wait until a condition holds, and return its value."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if value := true():
            return value
        time.sleep(0.05)
    raise AssertionError("the condition does not come true")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def middle_of_next(month: str) -> datetime:
    """Return a moment in the month after a month."""
    return datetime.fromisoformat(f"{month}-15").replace(tzinfo=UTC) + timedelta(days=31)


class Year:
    """All processes of a year, and what the server printed.

    Parameters
    ----------
    folder : Path
    disk : Path
        Folder for the server's state and sums.
    older : Path or str
        See `older`.
    """

    def __init__(self, folder: Path, disk: Path, older: Path | str) -> None:
        self.folder, self.disk = folder, disk
        self.older = older if isinstance(older, Path) else ROOT
        self.clock = FastClock(folder / "clock", middle_of_next(MONTHS[0]))
        self.ports = {name: free_port() for name in ("server", "operator", "1", "2")}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.log = folder / "server.log"
        self._authority = certificate(folder / "ca.pem", folder / "ca.key", None)
        self.renew("server")
        self.registered: dict[str, str] = {}

    def renew(self, name: str) -> None:
        """Write a new certificate and key."""
        certificate(self.folder / f"{name}.pem", self.folder / f"{name}.key", self._authority)

    def command(self, *words: object) -> str:
        """Run a command in this process, and return the output."""
        ran = invoke(*words)
        assert ran.exit_code == 0, ran.stderr
        return ran.stdout.strip()

    def start(self, name: str, *words: object, site: Path = ROOT) -> None:
        """Start a command as a process; `name` is its log."""
        clocked = name == "server"
        script = [str(ROOT / "tests" / "support" / "fast_clock.py"), str(self.folder / "clock")]
        given = script if clocked else list(MAIN)
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(  # noqa: S603
                [sys.executable, *given, *map(str, words)],
                cwd=self.folder,
                env=os.environ | {"PYTHONPATH": str(site)},
                stdout=log,
                stderr=log,
            )

    def stop(self, name: str, how: signal.Signals) -> None:
        """End a process."""
        process = self.processes[name]
        process.send_signal(how)
        if how in (signal.SIGKILL, signal.SIGTERM):
            process.wait(PATIENCE)

    def register(self, name: str) -> None:
        """Make a new key for an organisation, and enter the key into the registry."""
        key = self.folder / f"{name}.key.pem"
        key.unlink(missing_ok=True)
        public = self.command("identity", "keygen", key)
        again = ["--replace"] if name in self.registered else []
        registry = self.folder / "clients.json"
        self.command("identity", "register", registry, name, public, *again)
        self.registered[name] = public

    def helper(self, number: int, *, site: Path = ROOT) -> None:
        """Start a helper, with a new journal at the first start."""
        tls = ("--certificate", "server.pem", "--key", "server.key")
        at = ("--port", self.ports[str(number)], *tls)
        journal = f"{number}.journal"
        aggregator = ("--aggregator", self.registered["aggregator"])
        self.start(f"helper {number}", "helper", "serve", journal, *aggregator, *at, site=site)

    def member(self, name: str, *, site: Path = ROOT) -> None:
        """Start an organisation."""
        url = f"https://127.0.0.1:{self.ports['server']}"
        files = ("--vector", f"counts/{name}-{{period}}.csv", "--integers")
        keys = ("--client", name, "--identity", f"{name}.key.pem", "--authority", "ca.pem")
        more = ("--helpers", "helpers.json", "--min-clients", 4, "--patience", PATIENCE)
        self.start(name, "join", url, *keys, *files, *more, site=site)

    def server(self, *, site: Path = ROOT) -> None:
        """Start the server."""
        sums = ("--columns", ",".join(COLUMNS), "--integers", "--clip", 100_000)
        noise = ("--noise", SIGMA, "--helpers", "helpers.json", "--authority", "ca.pem")
        kept = ("--out", self.disk / "sums", "--folder", self.disk / "state", "--name", "year")
        when = ("--every", "month", "--rounds", 12, "--deadline", DEADLINE)
        ports = ("--port", self.ports["server"], "--operator-port", self.ports["operator"])
        tls = ("--certificate", "server.pem", "--key", "server.key")
        more = ("--min-clients", 4, "--identity", "aggregator.key.pem")
        words = (*sums, *noise, *kept, *when, *ports, *tls, *more)
        self.start("server", "serve", "clients.json", *words, site=site)

    def status(self) -> dict[str, Any]:
        """Return the server's status, or an empty one while there is no server."""
        try:
            url = f"http://127.0.0.1:{self.ports['operator']}/status.json"
            with urllib.request.urlopen(url, timeout=5) as page:
                found: dict[str, Any] = json.load(page)
                return found
        except OSError:
            return {}

    def present(self) -> int:
        """Return the number of members that a gathering has."""
        gathering = self.status().get("gathering")
        return gathering["present"] if gathering else 0

    def begin(self, month: str) -> None:
        """Let the clock run into the next month."""
        self.clock.run_to(middle_of_next(month))

    def end(self, month: str) -> None:
        """Wait for the record of a month."""
        path = self.disk / "sums" / name_of(MONTHS.index(month))

        def recorded() -> bool:
            running = self.processes["server"].poll() is None
            assert running or path.exists(), (self.folder / "server.log").read_text()
            return path.exists()

        until(recorded)


def certificate(path: Path, key_path: Path, authority: Any) -> tuple[Any, Any]:
    """Write a certificate and its key; without an authority, of an authority."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    common = "trial" if authority is None else "server"
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common)])
    issuer, signer = (name, key) if authority is None else authority
    local = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    public = key.public_key()
    made = (
        x509.CertificateBuilder(issuer, name, public, x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=3650))
        .add_extension(local, critical=False)
        .add_extension(x509.BasicConstraints(authority is None, None), critical=True)
        .sign(signer, hashes.SHA256())
    )
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    key_path.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, none))
    return name, key


def count(name: str, month: str) -> list[int]:
    """Return the counts of an organisation in a month."""
    u, m = NAMES.index(name), MONTHS.index(month)
    return [100 * u + m, 7 * m, 1000 + 13 * u * m]


@pytest.fixture
def year(tmp_path: Path, disk: Path, older: Path | str) -> Iterator[Year]:
    """Keys, registry, counts and helpers of a year."""
    made = Year(tmp_path, disk, older)
    (tmp_path / "counts").mkdir()
    for name in NAMES:
        made.register(name)
        for month in MONTHS:
            path = tmp_path / "counts" / f"{name}-{month}.csv"
            rows = [",".join(COLUMNS), ",".join(map(str, count(name, month)))]
            path.write_text("\n".join(rows) + "\n")
    key = tmp_path / "aggregator.key.pem"
    made.registered["aggregator"] = made.command("identity", "keygen", key)
    entries = []
    for j in (1, 2):
        keygen = ("helper", "keygen", tmp_path / f"{j}.journal", "--suite", "x25519", "--json")
        entry = json.loads(made.command(*keygen))
        entries.append(entry | {"url": f"https://127.0.0.1:{made.ports[str(j)]}"})
    (tmp_path / "helpers.json").write_text(json.dumps(entries))
    try:
        yield made
    finally:
        for process in made.processes.values():
            process.kill()
            process.wait()


def test_year_of_monthly_counts_has_twelve_true_records(year):
    began = time.monotonic()
    # an older server and older members begin
    year.helper(1)
    year.helper(2, site=year.older)
    year.server(site=year.older)
    for name in NAMES[:4]:
        year.member(name, site=year.older)
    # January: a late member
    until(lambda: year.present() == 4)
    year.member("essen")
    year.end("2026-01")
    year.begin("2026-02")
    year.end("2026-02")
    # March: a new release of the server
    year.stop("server", signal.SIGTERM)
    year.server()
    until(year.status)
    year.begin("2026-03")
    year.end("2026-03")
    # April: a member is away
    year.stop("delft", signal.SIGKILL)
    year.begin("2026-04")
    year.end("2026-04")
    year.member("delft")
    year.begin("2026-05")
    year.end("2026-05")
    # June: a helper is killed, and comes back while the server waits
    year.stop("helper 1", signal.SIGKILL)
    year.begin("2026-06")
    until(lambda: b"does not answer" in year.log.read_bytes().rpartition(b"2026-05.csv")[2])
    year.helper(1)
    year.end("2026-06")
    # July: the server is killed in the middle of the reports
    year.stop("bern", signal.SIGSTOP)
    year.begin("2026-07")
    until(lambda: [one for one in year.status().get("attempts", ())[:1] if reported(one) == 4])
    year.stop("server", signal.SIGKILL)
    year.server()
    year.stop("bern", signal.SIGCONT)
    year.end("2026-07")
    # August: another key of a member, and the server reads the registry again
    year.stop("cork", signal.SIGKILL)
    year.stop("server", signal.SIGTERM)
    year.register("cork")
    year.server()
    year.member("cork")
    year.begin("2026-08")
    year.end("2026-08")
    # September: a new certificate of the same authority
    year.stop("server", signal.SIGTERM)
    year.renew("server")
    year.server()
    year.begin("2026-09")
    year.end("2026-09")
    # October: a full disk
    filler = year.disk / "filler"
    fill(filler)
    year.begin("2026-10")
    assert year.processes["server"].wait(PATIENCE) == 1
    filler.unlink()
    year.server()
    year.end("2026-10")
    # November: a member has no counts, and stays
    (year.folder / "counts" / "bern-2026-11.csv").unlink()
    year.begin("2026-11")
    year.end("2026-11")
    year.begin("2026-12")
    year.end("2026-12")
    # missing clients in two months: a status of its own
    assert year.processes["server"].wait(PATIENCE) == 3
    for name in NAMES:
        assert year.processes[name].wait(PATIENCE) == 0, (
            year.folder / f"{name}.log"
        ).read_text()
    judge(year)
    print(f"a year in {time.monotonic() - began:.0f} s, twelve true records")


def fill(path: Path) -> None:
    """Write a file until the disk is full."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass


def reported(attempt: dict[str, Any]) -> int:
    """Return the number of reports of an attempt."""
    answered = [one["answered"] for one in attempt["phases"] if one["name"] == "report"]
    return answered[-1] if answered else 0


def judge(year: Year) -> None:
    """Compare all records and sums with the counts and the events of the year."""
    sums = year.disk / "sums"
    checked = invoke("verify", sums)
    assert checked.exit_code == 0, checked.stderr
    records = Chain.read(sums).records
    assert [record.period for record in records] == MONTHS
    away = {"2026-04": ("delft", "never came"), "2026-11": ("bern", "declined")}
    noises = []
    for record in records:
        missing = [(one.client, one.why) for one in record.missing]
        assert missing == ([away[record.period]] if record.period in away else [])
        assert record.outcome == ("partial" if missing else "full")
        assert set(record.clients) == set(NAMES) - {name for name, _ in missing}
        assert record.resumed == (record.period == "2026-07")
        assert record.sum is not None
        with (sums / record.sum.file).open(newline="") as file:
            header, row = csv.reader(file)
        assert header == list(COLUMNS)
        exact = map(sum, zip(*(count(u, record.period) for u in record.clients), strict=True))
        noises += [int(found) - true for found, true in zip(row, exact, strict=True)]
        assert record.noise == SIGMA
    # two seeds, each with noise of σ = 2: beyond 10 σ √2 with a probability below 2^−71
    assert max(map(abs, noises)) <= 29
    assert any(noises)
    shown = invoke("verify", sums, "--period", "2026-04").stdout.splitlines()
    assert shown[:2] == ["2026-04: sum of 4 of 5 vectors", "  missing delft: never came"]


def test_year_had_an_upgrade(older):
    if isinstance(older, str):
        pytest.skip(older)
    assert (older / "secagg" / "cli" / "records.py").exists()
