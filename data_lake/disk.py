"""What a disk that is full, read-only or broken answers, told to a person: where, how much is free, what is needed."""

import errno
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from errors import UserError

SAID = {
    errno.ENOSPC: ("the disk is full", "free space, then give the same command again"),
    errno.EDQUOT: ("the disk quota is used up", "free space, then give the same command again"),
    errno.EROFS: ("the disk is read-only", "mount it for writing, or name another lake"),
    errno.EIO: ("the disk failed to read or write", "look at the disk's own log before anything is written again"),
}
_IN_WORDS = re.compile(r"\(os error (\d+)\)")  # how Lance's errors name the errno


@contextmanager
def disk_faults(place: Path, *, needed_bytes: int = 0) -> Iterator[None]:
    """While something writes to `place`. needed_bytes: of what goes there, 0 where nobody knows.

    Raises UserError LAKE-082 in place of an OSError by which the disk refused.
    """
    try:
        yield
    except OSError as error:
        said = SAID.get(_number(error))
        if said is None:
            raise
        what, next_step = said
        needed = f", about {needed_bytes:,} bytes are needed" if needed_bytes else ""
        raise UserError(
            "LAKE-082",
            what,
            where=f"{error.filename or place} · {shutil.disk_usage(place).free:,} bytes free{needed}",
            done="what was finished before is as it was",
            next_step=next_step,
        ) from error


def _number(error: OSError) -> int:
    """The errno, 0 where it has none."""
    found = _IN_WORDS.search(str(error))
    return error.errno or (int(found.group(1)) if found else 0)
