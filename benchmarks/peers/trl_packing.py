"""TRL's best-fit decreasing packer on given lengths: runs in the peers' interpreter, a JSON order per line."""

import hashlib
import json
import sys
import time

import numpy as np
import pyarrow as pa
from trl.data_utils import _pack_bfd


def packed(lengths_file: str, capacity: int) -> dict[str, object]:
    """Seconds for one packing of samples of one-byte tokens, which cost it least to gather."""
    lengths = np.load(lengths_file)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    tokens = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(np.zeros(offsets[-1], np.int8)))
    table = pa.table({"input_ids": tokens})
    started = time.perf_counter()
    found = _pack_bfd(table, capacity)
    seconds = time.perf_counter() - started
    rows = found["input_ids"].combine_chunks().value_lengths().to_numpy()
    kept = np.sort(found["seq_lengths"].combine_chunks().flatten().to_numpy()).astype(np.int64)
    return {
        "seconds": seconds,
        "rows": len(rows),
        "fill": float(lengths.sum() / (len(rows) * capacity)),
        "fits": bool(rows.max() <= capacity),
        "work": hashlib.sha256(kept.tobytes()).hexdigest(),
    }


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(packed(**json.loads(line))), flush=True)
