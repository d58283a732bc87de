"""`test` and `bench`: the project's own claims, checked here."""

import json
import os
import pkgutil
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from errors import UserError
from flows.places import ROOT, Places
from flows.screen import DONE, FAILED, Screen

ALL_RESULT = ROOT / "benchmarks" / "results" / "test-all.json"
NO_BENCH = (
    "__init__",
    "doctor_cases",
    "lake_rows",
    "loader_costs",
    "loader_sets",
    "loader_tiers",
    "peer",
    "recordings",
    "reporting",
)


def test(everything: bool, arguments: list[str], screen: Screen) -> int:
    """Run pytest over the project; `arguments` go to pytest as they are."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "junit.xml"
        command = [
            sys.executable,
            "-m",
            "pytest",
            f"--junitxml={report}",
            *(["--all"] if everything else []),
            *arguments,
        ]
        output = sys.stderr if screen.as_json else None
        status = subprocess.run(command, cwd=ROOT, stdout=output, check=False).returncode
        counts = _counts(report)
        if everything and not arguments:
            _keep(report, counts)
    screen.answer({"command": "test", "ok": status == 0, "result": {"exit_status": status, **counts}})
    return DONE if status == 0 else FAILED


def bench(where: Places, name: str, screen: Screen) -> int:
    """Run benchmarks/NAME.py to its end; the values do not change the exit status."""
    known = benchmarks()
    if name not in known:
        raise UserError("CLI-006", f"no benchmark {name!r}", next_step=f"known: {', '.join(known)}")
    screen.line(f"bench {name}: may take minutes; raw samples go to benchmarks/results")
    found = pkgutil.resolve_name(f"benchmarks.{name.replace('-', '_')}:main")(where.lake, where.home)
    for line in found.pop("lines", ()):
        screen.line(line)
    for target in found["targets"]:
        mark = "met" if target["met"] else "NOT met"
        value = "–" if target["value"] is None else f"{target['value']:.4g}"
        screen.line(f"  {target['name']:<28} {value:>10}  {target['op']} {target['target']:g}  {mark}")
    screen.line(f"  samples: {found['samples']}")
    screen.answer(found)
    return DONE


def benchmarks() -> list[str]:
    """Names of the benchmarks, a module each."""
    found = (path.stem for path in (ROOT / "benchmarks").glob("*.py") if path.stem not in NO_BENCH)
    return sorted(stem.replace("_", "-") for stem in found)


def _keep(report: Path, counts: dict[str, float]) -> None:
    """The last result of the whole suite is part of the project, for those who cannot wait for it."""
    if not counts:
        return
    cases = ElementTree.parse(report).getroot().iter("testcase")
    times = sorted((float(case.get("time", 0)), f"{case.get('classname')}.{case.get('name')}") for case in cases)
    machine = {"system": platform.platform(), "cores": os.cpu_count(), "python": platform.python_version()}
    kept = {
        "date": datetime.now(UTC).date().isoformat(),
        **counts,
        "slowest": [f"{seconds:.0f} s {name}" for seconds, name in times[:-11:-1]],
        "machine": machine,
    }
    ALL_RESULT.write_text(json.dumps(kept, indent=1) + "\n")


def _counts(report: Path) -> dict[str, float]:
    """Totals of pytest's report; empty when pytest did not get that far."""
    if not report.exists():
        return {}
    suites = ElementTree.parse(report).getroot().iter("testsuite")
    totals = {"tests": 0.0, "failures": 0.0, "errors": 0.0, "skipped": 0.0, "time": 0.0}
    for suite in suites:
        for key in totals:
            totals[key] += float(suite.get(key, 0))
    return totals
