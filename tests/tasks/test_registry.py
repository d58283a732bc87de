"""The registry's edges: servers that do not answer, where things live, and models that load elsewhere."""

import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE, TEMPORARILY_UNAVAILABLE

from errors import Transient
from tasks.promotion import digest_of, hashes
from tasks.registry import downloaded, steadily, tracking_uri


def answers(*codes: int | None) -> list[int]:
    """Counts the calls of an action that fails with `codes` in turn (None succeeds)."""
    calls: list[int] = []

    def action() -> str:
        code = codes[len(calls)]
        calls.append(1)
        if code is not None:
            raise MlflowException("no", error_code=code)
        return "yes"

    assert steadily(action, (0.0, 0.0)) == "yes"
    return calls


def test_a_server_that_comes_back_is_waited_for() -> None:
    assert len(answers(TEMPORARILY_UNAVAILABLE, TEMPORARILY_UNAVAILABLE, None)) == 3


def test_a_server_that_stays_away_is_transient() -> None:
    with pytest.raises(Transient, match="does not answer"):
        answers(TEMPORARILY_UNAVAILABLE, TEMPORARILY_UNAVAILABLE, TEMPORARILY_UNAVAILABLE)


def test_what_a_retry_cannot_cure_fails_at_once() -> None:
    with pytest.raises(MlflowException, match="no"):
        answers(INVALID_PARAMETER_VALUE, None)


def test_tracking_uri_is_this_machines_unless_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert tracking_uri(tmp_path) == f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:5000")
    assert tracking_uri(tmp_path) == "http://127.0.0.1:5000"


def test_two_processes_may_meet_at_first_use(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from tasks.registry import connect
print(connect(Path({str(tmp_path)!r}), Path({str(tmp_path / "home")!r})).experiment_id)
"""
    root = Path(__file__).parents[2]
    started = [
        subprocess.Popen([sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    answered = [each.communicate(timeout=120)[0].strip() for each in started]
    assert answered[0] == answered[1] != ""
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700
    with sqlite3.connect(tmp_path / "home" / "mlflow.db") as database:
        rows = database.execute("select artifact_location from experiments where name = 'vlaloop'").fetchall()
    assert rows == [((tmp_path / "home" / "mlflow-artifacts").as_uri(),)]


def test_a_digest_sees_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    first = digest_of(hashes(tmp_path))
    (tmp_path / "a").rename(tmp_path / "b")
    assert digest_of(hashes(tmp_path)) != first
    with downloaded(tmp_path.as_uri()) as folder:
        assert folder == tmp_path
