"""Tables larger than memory, and large batches."""

from tests.sabotage.sabotage import Sabotage

PREPARED = "tests/tables/test_prepared.py"
STORED = "tests/estimators/test_stored_rows.py"
BATCHES = "tests/estimators/test_batches.py"
LARGER = "tests/workflow/test_larger_than_memory.py"

SABOTAGES = (
    Sabotage(
        broken="A table that memory holds is taken to be all that fits need.",
        test=f"{LARGER}::test_a_table_that_memory_holds_but_not_with_its_fits_is_compared_on_a_sample_and_fitted_from_disk",
        file="workflow/room.py",
        before="    if room < 1 and can_be_sampled:\n",
        after="    if room < -1 and can_be_sampled:\n",
    ),
    Sabotage(
        broken="As many jobs are run as were asked for, whatever memory holds.",
        test=f"{LARGER}::test_no_more_jobs_are_run_than_memory_holds",
        file="workflow/room.py",
        before="    return max(min(room, jobs), 1)\n",
        after="    return jobs\n",
    ),
    Sabotage(
        broken="Automatic batches are larger from the first row on.",
        test=f"{BATCHES}::test_small_tables_are_fitted_as_with_batches_of_64",
        file="estimators/batches.py",
        before="ROWS_FOR_DOUBLE = 100_000\n",
        after="ROWS_FOR_DOUBLE = 100\n",
    ),
    Sabotage(
        broken="Larger batches have the step size of small ones.",
        test=f"{BATCHES}::test_large_tables_are_fitted_with_the_batch_and_step_size_that_auto_stands_for",
        file="estimators/batches.py",
        before="return learning_rate * math.sqrt(batch_rows(batch_size, n_rows) / USUAL_BATCH)",
        after="return learning_rate",
    ),
    Sabotage(
        broken="Rows on disk keep the order of the source within a bucket, and buckets that of the blocks.",
        test=f"{PREPARED}::test_rows_on_disk_are_those_of_memory_in_another_order",
        file="tables/prepared/gathering.py",
        before="        rows = rows.select(np.random.default_rng([self.seed, 2, bucket]).permutation(len(rows)))\n",
        after="",
    ),
    Sabotage(
        broken="Environments stay where they are while rows are sorted by buckets.",
        test=f"{PREPARED}::test_statistics_of_a_table_larger_than_the_sample_are_those_of_all_rows",
        file="tables/prepared/scattering.py",
        before="                    file.write(np.ascontiguousarray(values[order]).data)\n",
        after="                    file.write(np.ascontiguousarray(values[order] if values.ndim > 1 else values).data)\n",  # noqa: E501
    ),
    Sabotage(
        broken="Moments are those of the last batch.",
        test=f"{PREPARED}::test_statistics_of_a_table_larger_than_the_sample_are_those_of_all_rows",
        file="tables/prepared/learning.py",
        before="            self.squares += squares",
        after="            self.squares = squares",
    ),
    Sabotage(
        broken="Medians are taken from the lower quarter.",
        test=f"{PREPARED}::test_statistics_of_a_table_larger_than_the_sample_are_those_of_all_rows",
        file="tables/prepared/learning.py",
        before="self.sketch.get_quantile(0.5)",
        after="self.sketch.get_quantile(0.25)",
    ),
    Sabotage(
        broken="What was done before a stop is done again.",
        test=f"{PREPARED}::test_stopped_anywhere_it_goes_on_to_the_same_rows",
        file="tables/prepared/scattering.py",
        before="        if (known := _read_done(done)) is not None:\n",
        after="        if (known := _read_done(done)) is None and done.exists():\n",
    ),
    Sabotage(
        broken="A folder is said to be whole before its rows are there.",
        test=f"{PREPARED}::test_stopped_anywhere_it_goes_on_to_the_same_rows",
        file="tables/prepared/preparing.py",
        before="            found.save(making / PLAN)\n",
        after="            found.save(making / PLAN)\n            found.save(out / TABLE_FILE)\n",
    ),
    Sabotage(
        broken="The order of a section's rows depends on the process that draws it.",
        test=f"{PREPARED}::test_processes_side_by_side_give_the_same_bytes",
        file="tables/prepared/scattering.py",
        before="rng = np.random.default_rng([self.seed, 1, number, block])",
        after="rng = np.random.default_rng()",
    ),
    Sabotage(
        broken="The sample depends on who looks at a section.",
        test=f"{PREPARED}::test_every_pass_is_made_of_tasks_that_may_be_done_anywhere_in_any_order",
        file="tables/prepared/looking.py",
        before="rng = np.random.default_rng([self.seed, 0, number])",
        after="rng = np.random.default_rng()",
    ),
    Sabotage(
        broken="What was seen of sections is added up as it comes.",
        test=f"{PREPARED}::test_every_pass_is_made_of_tasks_that_may_be_done_anywhere_in_any_order",
        file="tables/tasks.py",
        before="        early[task] = answer\n",
        after="        early[turn] = answer\n",
    ),
    Sabotage(
        broken="What other sections showed of a column replaces what was seen before.",
        test=f"{PREPARED}::test_statistics_of_a_table_larger_than_the_sample_are_those_of_all_rows",
        file="tables/prepared/learning.py",
        before="            self.sketch.merge(other.sketch)\n",
        after="            self.sketch = other.sketch\n",
    ),
    Sabotage(
        broken="Whatever is in the folder is taken for the table.",
        test=f"{PREPARED}::test_what_cannot_be_prepared_is_refused_in_a_sentence",
        file="tables/prepared/preparing.py",
        before="    if (found.fingerprint, dict(found.asked)) == (fingerprint, asked):\n        return found\n    what",
        after="    if found:\n        return found\n    what",
    ),
    Sabotage(
        broken="Room for the table is enough, without that for what is on its way.",
        test=f"{PREPARED}::test_what_cannot_be_prepared_is_refused_in_a_sentence",
        file="tables/prepared/preparing.py",
        before="    if free < 2 * size:\n",
        after="    if free < 0:\n",
    ),
    Sabotage(
        broken="Rows are fitted without a look at their digests.",
        test=f"{PREPARED}::test_rows_that_were_changed_are_not_fitted",
        file="workflow/fitting_prepared.py",
        before="    prepared.check()\n",
        after="",
    ),
    Sabotage(
        broken="Ray gets another token each time that it is started, and refuses the second.",
        test="tests/runs/test_ray_tables.py::test_ray_prepares_to_the_same_bytes",
        file="runs/backends/ray.py",
        before='os.environ["RAY_AUTH_TOKEN"] = _own_token()',
        after='os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)',
    ),
    Sabotage(
        broken="A table that memory does not hold is refused, as if nothing could be done.",
        test=f"{LARGER}::test_a_table_that_does_not_fit_is_prepared_on_the_way_to_the_model",
        file="workflow/fitting.py",
        before="        if not from_disk:\n",
        after="        if from_disk:\n",
    ),
    Sabotage(
        broken="Of the settings that a sample finds best, none is used.",
        test=f"{LARGER}::test_settings_and_scores_are_of_the_sample_and_the_model_is_of_all_rows",
        file="workflow/fitting_prepared.py",
        before=".set_params(**settings)",
        after="",
    ),
    Sabotage(
        broken="A comparison of a sample does not say that it is one.",
        test=f"{LARGER}::test_a_comparison_of_a_sample_says_so_on_top_and_advises_a_fit_of_the_table",
        file="compare/record.py",
        before="filter(None, [self.sample_remark, ",
        after="filter(None, [",
    ),
    Sabotage(
        broken="The advised fit is of the sample.",
        test=f"{LARGER}::test_a_comparison_of_a_sample_says_so_on_top_and_advises_a_fit_of_the_table",
        file="workflow/comparing.py",
        before="    table = record.sample_of or str(",
        after="    table = str(",
    ),
    Sabotage(
        broken="A sample is compared without a look at its digest.",
        test=f"{LARGER}::test_a_sample_that_was_changed_is_not_compared",
        file="tables/prepared/folder.py",
        before="        if not path.is_file() or digest_of(path) != self.sample:\n",
        after="        if not path.is_file():\n",
    ),
    Sabotage(
        broken="The component of the tie is drawn as one of the bound is.",
        test="tests/objectives/test_hand_written_gradients.py"
        "::test_sampled_environments_leave_loss_and_gradient_unbiased",
        file="objectives/fused/sampled_mixture.py",
        before="            self._draw(self._weights, self.of_observed, self._observed)\n",
        after="            self._draw(self._r, self.of_observed, self._observed)\n",
    ),
    Sabotage(
        broken="Sums over blocks of draws forget the blocks before.",
        test="tests/objectives/test_hand_written_gradients.py"
        "::test_fused_objective_equals_the_readable_one_in_value_terms_and_gradient",
        file="objectives/fused/exact_mixture.py",
        before="                self._sums.add_(of_draw)\n",
        after="                self._sums.copy_(of_draw)\n",
    ),
    Sabotage(
        broken="Rows on disk are visited as if their order were random, and were put there in that of the files.",
        test=f"{STORED}::test_shuffled_once_is_as_good_as_in_memory_and_the_order_of_the_files_is_not",
        file="training.py",
        before="            order = torch.randperm(len(own[1]), generator=generator)\n",
        after="            order = torch.zeros(len(own[1])).long()\n",
    ),
    Sabotage(
        broken="Blocks are drawn with repetition.",
        test=f"{STORED}::test_every_row_is_visited_once_in_a_pass_and_passes_differ",
        file="training.py",
        before="for block in torch.randperm(-(-self.n_rows // self.block), generator=generator).tolist():",
        after="for block in torch.randint(-(-self.n_rows // self.block), (-(-self.n_rows // self.block),)).tolist():",
    ),
    Sabotage(
        broken="What was on its way stays where `prepare` was stopped at its end.",
        test="tests/tables/test_prepared.py::test_stopped_anywhere_it_goes_on_to_the_same_rows",
        file="tables/prepared/preparing.py",
        before="                shutil.rmtree(out / MAKING)\n",
        after="                pass\n",
    ),
)
