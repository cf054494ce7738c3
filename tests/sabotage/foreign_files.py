"""Files that others made, as fuzzing and forging found them, and workers that outlive a run."""

from tests.sabotage.sabotage import Sabotage

SAVING = "tests/tuning/test_saving.py::"
CORPUS = "tests/trust/test_kept_corpus.py::test_what_once_failed_is_read_or_refused"

SABOTAGES = (
    Sabotage(
        broken="Workers are not killed with their parent, and wait until their libraries are loaded.",
        test="tests/runs/test_orphans.py::test_a_worker_that_is_still_importing_ends_with_its_killed_parent",
        file="runs/backends/processes.py",
        before="        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)\n",
        after="",
    ),
    Sabotage(
        broken="Work is unpacked before the worker asks to be told of its parent's end.",
        test="tests/runs/test_orphans.py::test_a_worker_that_is_still_importing_ends_with_its_killed_parent",
        file="runs/backends/processes.py",
        before="    _end_with_parent()\n    work: Work = pickle.loads(pickled)  # imports for seconds\n",
        after="    work: Work = pickle.loads(pickled)\n    _end_with_parent()\n",
    ),
    Sabotage(
        broken="Nobody looks whether the parent is still there.",
        test="tests/runs/test_orphans.py::test_a_worker_whose_parent_died_before_it_could_ask_ends_at_once",
        file="runs/backends/processes.py",
        before="        if os.getppid() != parent.pid:",
        after="        if os.getppid() == 0:",
    ),
    Sabotage(
        broken="Weights of a pool may be any numbers.",
        test=SAVING + "test_a_pool_with_attributes_that_no_fit_has_is_refused",
        file="tuning/load_checks.py",
        before=" or not (weights >= 0).all() or not np.isclose(weights.sum(), 1)",
        after="",
    ),
    Sabotage(
        broken="Parts of a pool are not compared with each other.",
        test=SAVING + "test_a_pool_with_attributes_that_no_fit_has_is_refused",
        file="tuning/load_checks.py",
        before="    if not np.array_equal(part.classes_, classes) or part.n_features_in_ != n_features:\n",
        after="    if part.n_features_in_ != n_features:\n",
    ),
    Sabotage(
        broken="A saved model may have any number of columns.",
        test=SAVING + "test_a_pool_with_attributes_that_no_fit_has_is_refused",
        file="tuning/load_checks.py",
        before=" or not 0 < n_features <= MAX_ROW_NUMBERS:",
        after=":",
    ),
    Sabotage(
        broken="Leaves that no row of zeros reaches are not looked at.",
        test=SAVING + "test_arrays_that_no_fit_has_are_refused",
        file="tuning/plain_models.py",
        before="        if not self.boosted:\n            _require_shares(self.values)\n",
        after="",
    ),
    Sabotage(
        broken="Trees may lead back to where one was.",
        test=SAVING + "test_arrays_that_no_fit_has_are_refused",
        file="tuning/plain_models.py",
        before="(self.right > node) & (self.right < N)",
        after="(self.right >= 0) & (self.right < N)",
    ),
    Sabotage(
        broken="A covariance may be any matrix.",
        test=SAVING + "test_a_calibration_that_no_fit_has_is_refused",
        file="tuning/calibration.py",
        before="np.allclose(spread, spread.T) and (np.linalg.eigvalsh(spread) > 0).all()",
        after="True",
    ),
    Sabotage(
        broken="The card of a model folder is not looked at before somebody wants to see it.",
        test=CORPUS + "[models]",
        file="tables/model_folder.py",
        before="            _show(model)\n",
        after="",
    ),
    Sabotage(
        broken="Weights beyond what training gives are taken.",
        test=CORPUS + "[models]",
        file="estimators/load_checks.py",
        before="(weights[name].abs() <= LARGEST_WEIGHT).all()",
        after="(weights[name] == weights[name]).all()",
    ),
    Sabotage(
        broken="A search that kept nothing is taken.",
        test=CORPUS + "[models]",
        file="tuning/load_checks.py",
        before="        if not part.estimators_ or any(",
        after="        if any(",
    ),
    Sabotage(
        broken="Whatever is whole and not negative counts as a number of reads.",
        test=CORPUS + "[datasets]",
        file="datasets/microbiomehd.py",
        before="(values >= 0) & (values <= _MAX_READS) &",
        after="(values >= 0) &",
    ),
    Sabotage(
        broken="The median of a column overflows with a bare warning.",
        test=CORPUS + "[tables]",
        file="tables/preprocessing.py",
        before='    with np.errstate(over="ignore", invalid="ignore"):\n        fill = float(np.median(known))\n',
        after='    fill = float(np.median(known))\n    with np.errstate(over="ignore", invalid="ignore"):\n',
    ),
    Sabotage(
        broken="A name of thousands of letters is said in full.",
        test=CORPUS + "[tables]",
        file="tables/schema.py",
        before='", ".join(map(cut, file.names[:12]))',
        after='", ".join(file.names[:12])',
    ),
    Sabotage(
        broken="Rows that were not asked for are kept.",
        test="tests/datasets/test_content.py::test_an_answer_to_another_query_is_not_kept",
        file="datasets/fetch.py",
        before="                _check(file, path, url)\n",
        after="",
    ),
    Sabotage(
        broken="An answer to another query stays in the folder, where the next fetch takes it for ours.",
        test="tests/datasets/test_content.py::test_an_answer_to_another_query_is_not_kept",
        file="datasets/fetch.py",
        before="    except ValueError as error:\n        path.unlink()\n",
        after="    except ValueError as error:\n",
    ),
    Sabotage(
        broken="Labels have no part in the checksum of a cohort.",
        test="tests/datasets/test_content.py::test_a_checksum_of_genera_is_of_samples_labels_and_reads_alone",
        file="datasets/content.py",
        before='f"{sample}\\t{states[sample]}\\n"',
        after='f"{sample}\\n"',
    ),
    Sabotage(
        broken="Whatever a cohort holds is called right.",
        test="tests/datasets/test_content.py::test_verify_says_whether_a_cohort_holds_what_is_known",
        file="datasets/fetch.py",
        before="== file.content_sha256",
        after='!= ""',
    ),
)
