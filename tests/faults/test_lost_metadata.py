"""An episode whose metadata are gone: it is missed before training, and no other is served with its pictures."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from data_lake.decode import frames
from data_lake.stored_videos import open_video
from data_lake.tables import read_manifest
from data_lake.view import read_view
from tests.data_lake.recordings import FPS, colour, write_v2, write_v3
from tests.data_lake.seen import ingest

LENGTHS = (8, 12, 10, 6, 9)


@pytest.mark.parametrize("lost", range(len(LENGTHS)))
def test_every_frame_has_the_colour_of_its_own_episode(lost: int, tmp_path: Path) -> None:
    source = write_v3(tmp_path / "v3", write_v2(tmp_path / "v2", LENGTHS), LENGTHS)
    table = source / "meta/episodes/chunk-000/file-000.parquet"
    listed = pq.read_table(table)
    pq.write_table(listed.filter(np.arange(len(LENGTHS)) != lost), table)
    done = ingest(source, tmp_path / "cart")
    assert [item.episode for item in done.findings if item.code == "LAKE-027"] == [lost]
    view, manifest = read_view(tmp_path / "cart-out"), read_manifest(tmp_path / "cart")
    assert manifest is not None
    assert [episode.source_episode for episode in view.episodes] == [n for n in range(len(LENGTHS)) if n != lost]
    for episode in view.episodes:
        (span,) = episode.spans
        uri = str(tmp_path / "cart/videos.lance")
        with open_video(uri, manifest.vector["videos"], span.video_key, span.chunk_index, span.file_index) as file:
            shown = frames(file, from_s=span.from_s, to_s=span.to_s, fps=FPS, wanted=range(episode.length))
            for index, image in shown:
                expected = np.array(colour(episode.source_episode, index))
                assert np.abs(image.mean(axis=(0, 1)) - expected).max() < 6, (episode.source_episode, index)
