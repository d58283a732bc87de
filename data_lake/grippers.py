"""Grippers as the lake has them: 1 is open, 0 is closed, whatever a source wrote."""

import numpy as np
import pyarrow as pa

from data_lake.findings import Finding, finding
from data_lake.schema import ACTION, STATE, fixed, vectors
from data_lake.sources.episode import Episode
from data_lake.specs import GripperSpec

COLUMNS = {"state": STATE, "action": ACTION}
SLACK = 0.05  # of the way between open and closed, for sensors and commands that overshoot


def with_open_as_one(
    rows: pa.Table, grippers: tuple[GripperSpec, ...], episode: Episode
) -> tuple[pa.Table, list[Finding]]:
    """Canonical `rows` with each declared gripper mapped linearly (open to 1, closed to 0), and what is odd about it.

    LAKE-056 where a dimension is not there or its values lie outside of the declared ones by more than SLACK.
    """
    found: list[Finding] = []
    for gripper in grippers:
        name, where = COLUMNS[gripper.column], {"episode": episode.source_episode, "file": episode.file}
        rows_TD = vectors(rows[name])
        if rows_TD is None or not 0 <= gripper.dim < rows_TD.shape[1] or gripper.open == gripper.closed:
            detail = f"{gripper.column}[{gripper.dim}], open {gripper.open:g}, closed {gripper.closed:g}"
            return rows, [*found, finding("LAKE-056", f"no such gripper: {detail}", **where)]
        openness_T = (rows_TD[:, gripper.dim] - gripper.closed) / (gripper.open - gripper.closed)
        outside_T = np.abs(openness_T - 0.5) > 0.5 + SLACK
        if outside_T.any():
            row = int(np.argmax(outside_T))
            detail = f"{gripper.column}[{gripper.dim}] is {rows_TD[row, gripper.dim]:g} in row {row}"
            return rows, [*found, finding("LAKE-056", detail, row=row, **where)]
        if openness_T.min() > 0.5 or openness_T.max() < 0.5:
            state = "open" if openness_T[0] > 0.5 else "closed"
            found.append(finding("LAKE-055", f"{gripper.column}[{gripper.dim}] is always {state}", **where))
        mapped_TD = rows_TD.copy()
        mapped_TD[:, gripper.dim] = openness_T
        rows = rows.set_column(rows.column_names.index(name), name, fixed(mapped_TD))
    return rows, found
