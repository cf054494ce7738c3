"""What is not a saved classifier, or is no longer one, is refused in one sentence, and nothing in it is run."""

import json
import os
import pickle
import shutil

import numpy as np
import pytest

from eber import EBERClassifier, ERMClassifier
from eber.datasets.parametric import ParametricParameters, draw
from eber.estimators import persistence
from eber.exceptions import ModelFileError
from eber.io.checksummed_json import encode_checksummed
from eber.io.plain_data import to_json

# A fit of one epoch is not a good fit, and is not meant to be.
pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")

rows = draw(ParametricParameters(n=25, m_validation=1, m_test=1, d=4), random_state=0).train


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A saved classifier, never to be written to."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    model = EBERClassifier(epochs=1, random_state=0).fit(rows.X, rows.y, environments=rows.environments)
    model.save(folder)
    return folder


@pytest.fixture
def copy(saved, tmp_path):
    """A copy of the saved classifier that a test may damage."""
    return shutil.copytree(saved, tmp_path / "model")


def files(folder):
    return folder / "model.json", next(folder.glob("weights-*.safetensors"))


def refusal(folder, cls=EBERClassifier, **options):
    """What `load` says when it refuses: one sentence, or a sentence and what to do."""
    with pytest.raises(ModelFileError) as refused:
        cls.load(folder, **options)
    message = str(refused.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


@pytest.mark.parametrize("which", [0, 1])
def test_every_truncation_is_refused(copy, which):
    file = files(copy)[which]
    data = file.read_bytes()
    for length in np.unique(np.linspace(0, len(data) - 1, 200).astype(int)):
        file.write_bytes(data[:length])
        refusal(copy)


@pytest.mark.parametrize("which", [0, 1])
def test_every_changed_byte_is_refused(copy, which):
    file = files(copy)[which]
    data = file.read_bytes()
    rng = np.random.default_rng(0)
    for position in rng.choice(len(data), size=200, replace=False):
        changed = bytearray(data)
        changed[position] ^= 1 << rng.integers(8)
        file.write_bytes(bytes(changed))
        refusal(copy)
    file.write_bytes(data)
    EBERClassifier.load(copy)  # and it was the byte, not the writing


def test_digits_beyond_a_floats_precision_and_blanks_are_refused_too(copy):
    """They would be read as the same content, but they are not what was saved."""
    manifest = files(copy)[0]
    text = manifest.read_text()
    for changed in (text + "\n", text.replace('"learning_rate": 0.001', '"learning_rate": 0.00100000000000000000001')):
        assert changed != text
        manifest.write_text(changed)
        assert "altered" in refusal(copy)


def test_an_appended_byte_is_refused(copy):
    weights = files(copy)[1]
    weights.write_bytes(weights.read_bytes() + b"\0")
    assert "altered" in refusal(copy)


@pytest.mark.parametrize(
    "foreign", [b"", b"[]", b"null", b'{"a": 1}', b"\x80\x04K\x01.", b"[" * 100_000, b'{"format": "eber-model"}']
)
def test_a_foreign_file_is_refused(foreign, tmp_path):
    (tmp_path / "model.json").write_bytes(foreign)
    refusal(tmp_path)


def rewritten(folder, change):
    """Change the content and make its checksum fit again, as only somebody who knows the format would."""
    file = folder / "model.json"
    manifest = json.loads(file.read_bytes())
    change(manifest["content"])
    file.write_bytes(encode_checksummed(manifest["content"], persistence.FORMAT, persistence.FORMAT_VERSION))


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.clear(),
        lambda content: content.pop("weights"),
        lambda content: content.update(weights=7),
        lambda content: content["parameters"].update(future_parameter=1),
        lambda content: content["fit_parameters"].update(latent_bounds=1),
        lambda content: content["attributes"].pop("classes_"),
        lambda content: content["attributes"].update(latent_dim_=2),
        lambda content: content["attributes"]["classes_"].update(dtype="nonsense"),
        lambda content: content["attributes"].update(diagnostics_=[{"name": "x"}]),
        lambda content: content["weights"].update(file="../../secret"),
    ],
)
def test_content_that_describes_no_classifier_is_refused(change, copy):
    rewritten(copy, change)
    refusal(copy)


@pytest.mark.parametrize("columns", [[0, 4], [-1], [0] * 10_000, [0.5], [[0, 1]]])
def test_pieces_of_columns_that_no_row_has_are_refused(columns, copy):
    pieces = to_json(np.array(columns), "piece_columns_")
    rewritten(copy, lambda content: content["attributes"].update(piece_columns_=pieces))
    assert "it cuts columns that its rows do not have" in refusal(copy)


def test_a_future_format_is_refused_with_its_number(copy):
    file = copy / "model.json"
    file.write_bytes(file.read_bytes().replace(b'"format_version": 1', b'"format_version": 2'))
    assert "format version 2; this version of eber reads 1. Update eber." in refusal(copy)


def test_another_class_is_refused_with_both_names(saved):
    assert "holds a model of class EBERClassifier, not ERMClassifier: load it with that class." in refusal(
        saved, ERMClassifier
    )


def test_what_is_missing_is_named(copy, tmp_path):
    assert "there is no model.json in it" in refusal(tmp_path / "nowhere")
    assert "there is no model.json in it" in refusal(copy / "model.json")  # a file in place of the folder
    weights = files(copy)[1]
    weights.unlink()
    message = refusal(copy)
    assert weights.name in message
    assert "missing" in message


class Payload:
    """Makes a folder when unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_a_pickle_in_the_folder_is_not_run(copy, tmp_path):
    trap = str(tmp_path / "trap")
    for name in ("model.pkl", "weights.pt", "weights-0000000000000000.safetensors"):
        (copy / name).write_bytes(pickle.dumps(Payload(trap)))
    EBERClassifier.load(copy).predict(rows.X)
    for file in files(copy):
        file.write_bytes(pickle.dumps(Payload(trap)))
    refusal(copy)
    assert not os.path.exists(trap)
    pickle.loads(pickle.dumps(Payload(trap)))
    assert os.path.exists(trap)  # the trap works
