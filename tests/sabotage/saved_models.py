"""Saved models."""

from tests.sabotage.sabotage import Sabotage

SABOTAGES = (
    Sabotage(
        broken='A model that does not say what "auto" stands for gets what it stands for today.',
        test="tests/estimators/test_explanation.py::test_a_model_that_was_saved_before_the_expansion_keeps_its_samples",
        file="estimators/eber.py",
        before="self.latent_dim_, linear, expand=False)",
        after="self.latent_dim_, linear)",
    ),
    Sabotage(
        broken="The format of a classifier has a new version, and the old one is refused.",
        test="tests/trust/test_saved_models.py::test_a_model_of_version_1_answers_as_it_did",
        file="estimators/persistence.py",
        before="FORMAT_VERSION = 1\n",
        after="FORMAT_VERSION = 2\n",
    ),
    Sabotage(
        broken="The gain that a model was fitted with is another now.",
        test="tests/trust/test_saved_models.py::test_a_model_of_version_1_answers_as_it_did",
        file="estimators/eber_fitting.py",
        before="gain = 8.0 if self.env_loss_weight > 0 else 1.0",
        after="gain = 10.0 if self.env_loss_weight > 0 else 1.0",
    ),
    Sabotage(
        broken="Predictions are integrated with fewer nodes.",
        test="tests/trust/test_saved_models.py::test_a_model_of_version_1_answers_as_it_did",
        file="method/integration.py",
        before="{1: 32, 2: 16}",
        after="{1: 32, 2: 4}",
    ),
    Sabotage(
        broken="A layer of the networks has another name.",
        test="tests/trust/test_saved_models.py::test_a_model_of_version_1_answers_as_it_did[ERMClassifier-mlp]",
        file="nn/networks.py",
        before="        self.network = network\n",
        after="        self.network = self.model = network\n",
    ),
    Sabotage(
        broken="Inference is in single precision.",
        test="tests/trust/test_saved_models.py::test_a_model_of_version_1_answers_as_it_did[ERMClassifier-mlp]",
        file="estimators/baselines/base.py",
        before="torch.softmax(self.module_(rows)[1], 1).T",
        after="torch.softmax(self.module_(rows)[1].float(), 1).T",
    ),
    Sabotage(
        broken="The format of a model folder has a new version, and the old one is refused.",
        test="tests/trust/test_saved_models.py::test_a_model_folder_of_version_1_predicts_as_it_did",
        file="tables/model_folder.py",
        before='FORMAT, FORMAT_VERSION = "eber-table-model", 1\n',
        after='FORMAT, FORMAT_VERSION = "eber-table-model", 2\n',
    ),
    Sabotage(
        broken="Missing values are no longer filled with what the fit found.",
        test="tests/trust/test_saved_models.py::test_a_model_folder_of_version_1_predicts_as_it_did",
        file="tables/preprocessing.py",
        before="            filled = np.where(missing, encoding.fill, column)\n",
        after="            filled = np.where(missing, encoding.mean, column)\n",
    ),
    Sabotage(
        broken="Columns with an indicator have it in front of their values.",
        test="tests/trust/test_saved_models.py::test_a_model_folder_of_version_1_predicts_as_it_did",
        file="tables/preprocessing.py",
        before="        block[:, -1] = missing\n",
        after="        block[:] = np.roll(block, 1, axis=1)\n        block[:, 0] = missing\n",
    ),
    Sabotage(
        broken="A model is locked while it is read.",
        test="tests/trust/test_saved_models.py::test_loading_writes_nothing",
        file="tables/model_folder.py",
        before="            content = _read_content(folder)\n",
        after="            with sole_writer(folder):\n                content = _read_content(folder)\n",
    ),
    Sabotage(
        broken="The card is written anew when a model is loaded.",
        test="tests/trust/test_saved_models.py::test_loading_writes_nothing",
        file="tables/model_folder.py",
        before="            answer_one_row(classifier, schema, preprocessing, calibration)\n",
        after="            answer_one_row(classifier, schema, preprocessing, calibration)\n"
        "            (folder / CARD_PAGE).write_text(card_page(card))\n",
    ),
    Sabotage(
        broken="All models of many classes are answered in float32.",
        test="tests/estimators/test_explanation.py::"
        "test_a_model_of_many_classes_that_was_saved_before_float32_stays_in_float64",
        file="estimators/eber.py",
        before='torch.float64 if method == "expansion" else torch.float32',
        after="torch.float64 if len(self.classes_) < 16 else torch.float32",
    ),
    Sabotage(
        broken="What float32 has rounded off stays off.",
        test="tests/method/test_integration.py::test_many_classes_in_float32_are_those_of_float64",
        file="method/inference.py",
        before="    if dtype != x.dtype:\n        p_y_given_xe /= sum_over_last(p_y_given_xe.T).T\n",
        after="",
    ),
    Sabotage(
        broken="Points may move a logit in float32 as far as in float64.",
        test="tests/method/test_integration.py::test_many_classes_in_float32_are_those_of_float64",
        file="method/integration.py",
        before="torch.float32: 40.0",
        after="torch.float32: 250.0",
    ),
    Sabotage(
        broken="Where pieces of columns lie is not saved with the networks.",
        test="tests/nn/test_column_pieces.py::test_pieces_are_those_of_the_training_rows_and_are_saved",
        file="nn/column_pieces.py",
        before='self.register_buffer("start", torch.zeros(len(column)))',
        after='self.register_buffer("start", torch.zeros(len(column)), persistent=False)',
    ),
    Sabotage(
        broken="Only the number of a model's pieces is looked at, not the columns that they are of.",
        test="tests/estimators/test_damaged_models.py::test_pieces_of_columns_that_no_row_has_are_refused",
        file="estimators/pieces.py",
        before="if not known or not all(0 <= j < estimator.input_shape_[0] for j in column):",
        after="if not known:",
    ),
)
