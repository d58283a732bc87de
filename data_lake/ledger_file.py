"""How a run of the ledger lies on disk: JSON, and the rows kept for quantiles as arrays, in one npz archive."""

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from data_lake.files import LakePath, read_bytes
from data_lake.sources.files import ODD
from data_lake.stated import Column, Columns
from data_lake.statistics import Moments, Thinned
from data_lake.tally import Sums

SAID = "said"


def packed(said: Mapping[str, Any], sums: Sums) -> bytes:
    """`said`, JSON-safe, and `sums`, exactly."""
    columns = sums.columns
    counted = {
        "moments": {name: moments.as_json() for name, moments in sums.moments.items()},
        "lengths": list(sums.lengths.items()),
        "misfits": [[*key, count] for key, count in sums.misfits.items()],
        "complete": columns.complete,
        "has_quantiles": columns.has_quantiles,
        "columns": [
            {"name": name, "moments": each.moments.as_json(), "stride": each.rows.stride, "count": each.rows.count}
            for name, each in columns.columns.items()
        ],
    }
    rows = {f"rows{place}": each.rows.rows() for place, each in enumerate(columns.columns.values())}
    text = json.dumps({**said, "sums": counted}).encode()
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{SAID: np.frombuffer(text, np.uint8)}, **rows)
    return buffer.getvalue()


def unpacked(path: LakePath) -> tuple[dict[str, Any], Sums] | None:
    """What was `packed` into the file; None when there is none, or it is torn."""
    try:
        with np.load(io.BytesIO(read_bytes(path))) as arrays:
            said = json.loads(arrays[SAID].tobytes())
            counted = said.pop("sums")
            columns = {
                each["name"]: Column(
                    moments=Moments.from_json(each["moments"]),
                    rows=Thinned.restored(arrays[f"rows{place}"], stride=each["stride"], count=each["count"]),
                )
                for place, each in enumerate(counted["columns"])
            }
            sums = Sums(
                moments={name: Moments.from_json(each) for name, each in counted["moments"].items()},
                columns=Columns(columns=columns, complete=counted["complete"], has_quantiles=counted["has_quantiles"]),
                lengths=dict(counted["lengths"]),
                misfits={(camera, episode): count for camera, episode, count in counted["misfits"]},
            )
    except (*ODD, OSError, EOFError, zipfile.BadZipFile):
        return None
    return said, sums
