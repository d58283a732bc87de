"""Every stage of the loop, its semantic version and its retry budget. Read this file first."""

from tasks.build import Stage

CORES = ("vlaloop-cores",)  # one heavy stage at a time on a machine; a second run waits and says so

collect = Stage(fn="tasks.collect:collect", version=1, retries=2, resources=CORES)
ingest = Stage(fn="tasks.ingest:ingest", version=1, retries=3)  # storage throttles
preprocess = Stage(fn="tasks.preprocess:preprocess", version=3, retries=2, resources=CORES)
mix = Stage(fn="tasks.mix:mix", version=1, retries=1)  # only where a recipe trains on several data sets
pack = Stage(fn="tasks.pack:pack", version=2, retries=1)
train = Stage(fn="tasks.train:train", version=1, retries=8, resources=CORES)  # preemption is normal
export = Stage(fn="tasks.export:export", version=1, retries=1)
evaluate = Stage(fn="tasks.evaluate:evaluate", version=1, retries=3, resources=CORES)  # simulators crash
register = Stage(fn="tasks.register:register", version=1, retries=5)

STAGES = {stage.name: stage for stage in (collect, ingest, preprocess, mix, pack, train, export, evaluate, register)}
LOOP = tuple(name for name in STAGES if name != mix.name)
"""What every loop goes through that collects its episodes, in order."""
