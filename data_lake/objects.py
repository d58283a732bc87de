"""Object stores: paths `s3://bucket/prefix`, and what stands there for links, renames and folders.

Address, region and credentials are those of AWS's own environment variables, which s3fs, Lance and Daft all read.
"""

import errno
import os
import shutil
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from upath import UPath

from errors import Transient, UserError

SCHEME = "s3://"
NOTE = "current"  # beside folders that were written whole: which of them it is
CONFLICT_TRIES = 20
LANCE_LOST = "Generic S3 error"  # how Lance tells what it could not do after tries of its own
TOGETHER = 32  # files that go up or come down at a time


def is_object_uri(text: str) -> bool:
    """Whether this names a place on an object store rather than a folder."""
    return "://" in text


def object_path(uri: str) -> UPath:
    """A path below a bucket that has pathlib's words. Listings are not remembered: others write there too.

    Raises UserError LAKE-170 for what is no `s3://bucket/…`, LAKE-171 for an endpoint that Lance would refuse.
    """
    if not uri.startswith(SCHEME) or not uri.removeprefix(SCHEME).strip("/"):
        raise UserError(
            "LAKE-170",
            f"not a place that can hold a lake or a source: {uri}",
            next_step="name a folder, or s3://BUCKET/PREFIX",
        )
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
    if endpoint.startswith("http://") and os.environ.get("AWS_ALLOW_HTTP", "").lower() != "true":
        raise UserError(
            "LAKE-171",
            "the endpoint of the object store is not encrypted, and nothing says that this is meant",
            where=f"AWS_ENDPOINT_URL={endpoint}",
            next_step="export AWS_ALLOW_HTTP=true, or use an https endpoint",
        )
    return UPath(uri.rstrip("/"), use_listings_cache=False, endpoint_url=endpoint or None)


def require_bucket(path: UPath) -> None:
    """One look at the bucket. Raises UserError LAKE-172 when it is absent, forbidden or out of reach."""
    from botocore.exceptions import BotoCoreError

    bucket = path.path.partition("/")[0]
    try:
        path.fs.info(bucket)
    except (OSError, BotoCoreError) as error:
        raise UserError(
            "LAKE-172",
            f"the bucket {bucket!r} cannot be used: {str(error) or type(error).__name__}",
            where=str(path),
            next_step="check the name, AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION",
        ) from error


@contextmanager
def answering(path: Path | UPath) -> Iterator[None]:
    """Work on a lake at `path`: a store that does not answer is what a retry may mend: Transient."""
    if isinstance(path, Path):
        yield
        return
    from botocore.exceptions import ConnectionError as NoConnection
    from botocore.exceptions import HTTPClientError

    try:
        yield
    except (NoConnection, HTTPClientError) as error:
        raise Transient(f"the object store does not answer: {error}") from error
    except (OSError, ValueError) as error:
        if LANCE_LOST not in str(error):
            raise
        raise Transient(f"the object store does not answer: {error}") from error


def create(path: UPath, payload: bytes) -> bool:
    """Conditional put (If-None-Match: *): True if this call made the object.

    An answer that was lost is asked for again, and then finds the object there: False may be said to the one that
    made it, which costs its caller a wait or another round; True is never said twice.
    """
    for _ in range(CONFLICT_TRIES):
        try:
            path.fs.pipe_file(path.path, payload, mode="create")
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno != errno.EBUSY:  # S3's 409: another put of this key was going on, ask again
                raise
        else:
            return True
    raise OSError(errno.EBUSY, "others put the same object again and again", str(path))


def get(path: UPath) -> bytes:
    """The whole object, by one request. Raises FileNotFoundError."""
    found = path.fs.cat_file(path.path)
    assert isinstance(found, bytes)
    return found


def put(path: UPath, payload: bytes) -> None:
    """The object with this content; a reader sees the old or the new."""
    path.fs.pipe_file(path.path, payload)


def tagged(root: UPath) -> dict[str, tuple[int, str]]:
    """Size and ETag of every object below `root`, by its name relative to it, in order."""
    prefix = f"{root.path.rstrip('/')}/"
    found: dict[str, dict[str, Any]] = dict(root.fs.find(root.path, detail=True))
    return {
        name.removeprefix(prefix): (each["size"], each["ETag"])
        for name, each in sorted(found.items())
        if name.startswith(prefix)
    }


def below(root: UPath) -> dict[str, int]:
    """Size of every object below `root`, by its name relative to it, in order."""
    return {name: size for name, (size, _) in tagged(root).items()}


def tree(root: UPath) -> Iterator[UPath]:
    """Every object below `root`, in the order of their relative names."""
    return (root / name for name in below(root))


def remove(root: UPath) -> None:
    """An object, or all below a prefix. Nothing there is no error."""
    if root.exists():
        root.fs.rm(root.path, recursive=True)


@contextmanager
def noted(target: UPath) -> Iterator[UPath]:
    """A prefix below `target` that is the whole one once a note, put if absent, says so. See `files.appearing`."""
    place, is_first = target / uuid.uuid4().hex, False
    try:
        yield place
        is_first = create(target / NOTE, place.name.encode())
        if not is_first:
            raise FileExistsError(str(target))
    finally:
        if not is_first:
            remove(place)


def where_noted(target: UPath) -> UPath | None:
    """The prefix that became the whole one, None while there is none."""
    note = target / NOTE
    return target / get(note).decode() if note.exists() else None


def copy(source: UPath, target: UPath) -> None:
    """Inside the store: no byte passes this machine."""
    source.fs.cp_file(source.path, target.path)


def upload(folder: Path, target: UPath, check: Callable[[], None], there: Collection[Path] = ()) -> None:
    """Every file below `folder`, to the same names below `target`. check: called between some files, may raise.
    there: files that `target` has already."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path not in there)
    for start in range(0, len(paths), TOGETHER):
        check()
        some = paths[start : start + TOGETHER]
        names = [(target / path.relative_to(folder).as_posix()).path for path in some]
        target.fs.put([str(path) for path in some], names)


def download(root: UPath, sizes: Mapping[str, int], target: Path) -> None:
    """Objects below `root`, by name with their sizes, to the same names below the folder `target`, each whole or not.

    Raises UserError LAKE-173 when the disk has no room for them.
    """
    target.mkdir(parents=True, exist_ok=True)
    needed, free = sum(sizes.values()), shutil.disk_usage(target).free
    if needed > free:
        raise UserError(
            "LAKE-173",
            f"{needed:,} bytes of {root} are needed as files of this machine, and its disk has room for {free:,}",
            where=str(target),
            next_step="make room, or name another --home",
        )
    temporary = target / f".tmp-{uuid.uuid4().hex}"
    try:
        names = list(sizes)
        for start in range(0, len(names), TOGETHER):
            some = names[start : start + TOGETHER]
            root.fs.get([(root / name).path for name in some], [str(temporary / name) for name in some])
            for name in some:
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                os.replace(temporary / name, target / name)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
