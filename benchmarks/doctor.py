"""What a doctor of recordings finds: broken and sound folders of doctor_cases.toml, ours beside two other doctors.

`caught`: share of the broken ones with every expected finding, at its severity and place. `false_alarms`: errors and
warnings about clean ones; `unexpected`: about broken ones. The others run where there is a peers' environment.
"""

import json
import os
import re
import subprocess
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import doctor_cases
from benchmarks.peer import peers_python
from benchmarks.reporting import Target, result
from data_lake.doctor import doctor
from data_lake.ingest import ingest_source
from data_lake.specs import AS_THE_SOURCE_SAYS, IngestSpec, ReadSpec
from flows.recipe import parse_read

CASES = Path(__file__).with_name("doctor_cases.toml")
PACKAGES = ("av", "pyarrow", "numpy")
TIMEOUT_S = 180.0
BAD = ("error", "warning")

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, kw_only=True, slots=True)
class Peer:
    """Another doctor, judged by the words of its warnings and failures alone (`peers` of a case). An alarm about a
    clean set may be an opinion, such as that episodes of 30 rows are short.

    complaints: of what it printed, the warnings and failures. reads: versions of the layout.
    """

    arguments: Callable[[Path], list[str]]
    complaints: Callable[[str, str], list[str]]
    reads: tuple[str, ...]


def of_lerobot_doctor(out: str, err: str) -> list[str]:
    """Its JSON has checks with messages; without JSON it stopped, and its last line says at what."""
    try:
        checks = json.loads(out[out.index("{") :])["checks"]
    except (ValueError, KeyError):
        return (out + err).strip().splitlines()[-1:]
    messages = [(check["name"], message) for check in checks for message in check["messages"]]
    return [f"{name}: {message['message']}" for name, message in messages if message["severity"] in ("WARN", "FAIL")]


def of_lance_doctor(out: str, err: str) -> list[str]:
    """A line per check; what is wrong stands below a failed one. A traceback ends it."""
    said = [line for line in out.splitlines() if line.strip() and "[ ok ]" not in line and "checks passed" not in line]
    return said + (err.strip().splitlines()[-1:] if "Traceback" in err else [])


