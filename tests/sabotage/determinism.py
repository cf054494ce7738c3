"""Determinism."""

from tests.sabotage.sabotage import Sabotage

SABOTAGES = (
    Sabotage(
        broken="The seed of a fit is drawn afresh, whatever random_state says.",
        test="tests/test_training.py::test_the_same_seed_gives_the_same_fit_to_the_bit",
        file="estimators/base.py",
        before="check_random_state(self.random_state).randint",
        after="check_random_state(None).randint",
    ),
    Sabotage(
        broken="The generator of a fit, which orders the rows, is seeded by the machine.",
        test="tests/test_training.py::test_the_same_seed_gives_the_same_fit_to_the_bit",
        file="training.py",
        before="            yield torch.Generator().manual_seed(seed)\n",
        after="            generator = torch.Generator()\n            generator.seed()\n            yield generator\n",
    ),
    Sabotage(
        broken="Weights start from torch's global generator as the user left it: it is read.",
        test="tests/test_training.py::test_a_fit_neither_reads_nor_changes_the_global_generators",
        file="estimators/base.py",
        before="None if self._draws_globally else torch.Generator().manual_seed(seed)",
        after="None",
    ),
    Sabotage(
        broken="Torch's global generator is seeded and not put back: it is changed.",
        test="tests/test_training.py::test_a_fit_neither_reads_nor_changes_the_global_generators",
        file="training.py",
        before="    with global_generator(seed) if draws_globally else nullcontext():\n",
        after="    torch.manual_seed(seed)\n    with nullcontext():\n",
    ),
    Sabotage(
        broken="The seed comes from numpy's global generator: it is read.",
        test="tests/test_training.py::test_a_fit_neither_reads_nor_changes_the_global_generators",
        file="estimators/base.py",
        before="check_random_state(self.random_state).randint(",
        after="np.random.RandomState(np.random.get_state()[1][0]).randint(",
    ),
    Sabotage(
        broken="Numpy's global generator is seeded to draw the seed: it is changed.",
        test="tests/test_training.py::test_a_fit_neither_reads_nor_changes_the_global_generators",
        file="estimators/base.py",
        before="        return int(check_random_state(self.random_state).randint(",
        after="        np.random.seed(self.random_state)\n        return int(np.random.randint(",
    ),
    Sabotage(
        broken="The number of threads is not put back.",
        test="tests/test_training.py::test_threads_and_denormals_are_put_back_even_when_the_fit_fails",
        file="training.py",
        before="            torch.set_num_threads(threads_before)\n",
        after="",
    ),
    Sabotage(
        broken="Denormal numbers stay flushed after a fit.",
        test="tests/test_training.py::test_threads_and_denormals_are_put_back_even_when_the_fit_fails",
        file="training.py",
        before="            torch.set_flush_denormal(not denormals_before)\n",
        after="",
    ),
    Sabotage(
        broken="Denormal numbers are never flushed after a fit, though they were before it.",
        test="tests/test_training.py::test_threads_and_denormals_are_put_back_even_when_the_fit_fails",
        file="training.py",
        before="torch.set_flush_denormal(not denormals_before)",
        after="torch.set_flush_denormal(False)",
    ),
    Sabotage(
        broken="Threads and denormals are put back only where the fit raises nothing.",
        test="tests/test_training.py::test_threads_and_denormals_are_put_back_even_when_the_fit_fails",
        file="training.py",
        before="""\
        try:
            yield torch.Generator().manual_seed(seed)
        finally:
            torch.set_flush_denormal(not denormals_before)
            torch.set_num_threads(threads_before)
""",
        after="""\
        yield torch.Generator().manual_seed(seed)
        torch.set_flush_denormal(not denormals_before)
        torch.set_num_threads(threads_before)
""",
    ),
    Sabotage(
        broken="First weights are drawn from torch's global generator, seeded for the fit.",
        test="tests/estimators/test_threads.py::test_fits_in_threads_are_the_fits_one_after_the_other",
        file="estimators/base.py",
        before="        module = self._build(attributes, None if self._draws_globally else "
        "torch.Generator().manual_seed(seed))\n",
        after="        torch.manual_seed(seed)\n        module = self._build(attributes, None)\n",
    ),
    Sabotage(
        broken="First weights are drawn from torch's global generator, which is seeded and put back under a lock.",
        test="tests/estimators/test_threads.py::test_a_users_own_draws_are_left_alone_by_fits_in_other_threads",
        file="estimators/base.py",
        before="        return callable(self.featurizer)\n",
        after="        return True\n",
    ),
    Sabotage(
        broken="Fits whose modules draw from torch's global generator do not wait for each other.",
        test="tests/estimators/test_threads.py::test_fits_with_a_featurizer_that_draws_globally_wait_for_each_other",
        file="training.py",
        before="with _GLOBAL_GENERATOR, torch.random",
        after="with torch.random",
    ),
    Sabotage(
        broken="Loading a model draws first weights from torch's global generator.",
        test="tests/estimators/test_threads.py::test_loading_a_model_leaves_the_global_generator_alone",
        file="estimators/eber_fitting.py",
        before="*sizes, torch.Generator(), pieces_of(vars(self)))",
        after="*sizes, None, pieces_of(vars(self)))",
    ),
    Sabotage(
        broken="Loading a model lets a featurizer draw from torch's global generator.",
        test="tests/estimators/test_threads.py::test_loading_a_model_leaves_the_global_generator_alone",
        file="estimators/persistence.py",
        before="with global_generator(seed=0) if estimator._draws_globally else nullcontext():",
        after="with nullcontext():",
    ),
    Sabotage(
        broken="All fits of a stack draw from the generator of the first.",
        test="tests/estimators/test_many_fits.py::test_fits_together_equal_fits_alone",
        file="estimators/base.py",
        before="[job.generator for job in jobs]",
        after="[jobs[0].generator for _ in jobs]",
    ),
    Sabotage(
        broken="All fits of a stack get the penalty weight of the first.",
        test="tests/estimators/test_many_fits.py::test_fits_together_equal_fits_alone",
        file="estimators/baselines/base.py",
        before="float(getattr(job.estimator, parameter)) for job in jobs",
        after="float(getattr(self, parameter)) for _ in jobs",
    ),
    Sabotage(
        broken="Gradients are clipped by their length over all fits of a stack.",
        test="tests/estimators/test_many_fits.py::test_fits_together_equal_fits_alone",
        file="nn/stack.py",
        before="torch.zeros(len(self), dtype=torch.float64).index_add_(0, self.owner, squares).sqrt()",
        after="squares.sum().sqrt().expand(len(self))",
    ),
    Sabotage(
        broken="Fits on tables of one shape are all trained on the rows of the first.",
        test="tests/estimators/test_many_fits.py::test_fits_together_equal_fits_alone",
        file="estimators/many_fits.py",
        before="(job.shape, id(X), id(y), id(environments), id(sample_weight))",
        after="(job.shape,)",
    ),
    Sabotage(
        broken="Features are scaled before they are cast, in the precision in which they came.",
        test="tests/trust/test_numbers.py::test_float32_and_float64_give_the_same_model",
        file="estimators/base.py",
        before="validated._validate_X(X, y=y, reset=True)",
        after="validated._validate_X(X / np.std(X), y=y, reset=True)",
    ),
    Sabotage(
        broken="Features keep the precision in which they came.",
        test="tests/trust/test_numbers.py::test_float32_and_float64_give_the_same_model",
        file="estimators/base.py",
        before='"dtype": np.float32,',
        after='"dtype": [np.float32, np.float64],',
    ),
)
