"""The preprocess stage: a lake view becomes samples, with statistics and everything that serving must know."""

from dataclasses import asdict

from data_lake.earlier import Earlier, Output
from data_lake.held_out import write_recordings
from data_lake.integrity import ensure_intact
from data_lake.mirror import mirror_of
from data_lake.preprocess import Preprocessed, preprocess_view
from data_lake.refs import DatasetRef, PreprocessedRef
from data_lake.request import ModelFunctions, Request
from data_lake.runners import Runner
from data_lake.slots import in_slots
from data_lake.store import Attempt
from data_lake.tables import FOLDERS, dataset_root, read_manifest
from data_lake.view import read_view
from data_lake.words import counted
from lookup import lookup
from model_core.embodiments import EMBODIMENTS, layout_of
from tasks.runtime import Progress, Runtime, Summary
from tasks.specs import PreprocessStage

FUNCTIONS = ModelFunctions(
    prepare_view="model_core.transforms:prepare_view",
    fit_tokenizer="model_core.transforms:fit_tokenizer",
    text_tokens="model_core.transforms:text_tokens",
    robot="model_core.embodiments:from_layout",
    training_actions="model_core.transforms:training_actions",
)


def preprocess(spec: PreprocessStage, dataset: DatasetRef, *, out: Attempt, runtime: Runtime) -> PreprocessedRef:
    """Samples of every sample_stride-th frame, images as the policy sees them, statistics of training episodes.

    Raises UserError LAKE-076 for damaged tables: nothing is trained on them.
    """
    root = dataset_root(runtime.lake, dataset.dataset)
    if (manifest := read_manifest(root, dataset.version)) is not None:
        ensure_intact(root, manifest.files, *FOLDERS)
    view = in_slots(read_view(runtime.path(dataset.uri)), spec.preprocess.cameras)
    inputs = asdict(spec.policy.inputs) | {"views": list(spec.policy.inputs.views)}
    request = Request(
        sample_stride=spec.preprocess.sample_stride,
        heldout_episodes=spec.preprocess.heldout_episodes,
        inputs=inputs,
        layout=layout_of(lookup(EMBODIMENTS, view.embodiment, "embodiment")),
        functions=FUNCTIONS,
        cameras=spec.preprocess.cameras,
        images=spec.preprocess.images,
    )
    runner = Runner(name=runtime.runner, workers=runtime.workers, address=runtime.ray_address)

    def report(done: int, total: int) -> None:
        out.check()
        runtime.report(Progress(done=done, total=total, unit="episodes"))

    made = preprocess_view(view, root, request, out.path, runner=runner, earlier=_earlier(out, runtime), report=report)
    write_recordings(runtime.path(dataset.uri), root, spec.preprocess.heldout_episodes, out.path)
    runtime.report(_summary(made))
    return PreprocessedRef(
        uri=out.uri,
        fingerprint=out.fingerprint,
        num_samples=made.num_samples,
        num_heldout=made.num_heldout,
        num_views=made.num_views,
    )


def _earlier(out: Attempt, runtime: Runtime) -> Earlier:
    """What attempts at this slot left, then what finished slots hold, the newest first."""
    mirror = mirror_of(runtime.lake, runtime.home)
    finished = [Output.of_record(runtime.lake, mirror, record) for record in out.siblings]
    left = [Output(folder=path) for path in out.earlier]
    return Earlier(out.path, [*left, *finished], vouch=out.vouch, copy=out.copy)


def _summary(made: Preprocessed) -> Summary:
    marked = [f"{count:,} {name.replace('_', ' ')}" for name, count in made.marks.items() if count]
    adopted = [f"{counted(made.num_adopted, 'episode')} as prepared earlier"] if made.num_adopted else []
    fidelity = {name: made.images[name] for name in ("psnr_mean_db", "psnr_min_db") if name in made.images}
    return Summary(
        line=" · ".join([f"{counted(made.num_samples, 'sample')} ({made.num_heldout:,} held out)", *adopted, *marked]),
        table=[
            {"what": "samples", "count": made.num_samples},
            {"what": "held-out samples", "count": made.num_heldout},
            {"what": "images", "count": made.num_views},
            {"what": "control steps", "count": made.num_steps},
            {"what": "episodes as prepared earlier", "count": made.num_adopted},
            *({"what": name.replace("_", " "), "count": count} for name, count in made.marks.items()),
            *({"what": name.replace("_", " "), "count": round(value, 1)} for name, value in fidelity.items()),
        ],
    )
