"""Path templates come from files: filled without letting them do anything else."""

import pytest

from data_lake.sources.listing import fill

VALUES = {"episode_index": 7, "episode_chunk": 0, "video_key": "observation.images.top"}


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet", "data/chunk-000/episode_000007.parquet"),
        ("videos/{video_key}/{episode_index}.mp4", "videos/observation.images.top/7.mp4"),
        ("plain.parquet", "plain.parquet"),
        ("{unknown}/x", None),
        ("{episode_index.__class__}", None),
        ("{episode_index:999999999d}", None),
        ("{episode_index!r}", None),
        ("../../{episode_index}", None),
        ("/etc/{episode_index}", None),
    ],
)
def test_fill(template: str, filled: str | None) -> None:
    assert fill(template, VALUES) == filled
