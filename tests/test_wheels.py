"""The packaging of `make wheels`: what setuptools is told, and what the audit rejects."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sysconfig
import zipfile
from pathlib import Path

import pytest

from wheels import audit
from wheels.targets import TARGETS, Target

PYCONFIG = Path(__file__).parent / "wheels" / "pyconfig.h"
SIZES = {
    "SIZEOF_SHORT": "short",
    "SIZEOF_INT": "int",
    "SIZEOF_LONG": "long",
    "SIZEOF_LONG_LONG": "long long",
    "SIZEOF_VOID_P": "void *",
    "SIZEOF_SIZE_T": "Py_ssize_t",
    "SIZEOF_WCHAR_T": "wchar_t",
}
LINUX, WINDOWS = TARGETS[0], next(target for target in TARGETS if target.suffix == ".pyd")

every = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.tag)


def wheel(folder: Path, target: Target, *more: str, tag: str = "") -> Path:
    """Write a wheel with empty files and these names more."""
    tag = tag or target.tag
    path = folder / f"secagg-1.0-cp311-abi3-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("secagg/__init__.py", "secagg/py.typed", *target.parts, *more):
            archive.writestr(name, "")
        archive.writestr("secagg-1.0.dist-info/WHEEL", f"Tag: cp311-abi3-{tag}\n")
    return path


@every
def test_wheel_of_a_platform(target: Target, tmp_path: Path) -> None:
    """zig compiles for the tag's oldest system, and the audit accepts a complete wheel."""
    variables = target.environment(Path("in clude"), Path("libraries"))
    for name in ("CC", "LDSHARED"):
        words = shlex.split(variables[name])
        assert words[1:6] == ["-m", "ziglang", "cc", "-target", target.zig]
        assert "in clude" in words
    assert variables["SECAGG_REQUIRE_EXTENSION"] == "1"
    assert sysconfig.get_config_var("LIBDIR") not in variables["LDSHARED"]
    suffix = variables.get("SETUPTOOLS_EXT_SUFFIX", ".abi3.so")
    assert target.parts == {f"secagg/_fast/_kernels{suffix}", f"fedmf/_fast/_kernels{suffix}"}
    oldest = re.search(r"(?:gnu|macos)\.([\d.]+)", target.zig)
    assert bool(oldest) == target.tag.startswith(("manylinux", "macosx"))
    assert not oldest or oldest[1].replace(".", "_") in target.tag
    path = wheel(tmp_path, target)
    assert audit.strangers(path, target) == audit.wrong_tag(path, target) == []


def test_files_and_tags_of_another_platform_are_found(tmp_path: Path) -> None:
    path = wheel(tmp_path, WINDOWS, "secagg/_fast/_kernels.lib", "secagg/_fast/_kernels.pdb")
    assert len(audit.strangers(path, WINDOWS)) == 2
    path = wheel(tmp_path, LINUX)
    assert len(audit.strangers(path, WINDOWS)) == len(LINUX.parts) + len(WINDOWS.parts)
    assert len(audit.wrong_tag(path, WINDOWS)) == 2
    path = wheel(tmp_path, LINUX, tag="linux_x86_64")
    assert len(audit.wrong_tag(path, LINUX)) == 2


def test_wrong_processor_and_version_of_python_are_found() -> None:
    good = ["python3.dll", "KERNEL32.dll", "api-ms-win-crt-heap-l1-1-0.dll"]
    assert audit.wrong_header("a", "AMD64", good, WINDOWS) == []
    assert len(audit.wrong_header("a", "ARM64", [*good, "python311.dll"], WINDOWS)) == 2


@pytest.mark.parametrize("compiler", ["gcc", "aarch64-linux-gnu-gcc"])
def test_sizes_of_pyconfig_are_those_of_the_compiler(tmp_path: Path, compiler: str) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"needs {compiler}")
    headers = tmp_path / "include"
    shutil.copytree(sysconfig.get_path("include"), headers)
    shutil.copy(PYCONFIG, headers / "pyconfig.h")
    lines = [f'_Static_assert({n} == sizeof({t}), "{n}");' for n, t in SIZES.items()]
    source = tmp_path / "sizes.c"
    source.write_text("\n".join(["#include <Python.h>", *lines, ""]), encoding="ascii")
    command = [compiler, "-Werror", "-DPy_LIMITED_API=0x030B0000", "-fsyntax-only"]
    subprocess.run([*command, f"-I{headers}", str(source)], check=True)  # noqa: S603
