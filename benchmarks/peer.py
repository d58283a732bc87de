"""A contender that lives in the peers' interpreter: a script that answers JSON lines, in one warm process."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from flows.places import ROOT

SCRIPTS = Path(__file__).parent / "peers"
MAKE_IT = "no peers' environment: see deployments/envs/peers.txt"
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "TOKENIZERS_PARALLELISM": "false",
}


def peers_python(environment: str = "peers") -> Path | None:
    """The interpreter that deployments/envs/<environment>.txt describes, or None where nobody made it."""
    told = os.environ.get(f"VLALOOP_{environment.upper()}")
    named = Path(told or ROOT / f".vlaloop/envs/{environment}/bin/python")
    return named if named.exists() else None


class Peer:
    """`script` of benchmarks/peers as a process; leaves with the `with` block."""

    def __init__(self, python: Path, script: str) -> None:
        self._process = subprocess.Popen(
            [python, SCRIPTS / script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **ONE_THREAD},
            text=True,
        )

    def ask(self, **order: Any) -> dict[str, Any]:
        """The answer to one order. Raises RuntimeError when the script ended instead."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the peer ended with status {self._process.wait()}; its words are above")
        return json.loads(answer)

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_error: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
