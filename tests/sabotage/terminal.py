"""Mistakes in what a new user sees first: help, the example, tables on a terminal, the README."""

from tests.sabotage.sabotage import Sabotage

SABOTAGES = (
    Sabotage(
        broken="Help imports the experiments' machinery for their names.",
        test="tests/cli/test_starting.py::test_help_imports_nothing_heavy[reproduce]",
        file="cli/reproduce.py",
        before="from eber.experiments.registry import EXPERIMENTS\n",
        after="from eber.experiments.registry import EXPERIMENTS\nimport eber.runs.spec\n",
    ),
    Sabotage(
        broken="Help is drawn in tables that cut words on a narrow terminal.",
        test="tests/cli/test_starting.py::test_help_is_whole_on_a_narrow_terminal[compare-60]",
        file="cli/main.py",
        before="    rich_markup_mode=None,",
        after='    rich_markup_mode="rich",',
    ),
    Sabotage(
        broken="The ninth hospital is not looked for before the example is written.",
        test="tests/cli/test_table_commands.py::test_the_example_is_written_with_its_new_hospital_or_not_at_all",
        file="cli/example.py",
        before="    for place in (file, new):\n",
        after="    for place in (file,):\n",
    ),
    Sabotage(
        broken="The first table of the example gets its name before the second is written.",
        test="tests/cli/test_table_commands.py::test_the_example_is_written_with_its_new_hospital_or_not_at_all",
        file="cli/example.py",
        before="""    with contextlib.ExitStack() as stack:
        temporaries = [stack.enter_context(replacing(path)) for path in contents]
        for temporary, content in zip(temporaries, contents.values(), strict=True):
            temporary.write_bytes(content.encode())
""",
        after="""    for path, content in contents.items():
        with contextlib.ExitStack() as stack:
            stack.enter_context(replacing(path)).write_bytes(content.encode())
""",
    ),
    Sabotage(
        broken="Columns of the ranking are cut where there is no room.",
        test="tests/report/test_comparison_tables.py::test_the_ranking_is_whole_on_narrow_terminals[60-gone2]",
        file="io/display.py",
        before="    for head in dispensable:\n",
        after="    for head in ():\n",
    ),
    Sabotage(
        broken="Figures of the paper are cut where there is no room.",
        test="tests/report/test_tables.py::test_on_a_terminal_columns_are_left_out_and_none_is_cut[40]",
        file="report/tables.py",
        before="choices(heads, dispensable)",
        after="choices(heads, ())",
    ),
    Sabotage(
        broken="The example has no ninth hospital, which the README's last command asks for.",
        test="tests/test_documentation.py::test_the_readme_runs_from_top_to_bottom_in_an_empty_folder",
        file="cli/example.py",
        before='NEW_HOSPITAL_FILE = "new_hospital.csv"',
        after='NEW_HOSPITAL_FILE = "ninth_hospital.csv"',
    ),
    Sabotage(
        broken="A preprocessor refuses columns that it does not use.",
        test="tests/test_documentation.py::test_the_readme_runs_from_top_to_bottom_in_an_empty_folder",
        file="tables/transformer.py",
        before="        require_features(file, self.schema_)\n",
        after='        require_features(file, self.schema_, "sepsis")\n',
    ),
    Sabotage(
        broken="A p-value just below the level is printed as the level.",
        test="tests/runs/test_results.py::test_p_values_have_three_decimals_and_more_where_these_do_not_decide",
        file="evaluation/wording.py",
        before="        digits += 1\n",
        after="        break\n",
    ),
    Sabotage(
        broken="A fit that Ctrl-C ended leaves an empty folder.",
        test="tests/workflow/test_fit_and_predict.py::test_ctrl_c_in_a_fit_leaves_what_was_there_and_says_so",
        file="workflow/fitting.py",
        before="            folder.rmdir()\n",
        after="            pass\n",
    ),
    Sabotage(
        broken="A quick look does not say that it is one.",
        test="tests/workflow/test_compare_table.py::test_output_goes_to_results_by_the_name_of_the_file_or_table",
        file="compare/record.py",
        before='FIRST_LOOK if self.effort == methods.QUICK else ""',
        after='""',
    ),
    Sabotage(
        broken="A callback that says stop is not heard.",
        test="tests/estimators/test_callback.py::test_training_ends_when_the_callback_says_so",
        file="estimators/base.py",
        before="            return any(answers)\n",
        after="            return not answers\n",
    ),
    Sabotage(
        broken="The matrix of a pipeline is not the one of the commands: an identifier is among its columns.",
        test="tests/tables/test_transformer.py::test_the_matrix_is_the_one_that_the_commands_use",
        file="tables/transformer.py",
        before="chosen = None if self.features is None else",
        after="chosen = list(file.names) if self.features is None else",
    ),
)
