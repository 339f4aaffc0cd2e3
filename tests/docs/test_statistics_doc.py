"""The pages of secure statistics: plans, blocks of Python and commands do as shown."""

from __future__ import annotations

import csv
import re
import socket
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from secagg.statistics import Plan, Result, simulate
from secagg.statistics.plan import KINDS

EXAMPLES = Path(__file__).parents[2] / "examples"
DOCS = EXAMPLES.parent / "docs"
PAGE = (DOCS / "statistics.md").read_text()
TUTORIAL = (DOCS / "tutorials/statistics.md").read_text()
CELL = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)
COMMAND = "import sys; sys.argv[0] = 'secagg'; from secagg.cli import main; main()"


def run(*command: str, folder: Path) -> str:
    """Return what a command prints; the time-out only makes a deadlock fail."""
    done = subprocess.run(  # noqa: S603
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_page_has_each_kind_and_its_plans_are_plans() -> None:
    table = re.search(r"<!-- statistics -->(.*?)<!-- end -->", PAGE, re.DOTALL)[1]
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE)[1:] == list(KINDS)
    exact, noise = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    plan = Plan.from_toml(exact)
    assert plan.to_toml().split() == exact.split()
    without = exact.partition("[columns.radius]")
    counts = "".join(without[1:]).rpartition("[[statistics]]")[0]  # a regression has no noise
    noised = Plan.from_toml(without[0] + noise + counts)
    assert noised.privacy.weights.keys() <= {one.name for one in noised.statistics}


def test_tutorial_prints_its_text(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    has = find_spec("lifelines") is not None
    cells = [cell for cell in CELL.findall(TUTORIAL) if has or "lifelines" not in cell[0]]
    program = "\nprint(end='\\0')\n".join(code for code, _ in cells)
    printed = run(sys.executable, "-c", program, folder=tmp_path).split("\0")
    for (code, expected), got in zip(cells, printed, strict=True):
        assert not expected or got == expected, code


@pytest.mark.large
@pytest.mark.skipif(sys.platform == "win32", reason="bash")
def test_tutorial_commands_give_the_result_of_one_process(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("secagg.cli.stats")
    tables, plan, simulated = (code for code, _ in CELL.findall(TUTORIAL)[:3])
    expected = run(sys.executable, "-c", tables + plan + simulated, folder=tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    _, keys, tried, serve, join, report = re.findall(
        r"^```shell\n(.*?)^```", TUTORIAL, re.MULTILINE | re.DOTALL
    )
    serve = serve.replace("serve", f"serve --port {port} --operator-port 0").rstrip()
    parts = [keys, tried, f"{serve} &", join.replace("8443", str(port)), "echo ---", report]
    function = f'set -e\nsecagg() {{ "{sys.executable}" -c "{COMMAND}" "$@"; }}\n'
    shown = run("bash", "-c", function + "\n".join(parts), folder=tmp_path)
    result = expected[expected.index("records\n") :].split()
    assert shown.partition("---")[2].split() == result


def test_example_of_flare_is_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("nvflare")
    from flare_network import Network, Site

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("secagg.flare.link._INTERVAL", 0.01)
    monkeypatch.syspath_prepend(EXAMPLES)
    hospitals = import_module("hospital_statistics")
    study = import_module("flare.study")
    Path("plan.toml").write_text(hospitals.PLAN.to_toml())
    tables = {f"site-{i}": hospitals.hospital(i) for i in range(1, 6)}
    for name, table in tables.items():
        with Path(f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([table, *zip(*table.values(), strict=True)])
    controller = study.StudyController("plan.toml", "result.json", 5, 30.0, 30.0)
    answers = [study.StudySite("plan.toml", f"{n}.csv", f"{n}.ledger") for n in tables]
    Network([Site(*one) for one in zip(tables, answers, strict=True)]).run(controller)
    expected = simulate(hospitals.PLAN, tables, way="plain")
    assert Result.of(controller.study).tables == expected.tables
