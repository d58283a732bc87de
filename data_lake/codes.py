"""One table of stable codes for what can be wrong with recordings, used alike by ingest, its quarantine and doctor.

`error` keeps an episode (or a source) out, `warning` was put right or worked around, `note` is worth knowing.
"""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Code:
    severity: Severity
    what: str
    done: str
    fix: str


def _bad(what: str, fix: str) -> Code:
    return Code(severity="error", what=what, done="the episode is in quarantine", fix=fix)


def _odd(what: str, done: str, fix: str) -> Code:
    return Code(severity="warning", what=what, done=done, fix=fix)


def _note(what: str, done: str) -> Code:
    return Code(severity="note", what=what, done=done, fix="nothing needs to be done")


_COPY = "copy the file again and run the same command"

# About one episode or one file; what stops a command as a whole stands in `data_lake/refusals.py`.
FINDINGS: dict[str, Code] = {
    "LAKE-007": _bad("parquet file without footer (the recorder was killed while writing)", _COPY),
    "LAKE-008": _bad("a Git LFS pointer, not the file itself", "run `git lfs pull` in the source"),
    "LAKE-009": _bad("the data file is missing", _COPY),
    "LAKE-010": _bad("the video file is missing", _COPY),
    "LAKE-011": _bad("the camera does not have one frame per row", "check which pictures belong to the episode"),
    "LAKE-012": _bad("the metadata's length is not the number of rows", "correct the length in the metadata"),
    "LAKE-013": _bad("the video span lies past the end of its file", "correct the span or the file index"),
    "LAKE-014": _bad("the video span overlaps that of another episode", "correct the span or the file index"),
    "LAKE-015": _bad("the video span does not last as long as the rows", "correct the span in the metadata"),
    "LAKE-016": _bad("a value is missing, NaN or infinite", "cut or repair the rows"),
    "LAKE-017": _bad("timestamps do not increase", "sort or repair the rows"),
    "LAKE-018": _bad("frame_index does not count 0, 1, 2, …", "remove repeated rows, restore missing ones"),
    "LAKE-019": _bad(
        "a column has another type or shape than declared, or than in other episodes",
        "write the column as meta/info.json says",
    ),
    "LAKE-020": _bad("the episode has no rows", "delete the episode or record it again"),
    "LAKE-021": _bad("the file holds rows of another episode", "check which file belongs to the episode"),
    "LAKE-022": _bad("the parquet file cannot be read", _COPY),
    "LAKE-023": _bad("the video file cannot be read", _COPY),
    "LAKE-024": _odd(
        "the episode has no instruction", "it is ingested with an empty one", "add its task to meta/tasks"
    ),
    "LAKE-025": _bad("a required column is missing", "record observation.state and action"),
    "LAKE-026": _bad("the metadata list the episode twice", "remove one of the entries"),
    "LAKE-027": _odd("data of an episode that the metadata do not list", "it is left out", "list the episode in meta/"),
    "LAKE-028": _odd(
        "dataset_from_index/dataset_to_index do not tile the rows",
        "boundaries are taken from the rows' episode_index",
        "write the indices anew",
    ),
    "LAKE-030": _bad("the instruction is longer than 4,096 bytes", "shorten the task in the metadata"),
    "LAKE-031": _bad("the pictures of a camera cannot be read", "record uint8 RGB images of one size"),
    "LAKE-032": _bad("video frames are not at the rate of the rows", "re-encode the video at the declared fps"),
    "LAKE-033": _odd(
        "the same video stands under several episodes", "they are ingested as they are", "check the recording"
    ),
    "LAKE-038": _bad("a rotation's values cannot be of the declared kind", "declare its place and kind as recorded"),
    "LAKE-039": _bad("a dimension declared as padding carries values", "declare only dimensions that are always zero"),
    "LAKE-040": _odd("codebase_version disagrees with the layout", "the layout was believed", "correct meta/info.json"),
    "LAKE-041": _odd("total_videos is wrong", "files were counted instead", "correct meta/info.json"),
    "LAKE-042": _odd("total_chunks is wrong", "folders were counted instead", "correct meta/info.json"),
    "LAKE-043": _odd("splits reach beyond the episodes", "splits are not used", "correct meta/info.json"),
    "LAKE-044": _odd(
        "the path template formats to files that do not exist",
        "files were found by their episode number",
        "use chunk-{episode_chunk:03d} in meta/info.json",
    ),
    "LAKE-045": _odd(
        "a camera is declared but has no files", "the camera is left out", "remove it from meta/info.json"
    ),
    "LAKE-046": _odd("there is no frame_index column", "rows were counted instead", "add the column"),
    "LAKE-047": _odd("timestamps do not start at 0", "rows were given frame_index / fps", "write the timestamps anew"),
    "LAKE-048": _odd(
        "the last row lies after the last video frame", "row i was given video frame i", "write the timestamps anew"
    ),
    "LAKE-049": _odd("timestamps do not step by 1/fps", "rows were given frame_index / fps", "write them anew"),
    "LAKE-050": _odd(
        "a task of the episodes is a mark, not an instruction", "it is no prompt", "keep marks out of the task list"
    ),
    "LAKE-051": _odd("statistics have no count", "statistics are computed anew", "nothing needs to be done"),
    "LAKE-052": _odd(
        "dimensions never change", "normalisation maps them to 0", "check that the robot does not move these joints"
    ),
    "LAKE-053": _odd("there are no statistics", "statistics are computed anew", "nothing needs to be done"),
    "LAKE-054": _odd("totals in meta/info.json are wrong", "episodes and rows were counted", "correct meta/info.json"),
    "LAKE-055": _odd(
        "a gripper never changes its state", "it is ingested as it is", "check the values declared as open and closed"
    ),
    "LAKE-056": _bad("a gripper's values lie outside those declared", "declare its values when open and when closed"),
    "LAKE-058": _odd("timestamps leave gaps", "rows were given frame_index / fps", "cut the episode at its gaps"),
    "LAKE-059": _odd(
        "a row points at a task that its episode does not list",
        "an annotation that does so is not used; task_index is believed",
        "write the task columns anew",
    ),
    "LAKE-060": _odd("meta/info.json names no codebase_version", "the layout was believed", "add the version"),
    "LAKE-061": _odd("meta/info.json declares no features", "columns were taken as they are", "declare the features"),
    "LAKE-062": _bad("the rows are not of a form that is understood", "write the columns as meta/info.json says"),
    "LAKE-063": _odd("columns that meta/info.json does not declare", "they are left out", "declare them"),
    "LAKE-100": _bad("what an HDF5 file holds cannot be read", _COPY),
    "LAKE-101": _bad("an HDF5 file without demonstrations (data/demo_0, …)", "record it again, or take the file away"),
    "LAKE-102": _bad("parts of the demonstration have different numbers of rows", "cut them to the rows that all have"),
    "LAKE-103": _odd(
        "demonstrations say of themselves that they failed",
        "they are left out",
        "set ingest.read.only_success to false to keep them",
    ),
    "LAKE-104": _odd(
        "the demonstration does not record its initial_state, so that its goal is not known",
        "it is ingested as it is",
        "record it again with its initial state to replay it",
    ),
    "LAKE-105": _bad("the file has another rate than the source's first file", "ingest files of one rate at a time"),
    "LAKE-106": _odd(
        "something that is not expected stands in `data`",
        "it is left out",
        "name demonstrations demo_N, and the pictures in ingest.read.views",
    ),
    "LAKE-107": _bad("the instruction is no single text", "set ingest.read.instruction to one text"),
    "LAKE-108": _bad("the demonstration lacks a path that is read", "set ingest.read to paths that all of them have"),
    "LAKE-109": _bad("a path holds no table of numbers", "set ingest.read to paths of (rows, numbers)"),
    "LAKE-110": _odd("a split is listed but has no files", "it is left out", "copy its shards beside the others"),
    "LAKE-111": _bad("the record's bytes do not match their checksum", _COPY),
    "LAKE-112": _bad("the shard cannot be read up to this record", _COPY),
    "LAKE-113": _odd(
        "the shard holds more records than dataset_info.json lists",
        "they are ingested, numbered behind all that are listed",
        "correct shardLengths in dataset_info.json",
    ),
    "LAKE-114": _bad("the record does not hold what features.json declares", "write the data set with its features"),
    "LAKE-115": _odd("pictures that are not RGB of 8 bits", "they are left out", "for a camera record RGB of uint8"),
    "LAKE-116": _odd("a shard that dataset_info.json does not list", "it is left out", "list it, or remove it"),
    "LAKE-117": _bad(
        "the demonstration says of itself that it failed", "set ingest.read.only_success to false to ingest it"
    ),
    "LAKE-118": _odd(
        "episode_metadata says that a camera is missing, yet its pictures change",
        "the pictures are believed",
        "correct the flag in episode_metadata, or leave the camera out with ingest.read.views",
    ),
    "LAKE-119": _odd(
        "dataset_info.json names another version than its folder", "the files of the folder were read", "correct it"
    ),
    "LAKE-120": _bad(
        "the bag cannot be read", "copy it again, or let `mcap recover`, `ros2 bag reindex` or `convert` mend it"
    ),
    "LAKE-121": _bad("messages of a type that cannot be read", "record with definitions (MCAP, or Iron and newer)"),
    "LAKE-122": _bad("the bag lacks what is read", "set ingest.read to topics and fields that all bags have"),
    "LAKE-123": _bad("a topic's times are 0, go backwards or leap", "set ingest.read.clock to the other clock"),
    "LAKE-124": _odd("a topic pauses for too long", "the recording was cut there", "raise ingest.read.max_age_s"),
    "LAKE-125": _odd("rows hold older values than allowed", "they are marked as gap", "leave them out of training"),
    "LAKE-126": _bad(
        "pictures in an encoding that is not known", "record rgb8, bgr8, rgba8, bgra8, mono8, JPEG or PNG"
    ),
    "LAKE-127": _bad("a field holds other dimensions than in the first message", "declare topics of one robot"),
    "LAKE-128": _odd(
        "metadata.yaml and the files differ", "the files were believed", "`ros2 bag reindex` writes it anew"
    ),
    "LAKE-129": _odd(
        "topics without a header beside others with one", "their time of reception was taken", "compare both clocks"
    ),
    "LAKE-131": _odd(
        "the pictures are not upright RGB, as LeRobot's readers take them to be",
        "they are given out as they are, and meta/info.json says so under `vlaloop`",
        "turn or swap the pictures where they are read",
    ),
    "LAKE-134": _odd(
        "an episode's video begins between two keyframes and cannot be cut out as it is",
        "it was encoded anew, without loss of a pixel",
        "publish as v3.0, which keeps every video byte for byte",
    ),
    "LAKE-140": _odd(
        "a dimension hardly moves beside its values",
        "it is ingested as it is",
        "normalise it with a floor for its range, or by mean and standard deviation",
    ),
    "LAKE-141": _bad("a web page, not the file itself (a download that was refused)", "download the file again"),
    "LAKE-142": _odd(
        "statistics in the metadata are not those of the rows", "statistics are computed anew", "compute them anew"
    ),
    "LAKE-143": _note("statistics have no quantiles q01 and q99", "quantiles are computed anew"),
    "LAKE-144": _note(
        "quantiles in the metadata are not those of the rows (an average of quantiles is none)",
        "quantiles are computed anew",
    ),
    "LAKE-145": _note("tasks that no episode uses", "they are left out"),
    "LAKE-146": _odd("one sentence stands under several task indices", "sentences are compared", "merge the tasks"),
    "LAKE-147": _odd(
        "the episode is a repetition of another's recording", "it is ingested as it is", "leave one of them out"
    ),
    "LAKE-148": _note("the episode is in the lake already, in another data set", "it is counted in both"),
    "LAKE-149": _odd(
        "the same episode is trained on and held out", "splits are not used", "draw the splits apart in the metadata"
    ),
    "LAKE-150": _note("the video is as long as another episode (its content was not compared)", "nothing was changed"),
    "LAKE-151": _note("episode numbers do not count 0, 1, 2, …", "a number is a key, never a position"),
    "LAKE-152": _odd(
        "the camera's codec cannot be decoded on this machine (the file itself may be sound)",
        "it is ingested as it is; preprocessing needs the decoder",
        "install FFmpeg and PyAV with a decoder for it, or re-encode the video as H.264",
    ),
    "LAKE-153": _bad("frames of the video cannot be decoded", _COPY),
    "LAKE-195": _bad("a camera of dtype image has no column among the rows", _COPY),
    "LAKE-196": _note(
        "the camera came in as pictures, one by one", "it is given out as video, without loss of a pixel"
    ),
    "LAKE-199": _note("videos that are referenced where they are", "their bytes were copied into what is given out"),
    "LAKE-221": _odd("the source has another rate than the embodiment", "it is ingested", "see that both are right"),
    "LAKE-222": _odd(
        "the source has other cameras than the embodiment",
        "they are ingested under their own names",
        "see that it is the right robot; preprocess.cameras puts cameras into the policy's slots",
    ),
    "LAKE-230": _bad("two names of the source would be one in the lake (dots become underscores)", "rename one"),
    "LAKE-231": _bad("the instruction is no text", "write down what is done, in words"),
    "LAKE-233": _bad(
        "the pictures of a camera have another size than before",
        "keep such episodes in a data set of their own, or write all videos of a camera in one size",
    ),
    "LAKE-243": _note("a file lies where none of its name belongs", "it is left alone"),
    "LAKE-246": _bad("rows point at a task that is not in the list", "list it in meta/tasks, or write task_index anew"),
    "LAKE-247": _bad("only some rows point at a task that their episode does not list", "write task_index anew"),
    "LAKE-250": _bad("rows follow one another at another rate than is declared", "correct fps in meta/info.json"),
    "LAKE-251": _bad(
        "the video's header has players turn or mirror its pictures, which readers of pixels do not do",
        "encode it anew as it is to be seen (`ffmpeg -i OLD.mp4 NEW.mp4`)",
    ),
    "LAKE-252": _odd(
        "columns of a kind that is not kept: text, or more than one dimension",
        "they are left out",
        "words go into the task, tables into vectors of fixed length",
    ),
}
