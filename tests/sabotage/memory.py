"""Memory is bounded."""

from tests.sabotage.sabotage import Sabotage

SABOTAGES = (
    Sabotage(
        broken="All batches of a CSV file are read before the first is handed on.",
        test="tests/trust/test_fuzzed_tables.py::test_a_bomb_is_worked_through_in_bounded_memory_where_rows_go_one_way",
        file="tables/readers/csv.py",
        before="            for batch in reader:\n",
        after="            for batch in list(reader):\n",
    ),
    Sabotage(
        broken="`predict` collects all rows before it predicts the first.",
        test="tests/trust/test_fuzzed_tables.py::test_a_bomb_is_worked_through_in_bounded_memory_where_rows_go_one_way",
        file="tables/prediction.py",
        before="            for table in section.batches(columns, rows):",
        after="            for table in list(section.batches(columns, rows)):",
    ),
    Sabotage(
        broken="The sizes of the parts of a table are not added up.",
        test="tests/trust/test_fuzzed_tables.py::test_a_compressed_bomb_is_refused_before_it_fills_the_memory",
        file="tables/files.py",
        before="size += part.nbytes",
        after="size = part.nbytes",
    ),
    Sabotage(
        broken="The size of a table is looked at when all of it has been read.",
        test="tests/trust/test_fuzzed_tables.py::test_a_compressed_bomb_is_refused_before_it_fills_the_memory",
        file="tables/files.py",
        before="            require_room(self.title, size, limit)\n",
        after="        require_room(self.title, size, limit)\n",
    ),
    Sabotage(
        broken="A table may take all of the memory, not a quarter.",
        test="tests/trust/test_fuzzed_tables.py::test_a_compressed_bomb_is_refused_before_it_fills_the_memory",
        file="tables/readers/protocol.py",
        before="return memory_bytes() // 4",
        after="return memory_bytes()",
    ),
    Sabotage(
        broken="What was unpacked is not added up.",
        test="tests/trust/test_fuzzed_datasets.py::test_a_bomb_is_refused_at_the_limit",
        file="datasets/archive.py",
        before="self.used += count",
        after="self.used = count",
    ),
    Sabotage(
        broken="Gzipped files are unpacked up to the limit of whole archives.",
        test="tests/trust/test_fuzzed_datasets.py::test_a_bomb_is_refused_at_the_limit",
        file="datasets/archive.py",
        before="_Metered(stream, _Budget(path, max_bytes))",
        after="_Metered(stream, _Budget(path, MAX_BYTES))",
    ),
    Sabotage(
        broken="What a zip holds is unpacked without paying from the budget.",
        test="tests/trust/test_fuzzed_datasets.py::test_a_bomb_is_refused_at_the_limit[OTU zip]",
        file="datasets/archive.py",
        before="yield name, io.BufferedReader(_Metered(stream, budget), _CHUNK)",
        after="yield name, stream",
    ),
    Sabotage(
        broken="The networks that a folder describes are made without a look at its weights.",
        test="tests/trust/test_fuzzed_models.py::test_a_forged_size_does_not_fill_the_memory",
        file="estimators/persistence.py",
        before="        check_weights(module, own)\n",
        after="",
    ),
    Sabotage(
        broken="Only the widths of a network are compared with its weights, not the layers between them.",
        test="tests/trust/test_fuzzed_models.py::test_a_forged_size_does_not_fill_the_memory",
        file="estimators/load_checks.py",
        before='    with torch.device("meta"):\n        module = described._module()\n',
        after="    module = described._module()\n",
    ),
    Sabotage(
        broken="A chain of any number of layers is built.",
        test="tests/trust/test_fuzzed_models.py::test_a_forged_size_does_not_fill_the_memory",
        file="estimators/load_checks.py",
        before="MAX_LAYERS = 1_000\n",
        after="MAX_LAYERS = 1_000_000_000\n",
    ),
    Sabotage(
        broken="What a layer makes of one row for all classes and environments is not counted.",
        test="tests/trust/test_fuzzed_models.py::test_many_classes_times_many_environments_do_not_fill_the_memory",
        file="estimators/load_checks.py",
        before="* math.prod(network.contexts) > MAX_ROW_NUMBERS:",
        after="> MAX_ROW_NUMBERS:",
    ),
    Sabotage(
        broken="Whatever is called like a file of a model is read to its end.",
        test="tests/trust/test_fuzzed_models.py::test_only_ordinary_files_of_a_moderate_size_are_opened[model.json-pipe]",
        file="io/files.py",
        before="if not stat.S_ISREG(status.st_mode):",
        after="if False:",
    ),
    Sabotage(
        broken="A file of any size is read.",
        test="tests/trust/test_fuzzed_models.py::test_only_ordinary_files_of_a_moderate_size_are_opened",
        file="io/files.py",
        before="        if status.st_size > limit:\n",
        after="        if False:\n",
    ),
)
