"""One reading of a source onto one version of a data set: what was there, what comes in, who was turned away."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

from data_lake import lake_meta
from data_lake.cluster import Cluster
from data_lake.declaring import Declared
from data_lake.files import LakePath
from data_lake.findings import Finding
from data_lake.fitting import Kind, Stranger, same_robot
from data_lake.held import Held
from data_lake.journal import Journal
from data_lake.review import Seen
from data_lake.sources.episode import Source
from data_lake.specs import IngestSpec
from data_lake.statistics import Moments
from data_lake.tables import read_meta
from data_lake.tally import Tally
from data_lake.writer import Writer


@dataclass(slots=True)
class Pass:
    """label: what people call the source. meta, info, tasks, held: of the version it begins on. declared: what is
    declared against what that version records. features, new_moments, added: of what is new. entries: the view's, of
    all sound episodes. bad, strangers: those in quarantine, and why some of them are there although they are sound."""

    writer: Writer
    label: str
    meta: dict[str, bytes]
    info: dict[str, Any] | None
    tasks: dict[str, int]
    held: Held
    declared: Declared
    journal: Journal | None = None
    tally: Tally = field(default_factory=Tally)
    new_moments: dict[str, Moments] = field(default_factory=dict)
    features: dict[str, Any] = field(default_factory=dict)
    entries: list[dict[str, Any]] = field(default_factory=list)
    added: list[dict[str, Any]] = field(default_factory=list)
    bad: list[Seen] = field(default_factory=list)
    strangers: list[Stranger] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def kind(self, source: Source) -> Kind:
        """What frames must be like to come in."""
        known = self.info or {"features": {}, "fps": source.card.fps}
        features = {**known["features"], **self.features}
        return Kind(source=source, dataset=self.writer.root.name, fps=known["fps"], features=features)

    def turn_away(self, seen: Seen, stranger: Stranger) -> None:
        """Into quarantine, sound as the episode is."""
        assert seen.examined is not None
        found = stranger.findings(seen.examined.episode)
        verdict = replace(seen.verdict, content_hash="")
        self.bad.append(replace(seen, verdict=verdict, findings=(*seen.findings, *found)))
        self.findings += found
        self.strangers.append(stranger)

    def ensure_some_fit(self, enough: int) -> None:
        """Raises the first of at least `enough` strangers, where no episode was taken."""
        if not self.entries and len(self.strangers) >= enough:
            raise self.strangers[0]


def onto_newest(root: LakePath, label: str, spec: IngestSpec, *, declared: Declared, cluster: Cluster | None) -> Pass:
    """The newest version of the data set at `root`, or none yet. declared: of this ingest, before any version.

    Raises UserError LAKE-006 when that version is of another robot.
    """
    writer = Writer(root, leave=spec.copy == "reference", cluster=cluster)
    if writer.base is None:
        return Pass(writer=writer, label=label, meta={}, info=None, tasks={}, held=Held(label), declared=declared)
    meta = read_meta(root, writer.base)
    tasks = lake_meta.read_table(meta[lake_meta.TASKS])
    rows = lake_meta.read_table(meta[lake_meta.EPISODES]).to_pylist()
    info = json.loads(meta[lake_meta.INFO])
    same_robot(info, root.name, spec)
    held = Held(label)
    held.put(rows, lake_meta.entry_of)
    return Pass(
        writer=writer,
        label=label,
        meta=meta,
        info=info,
        tasks=dict(zip(tasks["task"].to_pylist(), tasks["task_index"].to_pylist(), strict=True)),
        held=held,
        declared=replace(declared, recorded=[row["meaning"] for row in rows]),
    )
