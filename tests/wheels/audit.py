"""Inspection of a wheel: its tags, its compiled parts, their processor and what they link."""

from __future__ import annotations

import email
import json
import subprocess
import sys
import zipfile
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

from wheels.targets import Target

KNOWN = {".py", ".pyi", ".typed", ".html", ".toml", ""}
"""Ends of the names of the other files of a wheel, without those of its metadata."""


def audit(wheel: Path, target: Target) -> None:
    """Exit with a message unless the wheel has the stable ABI and is made for that platform."""
    findings = strangers(wheel, target) + wrong_tag(wheel, target) + wrong_parts(wheel, target)
    if findings:
        raise SystemExit(f"{wheel.name}: {'; '.join(findings)}")
    run("abi3audit", "--strict", wheel)
    if "linux" in target.tag:
        # no library of this machine is looked at
        shown = run("auditwheel", "show", "--json", "--ldpaths", wheel.parent, wheel)
        found = json.loads(shown)["overall_tag"]
        if found != target.tag:
            raise SystemExit(f"{wheel.name}: auditwheel finds {found}")


def run(module: str, *arguments: str | Path) -> str:
    """Return what a tool prints, or exit with its status."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)  # noqa: S603
    if done.returncode:
        raise SystemExit(f"{done.stdout}{module}: exit status {done.returncode}")
    return done.stdout


def strangers(wheel: Path, target: Target) -> list[str]:
    """Return findings of missing and superfluous files."""
    names = set(zipfile.ZipFile(wheel).namelist())
    others = {
        name
        for name in names - target.parts
        if ".dist-info/" not in name and PurePosixPath(name).suffix not in KNOWN
    }
    return [f"{name} is missing" for name in sorted(target.parts - names)] + [
        f"{name} does not belong there" for name in sorted(others)
    ]


def wrong_tag(wheel: Path, target: Target) -> list[str]:
    """Return findings in the wheel's name and in its metadata."""
    expected = f"cp311-abi3-{target.tag}"
    archive = zipfile.ZipFile(wheel)
    (path,) = (name for name in archive.namelist() if name.endswith(".dist-info/WHEEL"))
    tags = email.message_from_bytes(archive.read(path)).get_all("Tag")
    findings = [] if tags == [expected] else [f"its metadata has the tags {tags}"]
    if not wheel.name.endswith(f"-{expected}.whl"):
        findings.append(f"its name does not end with {expected}")
    return findings


def wrong_parts(wheel: Path, target: Target) -> list[str]:
    """Return findings in the headers of the compiled parts."""
    import lief  # only make wheels has it

    lief.logging.disable()  # it warns of empty sections
    archive = zipfile.ZipFile(wheel)
    findings = []
    for name in sorted(target.parts & set(archive.namelist())):
        part = lief.parse(archive.read(name))
        findings += wrong_header(name, machine(part), libraries(part), target)
        # a Mac with ARM loads no code without a signature; one of nobody is enough
        if target.machine == "ARM64" and not getattr(part, "has_code_signature", False):
            findings.append(f"{name} has no signature")
    return findings


def wrong_header(name: str, machine: str, libraries: list[str], target: Target) -> list[str]:
    """Return findings in what LIEF reads in a header."""
    findings = [
        f"{name} links {library}"
        for library in libraries
        if not any(fnmatch(library, pattern) for pattern in target.libraries)
    ]
    if machine != target.machine:
        findings.append(f"{name} is for {machine}, not {target.machine}")
    return findings


def machine(part: Any) -> str:
    header = part.header
    for field in ("machine_type", "machine", "cpu_type"):  # of ELF, PE and Mach-O
        if hasattr(header, field):
            return str(getattr(header, field)).rpartition(".")[2]
    raise TypeError(type(part))


def libraries(part: Any) -> list[str]:
    return [library if isinstance(library, str) else library.name for library in part.libraries]
