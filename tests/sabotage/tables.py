"""Tables are read as they were meant."""

from tests.sabotage.sabotage import Sabotage

GUESSES = "tests/tables/test_guesses.py"
READERS = "tests/tables/test_readers.py"
SCHEMA = "tests/tables/test_schema.py"
SAID = "tests/workflow/test_said_about_tables.py"

SABOTAGES = (
    Sabotage(
        broken="A code for missing values is named, and used as a number all the same.",
        test=f"{GUESSES}::test_a_code_is_named_with_its_count_and_believed_only_when_told_so",
        file="tables/training.py",
        before="            numbers[np.isin(numbers, feature.codes)] = np.nan\n",
        after="",
    ),
    Sabotage(
        broken="A code is a code also where the user has said that the column holds numbers.",
        test=f"{GUESSES}::test_a_code_is_named_with_its_count_and_believed_only_when_told_so",
        file="tables/column_decisions.py",
        before='if told != "numeric":  # else every number is believed',
        after="if True:",
    ),
    Sabotage(
        broken="A code need not lie apart from the other values.",
        test=f"{GUESSES}::test_numbers_that_are_only_extreme_are_believed",
        file="tables/guesses.py",
        before="(distance > others[-1] - others[0])",
        after="(distance > 0)",
    ),
    Sabotage(
        broken="Numbers of objects are features.",
        test=f"{GUESSES}::test_whole_numbers_that_name_rows_are_no_feature",
        file="tables/column_decisions.py",
        before="    return why_identifier(name, words, numbers, (*SUBJECTS, *CASES))\n",
        after='    return ""\n',
    ),
    Sabotage(
        broken="Whole numbers that go up with the rows name them, however unevenly.",
        test=f"{GUESSES}::test_whole_numbers_that_measure_something_stay_features",
        file="tables/guesses.py",
        before="[0, 1] ** 2 > 0.999)",
        after="[0, 1] ** 2 > 0.5)",
    ),
    Sabotage(
        broken="Of two classes the last by letters is the positive one.",
        test=f"{GUESSES}::test_the_positive_class_is_the_one_that_a_clinician_means",
        file="tables/classes.py",
        before='        return texts[says_yes.index(True)], ""\n',
        after='        return texts[1], ""\n',
    ),
    Sabotage(
        broken="Scores and charts go by the order of the classifier's classes.",
        test=f"{SAID}::test_scores_and_page_speak_of_the_positive_class",
        file="compare/evaluating.py",
        before="    proba = proba[:, order]\n",
        after="",
    ),
    Sabotage(
        broken="Workers are not told how the table is read.",
        test=f"{SAID}::test_what_is_said_reaches_the_workers_and_is_part_of_what_is_kept",
        file="compare/running.py",
        before="        reading=Reading(**reading),\n",
        after="",
    ),
    Sabotage(
        broken="What is said about columns is no part of what a result is of.",
        test=f"{SAID}::test_what_is_said_reaches_the_workers_and_is_part_of_what_is_kept",
        file="compare/running.py",
        before='"choices": json.dumps(choices.to_json()),',
        after='"choices": json.dumps(NO_CHOICES.to_json()),',
    ),
    Sabotage(
        broken="What counted as missing at the fit is a value in new rows.",
        test=f"{SAID}::test_a_model_reads_new_rows_as_it_was_told_to_read_the_old_ones",
        file="tables/prediction.py",
        before="open_table(table, reading, model.schema.missing)",
        after="open_table(table, reading)",
    ),
    Sabotage(
        broken="A missing extra ends in the import's own words.",
        test=f"{READERS}::test_a_missing_extra_says_how_to_install_it",
        file="tables/readers/protocol.py",
        before="    except ImportError as error:\n        raise ImportError(\n",
        after="    except AttributeError as error:\n        raise ImportError(\n",
    ),
    Sabotage(
        broken="The first row of a workbook below its header is lost.",
        test=f"{READERS}::test_every_format_gives_the_same_table[t.xlsx]",
        file="tables/readers/excel.py",
        before="rows[1:]))",
        after="rows[2:]))",
    ),
    Sabotage(
        broken="Files whose names are a column have the fingerprint of their content alone.",
        test=f"{READERS}::test_a_folder_of_csv_files_names_the_file_of_each_row",
        file="tables/files.py",
        before="            digest.update(name.encode())\n",
        after="            pass\n",
    ),
    Sabotage(
        broken="A web address is looked for among the files.",
        test=f"{READERS}::test_a_web_address_is_refused_with_what_to_do",
        file="tables/files.py",
        before="if found := _ADDRESS.match(str(table)):",
        after="if found := _ADDRESS.fullmatch(str(table)):",
    ),
    Sabotage(
        broken="Names are put on columns by their place in the file, whatever order they were asked for in.",
        test="tests/tables/test_files.py::test_columns_asked_for_in_another_order_keep_their_values",
        file="tables/files.py",
        before="        if self.rows.header == self.names:\n            return [str(name)",
        after="        if len(table.column_names) < len(self.names):\n            return [str(name)",
    ),
    Sabotage(
        broken="Names are one only where they differ in letter case or blanks.",
        test=f"{SCHEMA}::test_names_that_look_alike_and_are_written_differently_are_refused",
        file="tables/training.py",
        before='visible = "".join(c for c in unicodedata.normalize("NFC", value) if unicodedata.category(c) != "Cf")',
        after="visible = value",
    ),
    Sabotage(
        broken="The environments 1 and 1.0 are two.",
        test=f"{SCHEMA}::test_names_that_look_alike_and_are_written_differently_are_refused",
        file="tables/training.py",
        before='return as_whole_number(re.sub(r"(?<!\\d) | (?!\\d)", "", " ".join(visible.casefold().split())))',
        after='return re.sub(r"(?<!\\d) | (?!\\d)", "", " ".join(visible.casefold().split()))',
    ),
    Sabotage(
        broken="Whatever Python reads as a number is one: 01 and 1_0 too.",
        test=f"{SCHEMA}::test_labels_may_be_numbers_booleans_or_text",
        file="tables/classes.py",
        before="(?:0|[1-9][0-9]{0,14})",
        after="[0-9_]+",
    ),
    Sabotage(
        broken="Of numbers fifteen digits are looked at.",
        test=f"{SCHEMA}::test_environments_that_are_long_numbers_stay_apart",
        file="tables/columns.py",
        before="number.is_integer() and abs(number) < 2**63",
        after="number.is_integer() and abs(number) < 10**15",
    ),
    Sabotage(
        broken="Decimals are written as the floating-point numbers next to them.",
        test=f"{SCHEMA}::test_environments_that_are_long_numbers_stay_apart",
        file="tables/columns.py",
        before="write = _decimal_text if pa.types.is_decimal(column.type) else number_text",
        after="write = lambda value: f'{float(value):.15g}'  # noqa: E731",
    ),
    Sabotage(
        broken="Labels that a model learns from have to be written as its classes are.",
        test="tests/tables/test_new_environment.py::"
        "test_labels_are_the_model_s_classes_however_their_numbers_are_written",
        file="tables/classes.py",
        before="known.get(text, known.get(as_whole_number(text)))",
        after="known.get(text)",
    ),
)
