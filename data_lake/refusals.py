"""Stable codes for what stops a command as a whole (a UserError), beside those of single episodes in `codes.py`."""

from data_lake.codes import Code


def _refused(what: str, fix: str) -> Code:
    return Code(severity="error", what=what, done="nothing was changed", fix=fix)


_REBUILD = "restore the data set from a copy, or ingest its sources into a new one"

# -154 and -155 stop a repair, -156 and -157 work on Ray.
REFUSALS: dict[str, Code] = {
    "LAKE-001": _refused("no episode could be ingested", "mend what the findings name first"),
    "LAKE-002": _refused("not a source that is understood", "name a folder with meta/info.json, or give its format"),
    "LAKE-003": _refused("the source changed since this run began", "start a new run"),
    "LAKE-004": _refused("the source's metadata cannot be read", "copy meta/ again"),
    "LAKE-005": _refused("the data do not fit the embodiment", "name the embodiment that recorded them"),
    "LAKE-006": _refused("the data set holds another kind of frames", "name another data set with ingest.dataset"),
    "LAKE-034": _refused("not a name for a data set", "use letters, digits, `.`, `-` and `_`"),
    "LAKE-035": _refused("the source does not say all that must be known", "set the field that is named"),
    "LAKE-036": _refused("the source says something else than the recipe", "set the field to what the source says"),
    "LAKE-037": _refused("something is declared that the source says itself", "leave the field out"),
    "LAKE-070": _refused("a table has another number of rows than the manifest says", _REBUILD),
    "LAKE-071": _refused("the episodes do not tile the frames", _REBUILD),
    "LAKE-072": _refused("an episode names a video that is not there", _REBUILD),
    "LAKE-073": _refused("stored video bytes differ from their recorded size or digest", _REBUILD),
    "LAKE-074": _refused("a table cannot be opened at the manifest's version", _REBUILD),
    "LAKE-075": _refused("row N of frames is not absolute frame N", _REBUILD),
    "LAKE-076": _refused("a file of the data set is damaged", _REBUILD),
    "LAKE-130": _refused("an episode lacks a camera that others have", "keep such episodes in a data set of their own"),
    "LAKE-132": _refused("the version cannot be given out whole", "./vlaloop doctor on the data set"),
    "LAKE-133": _refused("the folder to write is there already", "name another folder"),
    "LAKE-135": _refused("Lance tables that are no data set LeRobot would open", "name the folder that holds meta/"),
    "LAKE-136": _refused("a table of the source cannot be opened", "copy the table again"),
    "LAKE-154": _refused("only a LeRobot folder can be repaired", "name the folder that holds meta/info.json"),
    "LAKE-155": _refused("the repaired metadata could not be written", "mend what the message names"),
    "LAKE-156": _refused(
        "no Ray cluster answers", "start one with `ray start --head`, or need none: runner: native, decode: threads"
    ),
    "LAKE-157": _refused("a Ray cluster here would listen on all interfaces", "join a cluster by ray_address"),
    "LAKE-180": _refused("data sets that do not mean the same cannot be one", "keep them apart"),
    "LAKE-181": _refused(
        "an episode is given two instructions, or one that is none", "name each once; say what is done"
    ),
    "LAKE-182": _refused("the version was given up", "name another version"),
    "LAKE-183": _refused("the tag means another version", "say --move"),
    "LAKE-184": _refused("the data set has no such tag", "./vlaloop tag NAME@VERSION TAG"),
    "LAKE-185": _refused("not a name for a tag", "use letters, digits, `.`, `-` and `_`, and not digits alone"),
    "LAKE-186": _refused("what is stored is not what was recorded", "./vlaloop doctor on the data set"),
    "LAKE-187": _refused("a file of labels is not understood", "lines of JSON, or CSV: episode, instruction"),
    "LAKE-188": _refused("the newest version cannot be given up", "name an older one"),
    "LAKE-197": _refused("a referenced video cannot be opened", "put the file back, or ingest its source again"),
    "LAKE-198": _refused("a referenced video is not what came in", "put the file back, or ingest its source again"),
    "LAKE-205": _refused(
        "the data set has no saved view of that name", "save it: ./vlaloop view DATASET NAME --where …"
    ),
    "LAKE-206": _refused("a view's filter cannot be answered", "ask for columns that there are"),
    "LAKE-207": _refused("a list of episodes is not understood", "write 1-5,7 or SOURCE:30"),
    "LAKE-208": _refused(
        "an episode that is asked for is not there, or may be any of several", "ask for episodes that there are"
    ),
    "LAKE-209": _refused("no episode is left", "widen the view, or exclude fewer"),
    "LAKE-210": _refused("a view gave other episodes than when the run began", "start a new run"),
    "LAKE-212": _refused("not a name for a saved view", "use letters, digits, `.`, `-` and `_`"),
    "LAKE-213": _refused("a camera cannot be put into its slot", "set preprocess.cameras to cameras that there are"),
    "LAKE-232": _refused("statistics are not finite", "leave the episodes out that doctor names"),
    "LAKE-240": _refused("a link in the source leads back to a folder that it is in", "remove the link"),
    "LAKE-241": _refused("the source names a file that its snapshot leaves out", "move it to a folder of the source"),
    "LAKE-242": _refused("a small file does not say what was written", "restore it, or do what it said once more"),
    "LAKE-244": _refused("files are not what a stage made", "restore them, or build the stage again with --rebuild"),
    "LAKE-245": _refused("another command or machine came between", "the same command again"),
}
