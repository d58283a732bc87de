"""The model registry: MLflow holds runs, files and versions; the audit log in the lake says who is champion.

A version exists only once every file of it was read back and matched; it is found by its fingerprint, so
that publishing twice makes one.
"""

import fcntl
import hashlib
import json
import os
import random
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlparse

import mlflow.artifacts
import mlflow.pyfunc
import numpy as np
from mlflow import MlflowClient
from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag
from mlflow.exceptions import MlflowException
from mlflow.models import ModelSignature
from mlflow.types import ParamSchema, ParamSpec, Schema, TensorSpec
from sqlalchemy.exc import OperationalError

from data_lake.files import LakePath
from errors import Transient
from tasks.promotion import AuditLog, Version, audit_log, champion, checked_name, digest_of, hashes

ROOT = Path(__file__).resolve().parent.parent
SERVED_CODE = ("model_core", "errors.py", "lookup.py", "tasks/served_model.py")
SERVED_REQUIREMENTS = ("torch", "numpy", "scipy", "safetensors", "sentencepiece")
EXPERIMENT = "vlaloop"
SLOT_TAG = "vlaloop.slot"  # on runs: `train/{fingerprint}`
PREFIX = "vlaloop."
WORTH_A_RETRY = ("TEMPORARILY_UNAVAILABLE", "INTERNAL_ERROR", "REQUEST_LIMIT_EXCEEDED", "DEADLINE_EXCEEDED")
PAUSES_S = (0.1, 0.3, 1.0, 2.0)
Result = TypeVar("Result")
MAX_PARAM = 500  # characters; MLflow refuses longer ones, and then everything else of that call


