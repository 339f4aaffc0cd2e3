"""Build and audit all wheels: ``python -m wheels SOURCES FOLDER`` (tests/ on the path).

SOURCES is a clean copy of the repository. The wheels are written to FOLDER/dist.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from abi3info import DATAS, FUNCTIONS
from abi3info.models import PyVersion

from wheels.audit import audit
from wheels.targets import TARGETS, Target

OLDEST = PyVersion(3, 11)
HEADER = Path(__file__).parent / "pyconfig.h"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=[target.tag for target in TARGETS])
    given = parser.parse_args()
    folder, sources = given.folder.resolve(), given.sources.resolve()
    include, libraries = folder / "include", folder / "libraries"
    prepare(include, libraries)
    for target in TARGETS:
        if given.only in (None, target.tag):
            wheel = build(target, sources, folder, target.environment(include, libraries))
            audit(wheel, target)
            print(f"{wheel.name}: {wheel.stat().st_size:,} bytes", flush=True)


def prepare(include: Path, libraries: Path) -> None:
    """Write the headers, and the libraries that `Target.link` names."""
    shutil.copytree(sysconfig.get_path("include"), include)
    shutil.copy(HEADER, include)
    libraries.mkdir()
    names = libraries / "python3.def"
    names.write_text(stable_abi(), encoding="ascii")
    zig("dlltool", "-m", "i386:x86-64", "-d", names, "-l", libraries / "libpython3.a")
    (musl,) = (target for target in TARGETS if "-lmusl" in target.link)
    empty, (name,) = libraries / "empty.c", musl.libraries
    empty.touch()
    zig("cc", "-target", musl.zig, "-shared", "-nostdlib", f"-Wl,-soname,{name}", empty,
        "-o", libraries / "libmusl.so")  # fmt: skip


def stable_abi() -> str:
    """Return the exports of python3.dll as a module definition, those of `OLDEST` only."""
    names = [s.name for s, function in FUNCTIONS.items() if function.added <= OLDEST]
    names += [f"{s.name} DATA" for s, data in DATAS.items() if data.added <= OLDEST]
    return "\n".join(["LIBRARY python3.dll", "EXPORTS", *sorted(names), ""])


def zig(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "ziglang", *map(str, arguments)]
    subprocess.run(command, check=True)  # noqa: S603


def build(target: Target, sources: Path, folder: Path, variables: dict[str, str]) -> Path:
    """Return the wheel of a platform, compiled in a copy of the sources of its own."""
    copy, dist = folder / target.tag, folder / "dist"
    shutil.copytree(sources, copy)
    command = [sys.executable, "setup.py", "-q", "bdist_wheel"]
    command += ["--plat-name", target.tag, "--dist-dir", str(dist)]
    subprocess.run(  # noqa: S603
        command, cwd=copy, env={**os.environ, **variables}, check=True
    )
    (wheel,) = dist.glob(f"*-{target.tag}.whl")
    return wheel


if __name__ == "__main__":
    main()
