"""A model folder or a ledger that was damaged, or made to do harm, is refused in one sentence, and runs nothing."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import pickle
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from eber import EBERClassifier, ERMClassifier
from eber.estimators.persistence import FORMAT, MANIFEST
from eber.exceptions import ModelFileError
from eber.io.checksummed_json import encode_checksummed
from eber.runs.ledger import CELL_FORMAT, CELL_VERSION, DamagedCellError, Ledger
from eber.tables.model_folder import FORMAT as TABLE_FORMAT
from eber.tables.model_folder import TABLE_FILE, TableModel
from eber.tables.prediction import predict_file
from tests.toy_experiment import TOY, run_cell
from tests.trust.effort import times
from tests.trust.models import fitted_model, new_patients, rows
from tests.trust.mutations import changed_document, mutants, refused_or_read

Tally = Callable[[str, int], None]

# Short fits are no good ones, and are not meant to be.
pytestmark = [
    pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning"),
    pytest.mark.filterwarnings("ignore::eber.exceptions.AdaptationWarning"),
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Saved models, never to be written to."""
    place = tmp_path_factory.mktemp("saved")
    options: dict[str, Any] = {"epochs": 1, "random_state": 0, "hidden_dims": (4,), "representation_dim": 4}
    EBERClassifier(**options).fit(rows.X, rows.y, environments=rows.environments).adapt(rows.X).save(place / "EBER")
    ERMClassifier(**options).fit(rows.X, rows.y).save(place / "ERM")
    fitted_model(place).save(place / "bundle")
    return {name: place / name for name in ("EBER", "ERM", "bundle")}


def use(folder: Path, name: str) -> None:
    """Load a model and ask it everything; the answers must be numbers and labels."""
    if name == "bundle":
        out = folder.parent / "answers.parquet"
        predict_file(TableModel.load(folder), new_patients(folder.parent), out)
        return
    model = {"EBER": EBERClassifier, "ERM": ERMClassifier}[name].load(folder)
    proba = model.predict_proba(rows.X[:5].astype(np.float32))
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(1), 1)


@pytest.mark.parametrize("name", ["EBER", "ERM", "bundle"])
def test_a_damaged_model_is_refused(name: str, folders: dict[str, Path], tmp_path: Path, tally: Tally) -> None:
    """Every file of the folder in turn; a change that is none of the content may pass."""
    folder = shutil.copytree(folders[name], tmp_path / "model")
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in (".json", ".safetensors")]
    count = times(60, 4000)
    for path in files:
        good = path.read_bytes()
        for content in mutants(good, count, np.random.default_rng(2)):
            path.write_bytes(content)
            if content != good:
                with pytest.raises(ModelFileError, match=str(tmp_path)):
                    use(folder, name)
        path.write_bytes(good)
    tally("inputs fuzzed", count * len(files))


@pytest.mark.parametrize("name", ["EBER", "ERM", "bundle"])
def test_a_forged_model_is_refused_or_predicts(
    name: str, folders: dict[str, Path], tmp_path: Path, tally: Tally
) -> None:
    """Somebody who knows the format changed any one value and made the checksum fit."""
    folder = shutil.copytree(folders[name], tmp_path / "model")
    file, format_ = (TABLE_FILE, TABLE_FORMAT) if name == "bundle" else (MANIFEST, FORMAT)
    content = json.loads((folder / file).read_bytes())["content"]
    rng = np.random.default_rng(3)
    count = times(150, 5000)
    for _ in range(count):
        (folder / file).write_bytes(encode_checksummed(changed_document(content, rng), format_, 1))
        with refused_or_read(""):
            use(folder, name)
    allowed = {"model", "answers.parquet", "new.csv"}
    assert {path.name for path in tmp_path.iterdir()} <= allowed, "nothing was written elsewhere"
    tally("inputs fuzzed", count)


def forge(folder: Path, section: str, **values: Any) -> None:
    """Change what a manifest says, and make its checksum fit."""
    content = json.loads((folder / MANIFEST).read_bytes())["content"]
    content[section].update(values)
    (folder / MANIFEST).write_bytes(encode_checksummed(content, FORMAT, 1))


def many(count: int) -> dict[str, Any]:
    return {"array": list(range(count)), "dtype": "int64"}