PEERS = {
    "lerobot-doctor": Peer(
        arguments=lambda source: ["check", str(source), "--json"],
        complaints=of_lerobot_doctor,
        reads=("v2.0", "v2.1", "v3.0"),
    ),
    "lerobot-lance-doctor": Peer(
        arguments=lambda source: ["--root", str(source), "--repo-id", "set"],
        complaints=of_lance_doctor,
        reads=("v3.0",),
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One entry of doctor_cases.toml; its head says what the fields mean."""

    name: str
    format: str
    made_by: str
    pain: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    expect: tuple[Mapping[str, Any], ...] = ()
    beside: tuple[str, ...] = ()
    ok: int | None = None
    peers: str = ""
    deep: bool = False
    lake: bool = False
    read: ReadSpec = AS_THE_SOURCE_SAYS

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> "Case":
        kept = {key: value for key, value in entry.items() if key not in ("with", "expect", "beside", "read")}
        return cls(
            **kept,
            arguments=entry.get("with", {}),
            expect=tuple(entry["expect"]),
            beside=tuple(entry.get("beside", ())),
            read=parse_read(entry.get("read", {}), where=entry["name"]),
        )

    @property
    def is_clean(self) -> bool:
        return self.expect == ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """missing: expected and not found. alarms: errors and warnings that nobody expected. peers: by name `named`,
    `–`, `quiet`, `alarm`, `not run` or `not asked`; raw: their complaints."""

    case: Case
    findings: list[dict[str, Any]]
    missing: list[str]
    alarms: list[str]
    peers: dict[str, str]
    raw: dict[str, list[str]]


def main(lake: Path, home: Path) -> dict[str, Any]:
    """The object of `bench doctor`."""
    seen: list[Seen] = []
    later: dict[str, str] = {}
    for case in cases():
        with tempfile.TemporaryDirectory() as folder:
            try:
                seen.append(look(case, Path(folder)))
            except FileNotFoundError as error:
                later[case.name] = str(error)
    broken, clean = [item for item in seen if not item.case.is_clean], [item for item in seen if item.case.is_clean]
    share = sum(not item.missing for item in broken) / max(1, len(broken))
    note = "; ".join(f"{item.case.name}: {', '.join(item.missing)}" for item in broken if item.missing)
    alarms = [f"{item.case.name}: {alarm}" for item in clean for alarm in item.alarms]
    others = [f"{item.case.name}: {alarm}" for item in broken for alarm in item.alarms]
    found = result(
        "doctor",
        [
            Target(name="caught", value=round(share, 4), target=1.0, op=">=", note=note),
            Target(name="false_alarms", value=len(alarms), target=0, op="<=", note="; ".join(alarms)),
            Target(name="unexpected", value=len(others), target=0, op="<=", note="; ".join(others)),
        ],
        {name: figures(broken, clean, name) for name in PEERS}
        | {"vlaloop": {"named": sum(not item.missing for item in broken), "of": len(broken)}},
        {item.case.name: {"findings": item.findings, **item.raw} for item in seen} | {"later": later},
        PACKAGES,
    )
    return found | {"lines": table(seen, later)}


def cases(path: Path = CASES) -> list[Case]:
    return [Case.of(entry) for entry in tomllib.loads(path.read_text())["case"]]


def look(case: Case, folder: Path) -> Seen:
    """Make the case and let each doctor see it. Raises FileNotFoundError for a recorded set that is not here."""
    source = vars(doctor_cases)[case.made_by](folder, **case.arguments)
    lake = folder / "lake"
    if case.lake:
        spec = IngestSpec(dataset="cart", embodiment="cart")
        ingest_source(source, spec, dataset_root=lake / "datasets/cart", out_dir=folder / "out")
    answer = doctor(str(source), case.read, lake=lake, deep=case.deep)
    peers, raw = ask_peers(case, source, answer["version"])
    missing, alarms = judged(case, answer)
    return Seen(case=case, findings=answer["findings"], missing=missing, alarms=alarms, peers=peers, raw=raw)


def _is(wanted: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    said = f"{item['message']} {item['fix']}"
    return all(value in said if key == "says" else item[key] == value for key, value in wanted.items())


def judged(case: Case, answer: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """(expected findings that are not there, errors and warnings that were not expected)."""
    findings: Sequence[Mapping[str, Any]] = answer["findings"]
    missing = [
        " ".join(map(str, wanted.values())) for wanted in case.expect if not any(_is(wanted, item) for item in findings)
    ]
    if case.ok is not None and answer["episodes"]["ok"] != case.ok:
        missing.append(f"{answer['episodes']['ok']} of {case.ok} episodes usable")
    known = {*case.beside, *(wanted["code"] for wanted in case.expect)}
    alarms = [item["code"] for item in findings if item["severity"] in BAD and item["code"] not in known]
    return missing, alarms


def ask_peers(case: Case, source: Path, version: str) -> tuple[dict[str, str], dict[str, list[str]]]:
    """What the other doctors named, and their complaints."""
    python = peers_python()
    if python is None:
        return dict.fromkeys(PEERS, "not run"), {}
    marks: dict[str, str] = {}
    raw: dict[str, list[str]] = {}
    for name, peer in PEERS.items():
        if version not in peer.reads or case.lake:
            marks[name] = "not asked"
            continue
        raw[name] = [line.replace(str(source), "SOURCE") for line in _complaints(name, peer, source, python)]
        if case.is_clean:
            marks[name] = "alarm" if raw[name] else "quiet"
        else:
            marks[name] = "named" if any(re.search(case.peers, line, re.I) for line in raw[name]) else "–"
    return marks, raw


def _complaints(name: str, peer: Peer, source: Path, python: Path) -> list[str]:
    command = [str(python.with_name(name)), *peer.arguments(source)]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "NO_COLOR": "1"}
    try:
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return [f"not done after {TIMEOUT_S:.0f} s"]
    if not ended.stdout.strip():
        return [f"no answer, exit status {ended.returncode}", *ended.stderr.strip().splitlines()[-1:]]
    return peer.complaints(COLOUR.sub("", ended.stdout), COLOUR.sub("", ended.stderr))


def figures(broken: Sequence[Seen], clean: Sequence[Seen], peer: str) -> dict[str, Any]:
    """named: defects out of those whose format it reads."""
    marks = [item.peers[peer] for item in broken]
    return {
        "named": marks.count("named"),
        "of": marks.count("named") + marks.count("–"),
        "clean_with_complaints": [item.peers[peer] for item in clean].count("alarm"),
    }


def table(seen: Sequence[Seen], later: Mapping[str, str]) -> list[str]:
    """A line per case: who named the defect."""
    lines = [f"  {'case':<50}" + "".join(f"{head:<22}" for head in ("vlaloop", *PEERS))]
    for item in seen:
        ours = ("alarm" if item.alarms else "quiet") if item.case.is_clean else "missed" if item.missing else "named"
        lines.append(f"  {item.case.name:<50}" + "".join(f"{mark:<22}" for mark in (ours, *item.peers.values())))
    return lines + [f"  {name:<50}{why}" for name, why in later.items()]
