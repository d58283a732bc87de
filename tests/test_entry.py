"""The entry script on machines made up of stubs: what it finds, installs, repairs, and says."""

import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.entry_machine import TOOLS, Machine


@pytest.fixture
def machine(tmp_path: Path, root: Path) -> Machine:
    """A machine with a checkout in a path with spaces, EGL, and no Python yet."""
    checkout = tmp_path / "my own robots"
    checkout.mkdir()
    for name in ("vlaloop", "pyproject.toml", "constraints.txt", "constraints-cpu.txt"):
        shutil.copy2(root / name, checkout / name)
    (tmp_path / "tools").mkdir()
    for tool in TOOLS:
        (tmp_path / "tools" / tool).symlink_to(shutil.which(tool) or pytest.fail(f"this machine has no {tool}"))
    made = Machine(folder=tmp_path, checkout=checkout)
    made.env = {"PATH": f"{tmp_path}/bin:{tmp_path}/tools", "HOME": str(tmp_path / "home")}
    made.command("id", "#!/bin/sh\necho 1000\n")
    made.put("gl", "egl\n")
    return made


def until(fact: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not fact():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_first_run_sets_up_and_later_ones_do_not(machine: Machine) -> None:
    machine.python("python3.11")
    code, out, err = machine.run("run", "two words", "--json")
    assert code == 0, err
    assert err.startswith("setting up (once): Python 3.11.7 · CPU build of torch · 2.9 GB in .venv\n")
    assert "<run>\n<two words>\n<--json>\n" in out
    assert f"cwd={machine.folder} gl=egl path={machine.checkout}\n" in out
    code, out, err = machine.run("ls")
    assert (code, err) == (0, "")
    assert "<ls>" in out
    assert len(machine.asked("-m pip install")) == 1


def test_what_is_asked_of_pip(machine: Machine) -> None:
    machine.python("python3.11")
    machine.run("ls")
    (call,) = machine.asked("-m pip install")
    assert call.index("constraints.txt") < call.index("constraints-cpu.txt")
    wanted = (machine.checkout / ".venv" / "requirements.txt").read_text().splitlines()
    assert "mujoco==3.3.0" in wanted
    assert any(line.startswith("pytest>") for line in wanted)
    assert not any(line.startswith("torchcodec") for line in wanted)


def test_a_machine_with_a_gpu_gets_the_cuda_build(machine: Machine) -> None:
    machine.python("python3.11")
    machine.command("nvidia-smi", "#!/bin/sh\n")
    machine.command("df", "#!/bin/sh\nprintf 'x\\nd 9 1 90000000 1%% /\\n'\n")
    assert "CUDA build of torch" in machine.run("ls")[2]
    assert "constraints-cpu" not in machine.asked("-m pip install")[0]


def test_extras_are_kept_once_chosen(machine: Machine) -> None:
    machine.python("python3.11")
    machine.run("ls")
    machine.env["VLALOOP_EXTRAS"] = "torchcodec"
    assert machine.run("ls")[0] == 0
    del machine.env["VLALOOP_EXTRAS"]
    assert machine.run("ls")[2] == ""
    assert "torchcodec>=0.13" in (machine.checkout / ".venv" / "requirements.txt").read_text()
    machine.env["VLALOOP_EXTRAS"] = "torchcode"
    code, _, err = machine.run("ls")
    assert code == 1
    assert "unknown extra 'torchcode'; known: dev, flash-attn, torchcodec" in err


def test_python_3_11_is_preferred_and_broken_ones_are_passed_over(machine: Machine) -> None:
    machine.env["PATH"] = f"{machine.folder}/shims:{machine.env['PATH']}"
    machine.command("python3.11", "#!/bin/sh\necho 'pyenv: version not installed' >&2\nexit 127\n", "shims")
    machine.python("python3", version="3.12", folder="shims")
    machine.python("python3.12", version="3.12")
    machine.python("python3.11")
    assert "Python 3.11.7" in machine.run("ls")[2]


def test_another_python_serves_where_there_is_no_3_11(machine: Machine) -> None:
    machine.python("python3.11", venv=False)
    machine.python("python3.13", version="3.13")
    machine.python("python3", version="3.14", fit=False)
    assert "Python 3.13.7" in machine.run("ls")[2]


def test_no_python_names_the_package(machine: Machine) -> None:
    machine.python("python3", version="3.9", fit=False)
    code, out, err = machine.run("ls")
    assert (code, out) == (1, "")
    assert "error SETUP-001: no Python 3.11, 3.12 or 3.13 found" in err
    assert "apt-get install python3.11 python3.11-venv" in err


def test_no_venv_module_names_the_package_of_that_python(machine: Machine) -> None:
    machine.python("python3", version="3.12", venv=False)
    code, _, err = machine.run("ls")
    assert code == 1
    assert "error SETUP-002" in err
    assert "apt-get install python3.12-venv" in err


def test_root_on_debian_gets_the_package_installed(machine: Machine) -> None:
    machine.python("python3.11", folder="waiting")
    machine.command("id", "#!/bin/sh\necho 0\n")
    machine.command(
        "apt-get",
        f"#!/bin/sh\necho apt $* >>'{machine.folder}/log'\ncp '{machine.folder}'/waiting/* '{machine.folder}/bin'\n",
    )
    code, _, err = machine.run("ls")
    assert code == 0, err
    assert machine.asked("apt install -y --no-install-recommends python3.11 python3.11-venv")


def test_no_gl_names_the_package(machine: Machine) -> None:
    machine.python("python3.11")
    machine.put("gl", "\n")
    code, _, err = machine.run("ls")
    assert code == 1
    assert "error SETUP-003" in err
    assert "libegl-mesa0" in err


@pytest.mark.parametrize(("given", "used"), [(None, "osmesa"), ("glfw", "glfw")])
def test_gl_is_what_there_is_or_what_is_asked_for(machine: Machine, given: str | None, used: str) -> None:
    machine.python("python3.11")
    machine.put("gl", "osmesa\n")
    if given:
        machine.env["MUJOCO_GL"] = given
    assert f"gl={used} " in machine.run("ls")[1]


def test_no_disk_is_said_before_anything_is_made(machine: Machine) -> None:
    machine.python("python3.11")
    machine.command("df", "#!/bin/sh\nprintf 'x\\nd 9 1 2400000 1%% /\\n'\n")
    code, _, err = machine.run("ls")
    assert code == 1
    assert "error SETUP-004: 2 GB free" in err
    assert not machine.asked("-m venv")


@pytest.mark.parametrize(
    ("says", "error"),
    [
        ("Retrying … NewConnectionError: Temporary failure in name resolution", "error SETUP-005: no network"),
        ("ERROR: [Errno 28] No space left on device", "error SETUP-004: no space left"),
        ("ERROR: Failed building wheel for x", "error SETUP-006: installing packages failed"),
    ],
)
def test_failed_installation_names_the_cause_and_the_next_run_goes_on(machine: Machine, says: str, error: str) -> None:
    machine.python("python3.11")
    flood = "WARNING: Location '/x' is ignored: it is neither a file nor a directory\n"
    said = machine.put("pip_says", f"{says}\n" + flood * 300)
    code, out, err = machine.run("ls")
    assert (code, out) == (1, "")
    assert error in err
    assert says in err
    assert "is ignored" not in err
    said.unlink()
    assert machine.run("ls")[0] == 0
    assert len(machine.asked("-m venv")) == 1


@pytest.mark.parametrize("changed", ["pyproject.toml", "constraints.txt", "constraints-cpu.txt"])
def test_changed_requirements_are_installed(machine: Machine, changed: str) -> None:
    machine.python("python3.11")
    machine.run("ls")
    with (machine.checkout / changed).open("a") as file:
        file.write("# changed\n")
    assert "bringing .venv up to date" in machine.run("ls")[2]
    assert machine.run("ls")[2] == ""
    assert len(machine.asked("-m pip install")) == 2
    assert len(machine.asked("-m venv")) == 1


def test_an_environment_made_by_hand_is_taken_over(machine: Machine) -> None:
    machine.python("python3.11")
    venv = machine.checkout / ".venv"
    machine.run("ls")
    (venv / "vlaloop.stamp").unlink()
    (venv / "mine").write_text("kept")
    assert machine.run("ls")[0] == 0
    assert (venv / "mine").exists()
    assert len(machine.asked("-m venv")) == 1


def test_the_environment_of_another_checkout_is_used_as_it_is_or_not_at_all(machine: Machine) -> None:
    machine.python("python3.11")
    machine.run("ls")
    theirs, mine = machine.checkout, machine.folder / "mine"
    shutil.copytree(theirs, mine, ignore=shutil.ignore_patterns(".venv"))
    (mine / ".venv").symlink_to(theirs / ".venv")
    before = {path: path.read_bytes() for path in (theirs / ".venv").rglob("*") if path.is_file()}
    assert machine.run("ls", script=mine / "vlaloop")[::2] == (0, "")
    with (mine / "constraints.txt").open("a") as file:
        file.write("numpy==2.0\n")
    code, _, err = machine.run("ls", script=mine / "vlaloop")
    assert code == 1 and "error SETUP-008" in err and str(theirs) in err and "rm '" in err
    assert {path: path.read_bytes() for path in (theirs / ".venv").rglob("*") if path.is_file()} == before
    (mine / ".venv").unlink()
    assert machine.run("ls", script=mine / "vlaloop")[0] == 0 and (mine / ".venv/vlaloop.stamp").is_file()


def test_an_environment_on_another_disk_is_ones_own(machine: Machine) -> None:
    machine.python("python3.11")
    (machine.folder / "disk").mkdir()
    (machine.checkout / ".venv").symlink_to(machine.folder / "disk")
    assert machine.run("ls")[0] == 0 and (machine.folder / "disk/vlaloop.stamp").is_file()


@pytest.mark.parametrize("broken", ["no pip", "no python"])
def test_half_made_environment_is_made_again(machine: Machine, broken: str) -> None:
    machine.python("python3.11")
    half = machine.put("half")
    machine.put("pip_says", "interrupted")
    machine.run("ls")
    half.unlink()
    (machine.folder / "pip_says").unlink()
    if broken == "no python":
        (machine.checkout / ".venv" / "bin" / "python").unlink()
    assert machine.run("ls")[0] == 0
    assert len(machine.asked("-m venv")) == 2


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_interrupted_set_up_is_repaired_by_running_again(machine: Machine, number: signal.Signals) -> None:
    machine.python("python3.11")
    hold = machine.put("hold")
    started = machine.start("ls")
    until(lambda: machine.asked("-m pip install"))
    os.kill(started.pid, number)
    hold.unlink()
    started.communicate()
    assert not (machine.checkout / ".venv" / "vlaloop.stamp").exists()
    if number == signal.SIGTERM:
        assert not (machine.checkout / ".venv" / "setup.lock").exists()
    code, out, err = machine.run("ls")
    assert code == 0, err
    assert "<ls>" in out


def test_two_at_once_set_up_once(machine: Machine) -> None:
    machine.python("python3.11")
    hold = machine.put("hold")
    first = machine.start("ls")
    until(lambda: machine.asked("-m pip install"))
    second = machine.start("plan")
    time.sleep(0.2)
    hold.unlink()
    assert "<ls>" in first.communicate(timeout=20)[0]
    out, err = second.communicate(timeout=20)
    assert "<plan>" in out
    assert f"waiting: ./vlaloop (process {first.pid}) is setting up .venv" in err
    assert len(machine.asked("-m pip install")) == 1


def test_called_through_links_from_elsewhere(machine: Machine) -> None:
    machine.python("python3.11")
    link = machine.folder / "bin" / "vlaloop"
    link.symlink_to(machine.checkout / "vlaloop")
    relative = machine.folder / "bin" / "loop"
    relative.symlink_to("vlaloop")
    for script in (link, relative):
        code, out, err = machine.run("ls", script=script)
        assert code == 0, err
        assert f"path={machine.checkout}\n" in out
