"""A machine made up of stubs for the entry script: commands on PATH, a checkout, a log of what was asked."""

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

TOOLS = (
    *("sh", "cat", "cksum", "cut", "sed", "sort", "dirname", "readlink", "mkdir", "mv", "rm", "date", "df", "awk"),
    *("grep", "tail", "uname", "sleep", "cp", "basename", "head"),
)

# A Python that answers what the script asks of one; @…@ is filled in. Its venv's Python is a copy of itself.
PYTHON = """#!/bin/sh
echo "$(basename "$0") $*" | head -n 1 >>'@log@'
case "$*" in
    *"sys.version_info"*) echo @version@; exit @fit@ ;;
    *"import venv, ensurepip"*) exit @venv@ ;;
    *"import platform"*) echo @version@.7 ;;
    *"import pip"*) [ -f "$(dirname "$0")/has_pip" ] ;;
    "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; [ -f '@machine@/half' ] || : >"$3/bin/has_pip" ;;
    "-m pip install"*)
        while [ -f '@machine@/hold' ]; do sleep 0.05; done
        if [ -f '@machine@/pip_says' ]; then cat '@machine@/pip_says'; exit 1; fi ;;
    "- "*) exec '@real@' "$@" ;;
    "-") cat '@machine@/gl' ;;
    *"flows.cli"*) echo "cwd=$PWD gl=$MUJOCO_GL path=$PYTHONPATH"; shift 3; for word; do echo "<$word>"; done ;;
esac
"""


@dataclass
class Machine:
    """A folder with a checkout, stub commands on PATH, and a log of what the stub Pythons were asked."""

    folder: Path
    checkout: Path
    env: dict[str, str] = field(default_factory=dict)

    def command(self, name: str, text: str, folder: str = "bin") -> None:
        path = self.folder / folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def python(
        self, name: str, *, version: str = "3.11", fit: bool = True, venv: bool = True, folder: str = "bin"
    ) -> None:
        text = (
            PYTHON.replace("@version@", version)
            .replace("@fit@", str(int(not fit)))
            .replace("@venv@", str(int(not venv)))
        )
        text = text.replace("@log@", str(self.folder / "log")).replace("@machine@", str(self.folder))
        self.command(name, text.replace("@real@", sys.executable), folder)

    def start(self, *args: str, script: Path | None = None) -> subprocess.Popen[str]:
        command = [str(script or self.checkout / "vlaloop"), *args]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.folder, env=self.env, stdout=pipe, stderr=pipe, text=True)

    def run(self, *args: str, script: Path | None = None) -> tuple[int, str, str]:
        started = self.start(*args, script=script)
        out, err = started.communicate(timeout=20)
        return started.returncode, out, err

    def asked(self, what: str) -> list[str]:
        """The lines of the log that hold `what`."""
        log = self.folder / "log"
        return [line for line in log.read_text().splitlines() if what in line] if log.exists() else []

    def put(self, name: str, text: str = "") -> Path:
        (self.folder / name).write_text(text)
        return self.folder / name
