"""Refs as small tables: every field, escaped."""

from data_lake.notebook import table_html, thumbnails_html
from data_lake.refs import DatasetRef, EpisodesRef


def test_a_ref_is_a_table_of_its_fields() -> None:
    ref = EpisodesRef(uri="<b>", fingerprint="f", num_episodes=3, num_frames=40)
    assert table_html(ref) == ref._repr_html_()
    assert "&lt;b&gt;" in table_html(ref) and "<b>" not in table_html(ref)
    assert "num_episodes" in table_html(ref) and ">40<" in table_html(ref)


def test_no_thumbnails_where_the_lake_is_not_at_hand() -> None:
    counts = {"num_episodes": 1, "num_quarantined": 0, "num_frames": 1, "num_findings": 0}
    ref = DatasetRef(uri="nowhere/x", fingerprint="f", dataset="d", version=1, **counts)
    assert thumbnails_html(ref) == ""