@pytest.mark.parametrize(
    ("section", "values", "message"),
    [
        ("fit_parameters", {"hidden_dims": [10**6], "representation_dim": 10**6}, "weights are fewer|too wide"),
        ("fit_parameters", {"representation_dim": 10**9}, "weights are fewer|too wide"),
        ("fit_parameters", {"decoder_hidden_dims": [10**5, 10**5]}, "weights are fewer"),
        ("fit_parameters", {"hidden_dims": [1] * 3_000}, "more than 1000 layers"),
        ("attributes", {"latent_dim_": 10**9}, "weights are fewer|too wide"),
        ("attributes", {"classes_": many(10**6)}, "weights are fewer|too wide"),
        ("attributes", {"input_shape_": {"tuple": [10**12]}}, "its rows have the shape"),
    ],
)
def test_a_forged_size_does_not_fill_the_memory(
    section: str, values: dict[str, Any], message: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    """Widths that would need terabytes are held against the weights before anything of that size is made."""
    folder = shutil.copytree(folders["EBER"], tmp_path / "model")
    forge(folder, section, **values)
    with at_most_more_memory(1 << 30), pytest.raises(ModelFileError, match=message):
        EBERClassifier.load(folder)


@contextlib.contextmanager
def at_most_more_memory(size: int) -> Iterator[None]:
    """Let whoever asks for more than so many bytes have none."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_many_classes_times_many_environments_do_not_fill_the_memory(tmp_path: Path) -> None:
    """A forger who also makes weights for 4,000 classes and as many environments, a few megabytes of them.

    Every layer of a network on (x, y, e) answers for all pairs of them. Seen to take 5 GB.
    """
    model = EBERClassifier(hidden_dims=(16,), epochs=1, random_state=0)
    model.fit(rows.X, rows.y, environments=rows.environments)
    model.classes_ = model.environments_ = np.arange(4000)
    model.environment_prior_ = np.full(4000, 1 / 4000)
    model.latent_dim_ = 1
    model.module_ = model._module().double()
    model.save(tmp_path / "model")
    assert sum(path.stat().st_size for path in (tmp_path / "model").iterdir()) < 10 << 20
    with at_most_more_memory(1 << 30), pytest.raises(ModelFileError, match="too wide"):
        EBERClassifier.load(tmp_path / "model")


LOSSES = {"array": [0.5, 0.4], "dtype": "float64"}
RECORD: dict[str, Any] = {
    "environments": {"tuple": ["a", "b"]},
    "before": LOSSES,
    "after": LOSSES,
    "strength": 1.0,
}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("latent_dim_", 0, "its latent has 0 dimensions"),
        ("environments_", {"array": [], "dtype": "float64"}, "it has no environments"),
        ("classes_", {"array": [1, 1], "dtype": "int64"}, "its classes are not different"),
        ("classes_", {"array": [1, 0], "dtype": "int64"}, "its classes are not different"),
        ("environments_", {"array": ["a"] * 6, "dtype": "str"}, "its environments are not different"),
        ("environment_prior_", {"array": [math.nan] * 6, "dtype": "float64"}, "no probabilities"),
        ("environment_prior_", {"array": [1.5, -0.5, 0, 0, 0, 0], "dtype": "float64"}, "no probabilities"),
        ("environment_prior_", {"array": [0.9] * 6, "dtype": "float64"}, "no probabilities"),
        ("environment_prior_", {"array": [1.0], "dtype": "float64"}, "no probabilities"),
        ("adaptation_record_", RECORD | {"strength": 5.0}, "its record of adapting is none"),
        ("adaptation_record_", RECORD | {"strength": math.nan}, "its record of adapting is none"),
        ("adaptation_record_", RECORD | {"environments": {"tuple": ["a"]}}, "its record of adapting is none"),
    ],
)
def test_a_forged_model_with_attributes_that_no_fit_has_is_refused(
    name: str, value: object, message: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(folders["EBER"], tmp_path / "model")
    forge(folder, "attributes", **{name: value})
    with pytest.raises(ModelFileError, match=message):
        EBERClassifier.load(folder)


def two_exchanged(entries: list[dict[str, Any]]) -> None:
    entries[:2] = entries[1::-1]


def without_a_mean(entries: list[dict[str, Any]]) -> None:
    entries[0]["mean"] = math.inf


def without_a_median(entries: list[dict[str, Any]]) -> None:
    entries[0]["fill"] = math.nan


def with_a_value_twice(entries: list[dict[str, Any]]) -> None:
    levels = next(entry["levels"] for entry in entries if entry["kind"] == "categorical")
    levels[0] = levels[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (two_exchanged, "its columns and its preprocessing are of different tables"),
        (without_a_mean, "a column in it has no mean"),
        (without_a_median, "a column in it has no mean"),
        (with_a_value_twice, "values of a column in it are not different ones"),
    ],
)
def test_preprocessing_that_no_fit_has_is_refused(
    change: Callable[[list[dict[str, Any]]], None], message: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    """All of it would be answered from, one column as another or as a constant."""
    folder = shutil.copytree(folders["bundle"], tmp_path / "model")
    document = json.loads((folder / "table.json").read_text())
    change(document["content"]["preprocessing"])
    (folder / "table.json").write_bytes(
        encode_checksummed(document["content"], document["format"], document["format_version"])
    )
    with pytest.raises(ModelFileError, match=message):
        TableModel.load(folder)


@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64])
def test_weights_that_are_no_real_numbers_are_refused(dtype: torch.dtype, tmp_path: Path) -> None:
    model = ERMClassifier(epochs=1, random_state=0).fit(rows.X, rows.y)
    model.module_.network.head.weight = torch.nn.Parameter(
        model.module_.network.head.weight.detach().to(dtype), requires_grad=False
    )
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match=f"are of the type {dtype}"):
        ERMClassifier.load(tmp_path / "model")


@pytest.mark.parametrize("kind", ["pipe", "device", "sparse file"])
@pytest.mark.parametrize("pattern", ["*.safetensors", "model.json", "table.json"])
def test_only_ordinary_files_of_a_moderate_size_are_opened(
    kind: str, pattern: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    """A pipe would be waited for, a device read for ever, a file of a terabyte that takes no room on the disk, too."""
    name = "bundle" if pattern == "table.json" else "EBER"
    folder = shutil.copytree(folders[name], tmp_path / "model")
    (path,) = folder.glob(pattern)
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with path.open("wb") as file:
            file.truncate(1 << 40)
    with pytest.raises(ModelFileError, match=r"no ordinary file|larger than"):
        use(folder, name)


class Trap:
    """Makes a folder when unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.path),)


