"""From camera to batch: a packed sample is the recorded moment, pixel for pixel and number for number."""

import numpy as np

from tests.contracts.built import Built
from tests.contracts.recorded import VIEWS, Recorded


def test_a_packed_sample_is_the_recorded_moment(built: Built, recorded: list[Recorded]) -> None:
    batch, table = built.batch(), built.loader().table
    episode, frame = (table.column(name)[batch.sample_ids] for name in ("source_episode", "frame_index"))
    horizon = batch.actions.shape[1]
    for number in range(len(batch.sample_ids)):
        source, at = recorded[episode[number]], frame[number]
        chunk = source.action[at : at + horizon]
        np.testing.assert_array_equal(batch.proprio[number], source.state[at])
        np.testing.assert_array_equal(batch.actions[number, : len(chunk)], chunk)
        np.testing.assert_array_equal(batch.action_mask[number], np.arange(horizon) < len(chunk))
        mine = np.flatnonzero(batch.image_sample == number)
        assert {VIEWS[slot] for slot in batch.image_view[mine]} == set(source.frames)
        for image in mine:
            view = VIEWS[batch.image_view[image]]
            np.testing.assert_array_equal(batch.images[image], source.frames[view][at])


def test_no_sample_is_of_an_episode_that_was_held_out(built: Built) -> None:
    loader = built.loader()
    heldout = set(built.records["preprocess"]["identity"]["spec"]["preprocess"]["heldout_episodes"])
    episode = loader.table.column("source_episode")
    assert heldout and not heldout & set(episode[loader.packing.ids])
    assert heldout == set(episode[loader.table.ids(1)])