@dataclass(frozen=True, kw_only=True, slots=True)
class Registry:
    """One MLflow server or database, with the audit logs of one lake."""

    client: MlflowClient
    experiment_id: str
    lake: LakePath

    # --- runs ----------------------------------------------------------------------------------------

    def run_of(self, slot: str, title: str) -> str:
        """Id of the one run of a slot such as `train/77c1…`; created if tracking missed it."""
        found = self.client.search_runs([self.experiment_id], f"tags.`{SLOT_TAG}` = '{slot}'", max_results=1)
        if found:
            return found[0].info.run_id
        return self.client.create_run(self.experiment_id, tags={SLOT_TAG: slot}, run_name=title).info.run_id

    def log_settings(self, run_id: str, recipe: Mapping[str, Any]) -> None:
        """The recipe as an artifact, its hash as a parameter (a changed one as a tag: parameters never change)."""
        text = json.dumps(recipe, indent=1, sort_keys=True)
        self.client.log_text(run_id, text, "recipe.json")
        self.log_params(run_id, {"recipe_sha256": hashlib.sha256(text.encode()).hexdigest()})

    def log_params(self, run_id: str, params: Mapping[str, object]) -> None:
        known = self.client.get_run(run_id).data.params
        shown = {key: str(value)[:MAX_PARAM] for key, value in params.items()}
        new = [Param(key, value) for key, value in shown.items() if key not in known]
        changed = [RunTag(PREFIX + key, value) for key, value in shown.items() if known.get(key, value) != value]
        self.client.log_batch(run_id, params=new, tags=changed)

    def log_figures(self, run_id: str, figures: Mapping[str, float], *, step: int = 0) -> None:
        """Metrics of a finished stage, once."""
        known = self.client.get_run(run_id).data.metrics
        stamp = int(time.time() * 1000)
        new = [Metric(name, float(value), stamp, step) for name, value in figures.items() if name not in known]
        self.client.log_batch(run_id, metrics=new)

    def log_dataset(self, run_id: str, *, name: str, version: int, digest: str, context: str, counts: object) -> None:
        """The lake data set, at its version, as an input of the run."""
        described = Dataset(
            name=name,
            digest=digest[:36],
            source_type="lance",
            source=json.dumps({"dataset": name, "version": version}),
            profile=json.dumps(counts),
        )
        tags = [InputTag("mlflow.data.context", context), InputTag("lake_version", str(version))]
        self.client.log_inputs(run_id, datasets=[DatasetInput(described, tags)])

    def log_files(self, run_id: str, files: Iterable[Path], folder: str) -> None:
        for path in files:
            self.client.log_artifact(run_id, str(path), folder)

    # --- versions ------------------------------------------------------------------------------------

    def versions(self, name: str) -> list[Version]:
        """Complete versions, oldest first."""
        query = f"name = '{checked_name(name)}'"
        found = steadily(lambda: self.client.search_model_versions(query))
        ready = [each for each in found if each.tags.get(f"{PREFIX}state") == "ready"]
        return sorted((_version(each) for each in ready), key=lambda version: version.number)

    def version_of(self, name: str, fingerprint: str) -> Version | None:
        """The version that was published for a register slot, if it was."""
        return next((each for each in self.versions(name) if each.fingerprint == fingerprint), None)

    def publish(
        self,
        name: str,
        fingerprint: str,
        package: Path,
        *,
        run_id: str,
        tags: Mapping[str, str],
        check: Callable[[], None],
    ) -> Version:
        """Upload `package` (a saved model), read every file back, and only then create the version.

        `check` is called before the version is created and may raise. Raises Transient when a file came back
        different.
        """
        if found := self.version_of(name, fingerprint):
            return found
        self._drop_leftovers(fingerprint)
        model = self.client.create_logged_model(
            self.experiment_id, name=name, source_run_id=run_id, tags={f"{PREFIX}fingerprint": fingerprint}
        )
        self.client.log_model_artifacts(model.model_id, str(package))
        digest = digest_of(hashes(package))
        self.verify(model.artifact_location, digest)
        self.client.finalize_logged_model(model.model_id, "READY")
        check()
        self._ensure_model(name)
        proof = {"fingerprint": fingerprint, "artifact": digest, "state": "ready", "logged_model": model.model_id}
        created = self.client.create_model_version(
            name,
            source=model.artifact_location,
            run_id=run_id,
            tags={PREFIX + key: value for key, value in {**tags, **proof}.items()},
        )
        return _version(created)

    def describe(self, version: Version, sentence: str, alias: str | None) -> None:
        """What the gate said, where people look at the version."""
        self.client.update_model_version(version.name, str(version.number), sentence)
        self.client.set_model_version_tag(version.name, str(version.number), f"{PREFIX}given", alias or "none")

    def verify(self, location: str, digest: str) -> None:
        """Read every file below `location` back. Raises Transient when that is not what `digest` stands for."""
        with downloaded(location) as folder:
            if digest_of(hashes(folder)) != digest:
                raise Transient(f"the model's files at {location} are not those that were sent")

    def _drop_leftovers(self, fingerprint: str) -> None:
        """Uploads that a crash left without a version."""
        for model in self.client.search_logged_models(
            [self.experiment_id], filter_string=f"tags.`{PREFIX}fingerprint` = '{fingerprint}'"
        ):
            self.client.delete_logged_model(model.model_id)
            if urlparse(model.artifact_location).scheme == "file":
                shutil.rmtree(unquote(urlparse(model.artifact_location).path), ignore_errors=True)

    def _ensure_model(self, name: str) -> None:
        try:
            self.client.create_registered_model(checked_name(name), description="Policies that vlaloop registered.")
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise

    # --- aliases -------------------------------------------------------------------------------------

    def audit(self, name: str) -> AuditLog:
        return audit_log(self.lake, name)

    def champion(self, name: str) -> Version | None:
        """The champion as the audit log has it."""
        return champion(self, name)

    def set_aliases(self, name: str, wanted: Mapping[str, int]) -> None:
        """Make the aliases of `name` be `wanted`. Champion goes first and is never absent in between."""
        steadily(lambda: self._set_aliases(name, wanted))

    def _set_aliases(self, name: str, wanted: Mapping[str, int]) -> None:
        present = self.client.get_registered_model(name).aliases
        for alias, number in wanted.items():
            if str(present.get(alias)) != str(number):
                self.client.set_registered_model_alias(name, alias, str(number))
        for alias in {"previous", "challenger"} & (present.keys() - wanted.keys()):
            self.client.delete_registered_model_alias(name, alias)


