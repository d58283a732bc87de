"""A version of a data set as a folder that LeRobot itself opens (its native Lance layout) and that never changes.

LeRobot opens each table at its latest version, so what it opens must be a place where nothing happens: the version's
own data files, linked, under a Lance version of their own, with the meta/ that training asks for.
"""

from collections.abc import Iterator
from contextlib import suppress

import lance

from data_lake import lake_meta
from data_lake.doctor import contents_findings
from data_lake.exports.meta import ensure_sayable, unlike_lerobot, v3_files
from data_lake.exports.stats import statistics_of
from data_lake.files import LakePath, appeared, appearing, link_or_copy, name_below, replace
from data_lake.findings import Finding, finding
from data_lake.references import referenced, stored_fragments
from data_lake.schema import FILE_FORMAT, meta_rows
from data_lake.tables import TABLES
from data_lake.version import DatasetVersion
from errors import UserError


def published_path(version: DatasetVersion) -> LakePath:
    return version.root / "published" / f"{version.manifest.version:06d}"


def publish_lance(version: DatasetVersion) -> tuple[LakePath, list[Finding]]:
    """The folder of that version, made and verified when it is not there yet; and what its readers should know.

    Raises UserError LAKE-130 or LAKE-006 for what LeRobot cannot say, LAKE-076 and LAKE-132 when the tables are not
    whole.
    """
    ensure_sayable(version)
    findings = unlike_lerobot(version)
    if left := referenced(version.table("videos")):
        findings.append(finding("LAKE-199", f"{len(left)} of {version.manifest.num_videos}"))
    target = published_path(version)
    if (made := appeared(target)) is not None:
        return made, findings
    version.ensure_intact()
    files = v3_files(version, statistics_of(version))
    with suppress(FileExistsError), appearing(target) as folder:  # another one may publish the same version first
        for name in ("frames", "videos"):
            _clone(version.table(name), version.root / f"{name}.lance", folder / f"{name}.lance")
        for name, content in files.items():
            replace(folder / "meta" / name, content)
        lance.write_dataset(meta_rows(files), str(folder / "meta.lance"))
        _verify(folder, version)
    made = appeared(target)
    assert made is not None, "whoever was first left it whole"
    return made, findings


def _clone(table: lance.LanceDataset, source: LakePath, target: LakePath) -> None:
    """`table` at `target`: the same fragments over the same files. Not `shallow_clone`, whose base paths are
    absolute: a lake that was moved or copied would lose them, or go on reading the old one. Videos that the lake only
    refers to are copied: what strangers open must be whole."""
    parts = table.get_fragments()
    left = [part for part in parts if "video_bytes" in table.schema.names and referenced(part)]
    fragments = [part.metadata for part in parts if part not in left]
    for file in (file for fragment in fragments for file in _files(fragment, source)):
        link_or_copy(file, target / name_below(source, file))
    if left or not fragments:
        lance.write_dataset(table.schema.empty_table(), str(target), data_storage_version=FILE_FORMAT)
    if left:
        fragments += stored_fragments(table, target)
    if fragments:
        lance.LanceDataset.commit(
            str(target),
            lance.LanceOperation.Overwrite(table.schema, fragments),
            read_version=1 if left else None,
        )


def _files(fragment: lance.fragment.FragmentMetadata, table: LakePath) -> Iterator[LakePath]:
    """Data files of a fragment, each with the blobs beside it."""
    for file in fragment.files:
        path = table / "data" / file.path
        yield path
        yield from sorted(path.with_suffix("").glob("*"))


def _verify(folder: LakePath, version: DatasetVersion) -> None:
    tables = {name: lance.dataset(str(folder / f"{name}.lance")) for name in TABLES}
    written = lake_meta.read_table((folder / "meta" / lake_meta.EPISODES).read_bytes())
    shown = written.select([name for name in version.episode_rows.column_names if name in written.column_names])
    rows = [own | row for own, row in zip(version.episodes, shown.to_pylist(), strict=True)]
    found = list(contents_findings(tables, version.manifest, rows, stored=False))
    if found:
        raise UserError(
            "LAKE-132",
            f"the version is not whole: {found[0].code} {found[0].message}",
            where=version.name,
            done="nothing was published",
            next_step=f"./vlaloop doctor {version.root.name}",
        )
