"""Compile the kernels of secagg and fedmf, and write the front page of a package index.

Everything else is in pyproject.toml.

Two abi3 extensions per platform, no ``-march``: those of secagg choose their instructions when
they are imported. ``-O3`` matters for the mask kernels, ``-g0`` makes the files five times
smaller, and contraction to fused multiply-add would make results depend on the CPU.

``SETUPTOOLS_EXT_SUFFIX`` names the files for another platform: ``make wheels`` cross-compiles.

Without a working C compiler, on a free-threaded Python, which has no stable ABI, or with
``SECAGG_NO_EXTENSION=1``, the wheel is ``py3-none-any``: the library then runs on its
pure-Python twins, slower and with the same results.
``SECAGG_REQUIRE_EXTENSION=1`` fails instead.
"""

import gzip
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import tomllib
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.sdist import sdist

SOURCES = "secagg/_fast/src"
STEPS = "fedmf/_fast/src"

MACROS = [("Py_LIMITED_API", "0x030B0000")]
COMMON = {
    "define_macros": MACROS,
    # setuptools would ignore a suffix from the environment for a limited API
    "py_limited_api": "SETUPTOOLS_EXT_SUFFIX" not in os.environ,
    "extra_compile_args": ["-O3", "-g0", "-ffp-contract=off"],
}

kernels = Extension(
    "secagg._fast._kernels",
    sources=[
        "secagg/_fast/_kernels.pyx",
        f"{SOURCES}/cpu.c",
        f"{SOURCES}/masks.c",
        f"{SOURCES}/masks_aesni.c",
        f"{SOURCES}/masks_armv8.c",
        f"{SOURCES}/masks_vaes.c",
        f"{SOURCES}/masks_vaes512.c",
        f"{SOURCES}/m61.c",
        f"{SOURCES}/fixedpoint.c",
        f"{SOURCES}/bits.c",
        f"{SOURCES}/gaussian.c",
        f"{SOURCES}/gcm_aesni.c",
        f"{SOURCES}/hkdf.c",
        f"{SOURCES}/modular.c",
        f"{SOURCES}/modular_ifma.c",
        f"{SOURCES}/modular_ifma_square.c",
        f"{SOURCES}/modular_portable.c",
        f"{SOURCES}/prime.c",
        f"{SOURCES}/rotation.c",
        f"{SOURCES}/shares.c",
        f"{SOURCES}/x25519_ifma.c",
    ],
    depends=[
        "secagg/_fast/_kernels.pxd",
        "secagg/_fast/_gcm.pxi",
        "secagg/_fast/_hkdf.pxi",
        "secagg/_fast/_lanes.pxi",
        "secagg/_fast/_modular.pxi",
        "secagg/_fast/_prime.pxi",
        "secagg/_fast/_rotation.pxi",
        "secagg/_fast/_x25519.pxi",
        f"{SOURCES}/cpu.h",
        f"{SOURCES}/kernels.h",
        f"{SOURCES}/fixedpoint_vector.h",
        f"{SOURCES}/masks.h",
        f"{SOURCES}/modular.h",
        f"{SOURCES}/modular_ifma.h",
    ],
    include_dirs=[SOURCES],
    **COMMON,
)
steps = Extension(
    "fedmf._fast._kernels",
    sources=["fedmf/_fast/_kernels.pyx", f"{STEPS}/steps.c"],
    depends=[f"{STEPS}/steps.h"],
    include_dirs=[STEPS],
    **COMMON,
)


class PlainArchive(sdist):  # type: ignore[misc, no-any-unimported]  # setuptools has no types
    """Source archive without the owner, umask and time of the build.

    Its time is ``SOURCE_DATE_EPOCH``, in seconds since 1970, as in a wheel of setuptools.
    """

    def make_archive(self, base_name: str, *_: object, base_dir: str, **__: object) -> str:
        """Write the release tree `base_dir` to ``<base_name>.tar.gz`` and return that name."""
        epoch = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))

        def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mtime = epoch
            member.mode = 0o755 if member.mode & 0o100 else 0o644
            return member

        name = f"{base_name}.tar.gz"
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        with (
            gzip.GzipFile(name, "wb", mtime=epoch) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            archive.add(base_dir, filter=plain)
        return name


def obstacle() -> str:
    """Return the reason why no extension can be compiled here, or an empty string."""
    if os.environ.get("SECAGG_NO_EXTENSION") == "1":
        return "SECAGG_NO_EXTENSION=1"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "a free-threaded Python has no stable ABI; take one with the GIL"
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder, "probe.c")
        probe.write_text("#include <Python.h>\n#include <string.h>\n")
        macros = [f"-D{name}={value}" for name, value in MACROS]
        headers = [f"-I{sysconfig.get_path(path)}" for path in ("include", "platinclude")]
        command = [*shlex.split(compiler), *macros, *headers, "-fPIC", "-shared", str(probe)]
        try:
            subprocess.run(  # noqa: S603
                [*command, "-o", f"{probe}.so"], check=True, capture_output=True, text=True
            )
        except OSError as error:
            return f"no C compiler: {error}"
        except subprocess.CalledProcessError as error:
            lines = error.stderr.strip().splitlines()
            reason = lines[0] if lines else f"exit status {error.returncode}"
            return f"{compiler} fails: {reason}"
    return ""


def front_page(readme: str, address: str) -> str:
    """Return the README for a package index, where a path in the repository is a dead link.

    With an address of the repository the paths become links to it. Without one they become
    plain text, and pictures are left out.
    """

    def replaced(found: re.Match[str]) -> str:
        picture, text, target = found.groups()
        if re.match(r"[a-z][a-z0-9+.-]*:|#", target):
            return found[0]
        if not address:
            return "" if picture else text
        kind = "raw" if picture else "blob"
        return f"{picture}[{text}]({address}/{kind}/HEAD/{target})"

    return re.sub(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", replaced, readme)


def urls(address: str) -> dict[str, str]:
    """Return the project's addresses for a package index; none without a repository."""
    if not address:
        return {}
    pages = {"Documentation": "docs/index.md", "Changelog": "CHANGELOG.md"}
    return {"Source": address} | {
        name: f"{address}/blob/HEAD/{path}" for name, path in pages.items()
    }


def main() -> None:
    """Compile the kernels if that is possible, and describe the project."""
    why = obstacle()
    if why and os.environ.get("SECAGG_REQUIRE_EXTENSION") == "1":
        sys.exit(f"SECAGG_REQUIRE_EXTENSION=1, but the extensions cannot be compiled: {why}")
    if why:
        print(f"secagg is built without its compiled extensions: {why}", file=sys.stderr)
    root = Path(__file__).parent
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    address = project["tool"]["secagg"]["address"].rstrip("/")
    setup(
        cmdclass={"sdist": PlainArchive},
        ext_modules=[] if why else [kernels, steps],
        options={} if why else {"bdist_wheel": {"py_limited_api": "cp311"}},
        long_description=front_page((root / "README.md").read_text(encoding="utf-8"), address),
        long_description_content_type="text/markdown",
        project_urls=urls(address),
    )


if __name__ == "__main__":  # of a build, too
    main()
