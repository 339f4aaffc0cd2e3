"""Private sums as a service: keys, a registry, a server, clients and helpers as processes."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import stat
from pathlib import Path

import numpy as np
import pytest

from cli_processes import address, invoke, process
from secagg.cli import identity as commands
from secagg.cli.files import read_identity, read_keys, read_registry
from secagg.protocol.client_ids import ClientKey
from secagg.testing import make_identity

NAMES = ("alice", "Zoë", "7")


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """Folder with identities, a registry and vectors."""
    for u, name in enumerate(NAMES):
        made = invoke("identity", "keygen", tmp_path / f"{name}.pem")
        added = invoke("identity", "register", tmp_path / "r.json", name, made.stdout.strip())
        assert (made.exit_code, added.exit_code) == (0, 0)
        np.save(tmp_path / f"{name}.npy", np.full(5, u / 4))
    return tmp_path


def joined(folder: Path, url: str, name: str, *more: object) -> list[object]:
    files = ("--identity", folder / f"{name}.pem", "--vector", folder / f"{name}.npy")
    return ["join", url, "--client", name, *files, *more]


def sum_over_http(
    folder: Path, *more: object, member: tuple[object, ...] = (), counted: str = "sums"
) -> None:
    size = ("--length", 5, "--clip", 8, "--out", folder / "sums")
    ports = ("--port", 0, "--operator-port", 0, "--json")
    with process("serve", folder / "r.json", *size, *ports, *more) as server:
        url = address(server, "members")
        members = [process(*joined(folder, url, name, *member)) for name in NAMES]
        running = [one.__enter__() for one in members]
        for one in running:
            out, error = one.communicate()
            assert (one.returncode, out) == (0, f"{counted}: 1\n"), error
        for one in members:
            one.__exit__(None, None, None)
        out, error = server.communicate()
        assert server.returncode == 0, error
    path = str(folder / "sums" / "sum-0.npy")
    (found,) = json.loads(out)["sums"]
    assert (found["out"], found["survivors"], found["missing"]) == (path, 3, [])
    assert found["clients"] == sorted(NAMES)
    assert invoke("verify", folder / "sums").exit_code == 0
    assert np.load(path).tolist() == [0.75] * 5


@pytest.mark.large
def test_service_writes_the_sum_of_its_clients(keys):
    registry = ("--registry", keys / "r.json")
    sum_over_http(keys, "--security", "active", "--folder", keys / "state", member=registry)


@pytest.mark.large
@pytest.mark.parametrize(("least", "status"), [(3, 3), (4, 2)])
def test_partial_sum_has_a_status_of_its_own_or_is_not_written(keys, least, status):
    made = invoke("identity", "keygen", keys / "away.pem").stdout.strip()
    invoke("identity", "register", keys / "r.json", "away", made)
    size = ("--length", 5, "--clip", 8, "--out", keys / "sums", "--deadline", 6, "--json")
    ports = ("--port", 0, "--operator-port", 0, "--threshold", 3, "--min-clients", least)
    with process("serve", keys / "r.json", *size, *ports) as server:
        url = address(server, "members")
        members = [process(*joined(keys, url, name)) for name in NAMES]
        for one in members:
            one.__enter__()
        out, error = server.communicate()
        assert server.returncode == status, error
        for one in members:
            one.__exit__(None, None, None)
    (found,) = json.loads(out)["sums"]
    written = [path.name for path in (keys / "sums").iterdir() if path.suffix == ".npy"]
    assert written == (["sum-0.npy"] if status == 3 else [])
    assert found["missing"] == [
        {"client": "away", "why": "never came", "phase": "", "check": ""}
    ]


@pytest.mark.large
def test_service_opens_sums_with_helpers(keys):
    invoke("identity", "keygen", keys / "aggregator.pem")
    public = read_identity(keys / "aggregator.pem").public.hex()
    entries = []
    for j in (1, 2):
        journal = keys / f"{j}.journal"
        made = invoke("helper", "keygen", journal, "--suite", "x25519", "--json")
        entries.append(json.loads(made.stdout))
    more = ("--aggregator", public, "--port", 0)
    served = [process("helper", "serve", keys / f"{j}.journal", *more) for j in (1, 2)]
    with served[0] as first, served[1] as second:
        for entry, started in zip(entries, (first, second), strict=True):
            entry["url"] = address(started, "helper")
        (keys / "helpers.json").write_text(json.dumps(entries))
        helpers = ("--helpers", keys / "helpers.json")
        more = (*helpers, "--identity", keys / "aggregator.pem")
        sum_over_http(keys, *more, member=helpers, counted="reports sent")


def test_keys_are_private_files_that_are_not_overwritten(tmp_path):
    path = tmp_path / "key.pem"
    made = json.loads(invoke("identity", "keygen", path, "--json").stdout)
    assert read_identity(path).public.hex() == made["ed25519"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_bytes()
    again = invoke("identity", "keygen", path)
    assert (again.exit_code, again.stdout, again.stderr.count("\n")) == (2, "", 1)
    assert path.read_bytes() == before


def test_registry_has_names_and_ids(keys):
    registry = read_registry(keys / "r.json")
    assert registry["alice"] == read_identity(keys / "alice.pem").public
    assert registry[7] == read_identity(keys / "7.pem").public
    same = invoke("identity", "register", keys / "r.json", "eve", registry["alice"].hex())
    assert same.exit_code == 2
    assert len(read_registry(keys / "r.json")) == len(NAMES)


def test_a_key_is_replaced_only_on_demand(keys):
    def register(name: str, key: bytes, *more: str) -> tuple[int, str]:
        ran = invoke("identity", "register", keys / "r.json", name, key.hex(), "--json", *more)
        return ran.exit_code, json.loads(ran.stdout)["change"] if ran.stdout else ""

    invoke("identity", "keygen", keys / "new.pem")
    old, new = (read_identity(keys / f"{name}.pem").public for name in ("alice", "new"))
    assert register("alice", new) == (2, "")
    assert register("alise", new, "--replace") == (2, "")
    assert register("alice", old) == (0, "unchanged")
    assert read_registry(keys / "r.json")["alice"] == old
    assert register("alice", new, "--replace") == (0, "replaced")
    assert read_registry(keys / "r.json")["alice"] == new
    assert register("alise", old) == (0, "added")


def test_registry_is_locked_from_its_reading_to_its_writing(keys, monkeypatch):
    def read(path: Path) -> dict[ClientKey, bytes]:
        folder = os.open(path.parent, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(folder)
        return read_keys(path)

    monkeypatch.setattr(commands, "read_keys", read)
    key = make_identity(9).public.hex()
    assert invoke("identity", "register", keys / "r.json", "zoe", key).exit_code == 0


CERTIFICATE = ["--certificate", "c.pem"]
HELPERS = ["--helpers", "r.json"]
LOCAL = "http://127.0.0.1:1"
ERRORS = {
    "typo": (["serve", "typo.json"], "typo.json: line 2"),
    "no key": (["serve", "r.json", *CERTIFICATE], "--certificate and --key"),
    "no certificate": (["serve", "r.json", *CERTIFICATE, "--key", "7.pem"], "c.pem does not"),
    "helpers alone": (["serve", "r.json", *HELPERS], "--helpers and --identity"),
    "no helpers": (["serve", "r.json", *HELPERS, "--identity", "7.pem"], "r.json: "),
    "plain url": (["join", "http://example.org"], "or --allow-plain-http where"),
    "identity": (["join", LOCAL, "--identity", "r.json"], "identity keygen"),
    "authority": (["join", "https://127.0.0.1:1", "--authority", "r.json"], "PEM"),
    "no authority": (["join", "https://127.0.0.1:1", "--authority", "a"], "a does not exist"),
    "aggregator": (["helper", "serve", "j", "--aggregator", "xyz"], "--aggregator"),
}


@pytest.mark.parametrize(("arguments", "message"), ERRORS.values(), ids=list(ERRORS))
def test_errors_are_one_line(keys, monkeypatch, arguments, message):
    monkeypatch.chdir(keys)
    (keys / "typo.json").write_text('{"alice": "00",\n bob: "00"}')
    (keys / "[]").write_text("[]")
    if arguments[0] == "serve":
        ports = ["--port", "0", "--operator-port", "0"]
        arguments = [*arguments, "--length", "5", "--clip", "8", "--out", "sums", *ports]
    elif arguments[0] == "join":
        defaults = {"--client": "7", "--identity": "7.pem", "--vector": "7.npy"}
        missing = [item for item in defaults.items() if item[0] not in arguments]
        arguments = [*arguments, *(word for item in missing for word in item)]
    else:
        invoke("helper", "keygen", "j", "--suite", "x25519")
    ran = invoke(*arguments)
    assert message in ran.stderr
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("option", ["--port", "--operator-port"])
def test_port_in_use_is_stated_once(keys, option):
    size = ("--length", 5, "--clip", 8, "--out", keys / "sums")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ports = {"--port": 0, "--operator-port": 0} | {option: port}
        given = (word for item in ports.items() for word in item)
        ran = invoke("serve", keys / "r.json", *size, *given)
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert (ran.stderr.count(str(port)), ran.stderr.count("Errno")) == (1, 0)
    assert "another port" in ran.stderr


@pytest.mark.parametrize("command", ["serve", "helper"])
def test_ctrl_c_ends_a_server(keys, command):
    ports = ("--port", 0, "--operator-port", 0)
    arguments = ("serve", keys / "r.json", "--length", 5, "--clip", 8, "--out", keys, *ports)
    if command == "helper":
        invoke("helper", "keygen", keys / "j", "--suite", "x25519")
        public = read_identity(keys / "7.pem").public.hex()
        arguments = ("helper", "serve", keys / "j", "--aggregator", public, "--port", 0)
    with process(*arguments) as server:
        address(server, "members" if command == "serve" else "helper")
        server.send_signal(signal.SIGINT)
        out, error = server.communicate()
    assert (server.returncode, out) == (130, "")
    assert error.splitlines()[-1] == "secagg: interrupted"
    assert "Traceback" not in error