def test_a_pickle_in_a_model_folder_is_never_run(folders: dict[str, Path], tmp_path: Path) -> None:
    """Beside the files, and in the place of each of them. See also estimators/test_damaged_models.py."""
    trap = pickle.dumps(Trap(tmp_path / "sprung"))
    folder = shutil.copytree(folders["bundle"], tmp_path / "model")
    for place in (folder, *folder.glob("classifier-*")):
        for name in ("model.pkl", "table.pkl", "classifier.joblib", "weights.pt"):
            (place / name).write_bytes(trap)
    use(folder, "bundle")
    for path in [path for path in folder.rglob("*") if path.suffix in (".json", ".safetensors")]:
        good = path.read_bytes()
        path.write_bytes(trap)
        with pytest.raises(ModelFileError):
            use(folder, "bundle")
        path.write_bytes(good)
    assert not (tmp_path / "sprung").exists()
    pickle.loads(trap)
    assert (tmp_path / "sprung").exists()  # the trap works


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_a_damaged_cell_is_recognised(suffix: str, tmp_path: Path, tally: Tally) -> None:
    cell = TOY.plan(seeds=1, methods=["EBER"])[0]
    ledger = Ledger(tmp_path)
    ledger.write(cell, run_cell(cell), cell_seconds=0.5)
    expected = ledger.read(cell)
    path = ledger.path(cell).with_suffix(suffix)
    good = path.read_bytes()
    count = times(400, 20_000)
    for content in mutants(good, count, np.random.default_rng(4)):
        path.write_bytes(content)
        try:
            # What was changed is then none of the content, such as a blank.
            assert ledger.read(cell) == expected
            ledger.read_arrays(cell)
        except DamagedCellError as error:
            assert path.stem in str(error)  # noqa: PT017 (both ways are right)
    tally("inputs fuzzed", count)


def test_a_pickle_in_a_ledger_is_never_run(tmp_path: Path) -> None:
    """Even when its checksum was made to fit: arrays of objects are refused."""
    cell = TOY.plan(seeds=1, methods=["EBER"])[0]
    ledger = Ledger(tmp_path)
    ledger.write(cell, run_cell(cell), cell_seconds=0.5)
    path, arrays = ledger.path(cell), ledger.path(cell).with_suffix(".npz")
    document = json.loads(path.read_bytes())
    np.savez(arrays, draws=np.array([Trap(tmp_path / "sprung")], dtype=object))
    content = {**document["content"], "arrays": hashlib.sha256(arrays.read_bytes()).hexdigest()}
    path.write_bytes(encode_checksummed(content, CELL_FORMAT, CELL_VERSION))
    with pytest.raises(ValueError, match="allow_pickle"):
        ledger.read_arrays(cell)
    assert not (tmp_path / "sprung").exists()
