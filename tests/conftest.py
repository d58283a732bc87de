"""What every test gets: quiet libraries, state in a folder of its own, no slow test unless `--all`."""

import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from upath import UPath

from data_lake.objects import object_path
from tests.object_store import environment, serving

ROOT = Path(__file__).resolve().parents[1]
QUIET = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "GIT_PYTHON_REFRESH": "quiet",
    "DAFT_PROGRESS_BAR": "0",
    "OMP_WAIT_POLICY": "passive",
    "NO_COLOR": "1",
}
STATE = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run the tests marked slow as well")


def pytest_configure(config: pytest.Config) -> None:
    """Set what libraries read when they are imported; nothing of the person who runs the tests is touched."""
    config.stash[STATE] = tempfile.mkdtemp(prefix="vlaloop-tests-")
    os.environ.update(QUIET)
    os.environ.setdefault("MUJOCO_GL", "egl")
    os.environ["PREFECT_HOME"] = str(Path(config.stash[STATE]) / "prefect")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    for name in ("VLALOOP_LAKE", "VLALOOP_HOME", "VLALOOP_EXTRAS", "PREFECT_API_URL", "MLFLOW_TRACKING_URI"):
        os.environ.pop(name, None)
    hypothesis.settings.register_profile("vlaloop", deadline=None, derandomize=bool(os.environ.get("CI")))
    hypothesis.settings.load_profile("vlaloop")


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(config.stash[STATE], ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the slow ones out, unless `--all` is given or they are asked for by marker or by node."""
    asked = config.getoption("--all") or "slow" in config.getoption("-m") or any("::" in arg for arg in config.args)
    if not asked:
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in set(slow)]
    if not chromium():
        absent = pytest.mark.skip(reason="no Chromium (package chromium)")
        for item in items:
            if item.get_closest_marker("browser"):
                item.add_marker(absent)


def chromium() -> str | None:
    """The browser that this machine has."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def smoke_lake(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(lake, home) in which the recipe `smoke` was built once, undisturbed. To be copied, never changed."""
    folder = tmp_path_factory.mktemp("smoke")
    lake, home = folder / "lake", folder / ".vlaloop"
    command = [sys.executable, "-m", "tests.flows.loop_runner", str(lake), str(home), "undisturbed"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    return lake, home


@pytest.fixture(scope="session")
def object_store() -> Iterator[dict[str, str]]:
    """A local S3 server, which this process and those that it starts reach through their environment."""
    with serving() as variables, environment(variables):
        yield variables


@pytest.fixture
def bucket(object_store: dict[str, str]) -> UPath:
    """A prefix in a new bucket."""
    path = object_path(f"s3://{uuid.uuid4().hex}/deep/lake")
    path.fs.mkdir(path.path.partition("/")[0])
    return path


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Recorded robot data, which the project does not ship; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("VLALOOP_SHARED_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no recorded robot data at {folder} (VLALOOP_SHARED_DATA)")
    return folder
