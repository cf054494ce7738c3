"""Mistakes in what Python does as the command line does."""

from tests.sabotage.sabotage import Sabotage

SABOTAGES = (
    Sabotage(
        broken="Predictions for a frame of pandas come without its index.",
        test="tests/workflow/test_fit_and_predict.py"
        "::test_predictions_are_the_command_s_to_the_bit_and_of_the_kind_that_was_given[pandas]",
        file="tables/frames.py",
        before="exact_frame(answers).set_axis(table.index, axis=0)",
        after="exact_frame(answers)",
    ),
    Sabotage(
        broken="Columns that are to be kept are left out of a frame of predictions.",
        test="tests/workflow/test_fit_and_predict.py"
        "::test_predictions_are_the_command_s_to_the_bit_and_of_the_kind_that_was_given[path]",
        file="tables/prediction.py",
        before="_predict_batches(model, _open(model, table, reading), asked)\n",
        after="_predict_batches(model, _open(model, table, reading), Asked(**{**vars(asked), 'keep': ()}))\n",
    ),
    Sabotage(
        broken="A comparison in Python takes a seed too many.",
        test="tests/workflow/test_compare_table.py::test_the_scores_are_the_command_s_to_the_bit[str]",
        file="workflow/comparing.py",
        before="            out=folder,\n            seeds=seeds,\n",
        after="            out=folder,\n            seeds=seeds + (not command),\n",
    ),
    Sabotage(
        broken="The rows of an earlier frame are compared in place of those that were given.",
        test="tests/workflow/test_compare_table.py::test_a_frame_that_is_compared_again_is_not_computed_again",
        file="workflow/comparing.py",
        before="if not place.exists() or place.read_bytes() != content.to_pybytes():",
        after="if not place.exists():",
    ),
    Sabotage(
        broken="A name from a table is run as HTML in a notebook.",
        test="tests/workflow/test_fit_and_predict.py::test_models_and_predictions_show_themselves",
        file="io/display.py",
        before="<td>{escape(entry)}</td>",
        after="<td>{entry}</td>",
    ),
    Sabotage(
        broken="NaN in a frame of polars is a value.",
        test="tests/workflow/test_frames.py::test_nan_of_polars_is_missing_as_that_of_pandas_is",
        file="tables/readers/missing.py",
        before="if pa.types.is_floating(column.type) and pc.any",
        after="if pa.types.is_float16(column.type) and pc.any",
    ),
    Sabotage(
        broken="A number of jobs that cannot be is noticed when the output folder has been written to.",
        test="tests/workflow/test_compare_table.py::test_bad_arguments_are_refused_before_anything_is_written",
        file="workflow/comparing.py",
        before='    whole_number(jobs, "jobs", 1)\n',
        after="",
    ),
)