def connect(lake: LakePath, home: Path) -> Registry:
    """The registry that this machine uses; its database is made on first use, which takes seconds.

    Raises Transient when it cannot be reached.
    """
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    return steadily(lambda: _connected(lake, home))


def _connected(lake: LakePath, home: Path) -> Registry:
    uri = tracking_uri(home)
    with open(home / "mlflow.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # MLflow's own migrations spoil each other when two processes begin at once
        client = MlflowClient(tracking_uri=uri, registry_uri=uri)
        return Registry(client=client, experiment_id=_experiment(client, home), lake=lake)


def package(export: Path, target: Path, *, denoise_steps: int) -> None:
    """Save the export as a model that `mlflow.pyfunc.load_model` loads anywhere: its files and the code to run them."""
    described = json.loads((export / "policy.json").read_text())
    card, horizon = described["card"], described["policy"]["action_horizon"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # asks for an input example, which would be executed here
        mlflow.pyfunc.save_model(
            target,
            loader_module="served_model",
            data_path=str(export),
            code_paths=[str(ROOT / path) for path in SERVED_CODE],
            signature=_signature(card, horizon, denoise_steps),
            pip_requirements=[f"{name}=={version(name).partition('+')[0]}" for name in SERVED_REQUIREMENTS],
            metadata={"embodiment": card["embodiment"], "control_hz": card["control_hz"]},
        )


def _signature(card: Mapping[str, Any], horizon: int, denoise_steps: int) -> ModelSignature:
    views = [TensorSpec(np.dtype(np.uint8), (-1, -1, -1, 3), f"view.{view}") for view in card["inputs"]["views"]]
    proprio = TensorSpec(np.dtype(np.float32), (-1, card["proprio_dim"]), "proprio")
    instruction = TensorSpec(np.dtype(str), (-1,), "instruction")
    return ModelSignature(
        inputs=Schema([*views, proprio, instruction]),
        outputs=Schema([TensorSpec(np.dtype(np.float32), (-1, horizon, card["action_dim"]))]),
        params=ParamSchema([ParamSpec("seed", "long", 0), ParamSpec("denoise_steps", "long", denoise_steps)]),
    )


def tracking_uri(home: Path) -> str:
    """MLFLOW_TRACKING_URI where it is set, else a database of this machine."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{home.resolve()}/mlflow.db"


def _experiment(client: MlflowClient, home: Path) -> str:
    found = client.get_experiment_by_name(EXPERIMENT)
    if found is not None:
        return found.experiment_id
    is_local = tracking_uri(home).startswith("sqlite:")
    location = (home.resolve() / "mlflow-artifacts").as_uri() if is_local else None
    try:
        return client.create_experiment(EXPERIMENT, artifact_location=location)
    except MlflowException as error:
        found = client.get_experiment_by_name(EXPERIMENT)  # somebody else's, meanwhile
        if found is None or error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
        return found.experiment_id


def steadily(action: Callable[[], Result], pauses_s: Sequence[float] = PAUSES_S) -> Result:
    """`action`, again after a pause with jitter while the server is down or the database locked; then Transient."""
    for pause_s in (*pauses_s, None):
        try:
            return action()
        except (MlflowException, OperationalError) as error:
            if isinstance(error, MlflowException) and error.error_code not in WORTH_A_RETRY:
                raise
            if pause_s is None:
                raise Transient(f"the model registry does not answer: {error}") from error
        time.sleep(pause_s * random.uniform(0.5, 1.5))
    raise AssertionError("unreachable")


@contextmanager
def downloaded(location: str) -> Iterator[Path]:
    """A folder with the artifacts at `location`: themselves when they are local, else a copy that is removed."""
    if urlparse(location).scheme in ("", "file"):
        yield Path(unquote(urlparse(location).path))
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(mlflow.artifacts.download_artifacts(artifact_uri=location, dst_path=folder))


def _version(found: Any) -> Version:
    tags = {key.removeprefix(PREFIX): value for key, value in found.tags.items() if key.startswith(PREFIX)}
    return Version(
        name=found.name,
        number=int(found.version),
        location=found.source,
        artifact=tags["artifact"],
        fingerprint=tags["fingerprint"],
        tags=tags,
    )
