"""Jobs of several ranks on this machine, under torchrun."""

import sys

from tasks.launchers import Job
from tasks.launchers.local import LocalLauncher


def ranks_command(job: Job) -> list[str]:
    """One torchrun that starts `job.processes` ranks and ends all when one fails."""
    ranks = f"--nproc-per-node={job.processes}"
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", ranks, "--max-restarts=0", "--no-python"]
    return [*run, sys.executable, "-m", job.module, *job.arguments]


LAUNCHER = LocalLauncher("torchrun", ranks_command)
