"""Methods run as themselves."""

from tests.sabotage.sabotage import Sabotage

SABOTAGES = (
    Sabotage(
        broken="A method that nobody knows is replaced by EBER.",
        test="tests/test_methods.py::test_an_unknown_method_is_refused_by_every_command_and_never_replaced",
        file="methods/finding.py",
        before="""\
    raise ValueError(
        f"There is no method {name!r}; there are {', '.join(method.name for method in all_methods())}. One of your own "
        "is named by module:Class."
    )
""",
        after="    return BUILT_IN[0]\n",
    ),
    Sabotage(
        broken="The parametric experiment fits EBER where it does not list a method.",
        test="tests/test_methods.py::test_a_method_that_an_experiment_does_not_list_is_run_as_itself",
        file="experiments/parametric.py",
        before="declared, settings = find_method(method),",
        after='declared, settings = find_method(method if method in paper_methods() else "EBER"),',
    ),
    Sabotage(
        broken="Worker processes are not told of methods that are not the library's.",
        test="tests/test_methods.py::test_an_own_method_runs_as_itself_in_worker_processes",
        file="runs/computing.py",
        before="        for method in self.experiment.added_methods:\n            add_method(method)\n",
        after="",
    ),
    Sabotage(
        broken="A fit that fails takes those that were asked for with it along.",
        test="tests/test_methods.py::test_an_own_method_runs_as_itself_in_worker_processes",
        file="estimators/many_fits.py",
        before="            if self._raise_errors and not isinstance(error, NonFiniteLossError):\n",
        after="            if not isinstance(error, NonFiniteLossError):\n",
    ),
    Sabotage(
        broken="A run forgets the methods that an earlier one into its folder has added.",
        test="tests/test_methods.py::test_an_own_method_runs_as_itself_in_worker_processes",
        file="runs/runner.py",
        before="        experiment = _with_earlier_methods(experiment, out)\n",
        after="",
    ),
    Sabotage(
        broken="What a cell is does not depend on the code of its method.",
        test="tests/test_methods.py::test_a_method_whose_code_has_changed_is_computed_again",
        file="runs/cell.py",
        before='            **({"code": self.code} if self.code else {}),\n',
        after="",
    ),
    Sabotage(
        broken="The code of a method is known by its name.",
        test="tests/test_methods.py::test_a_method_whose_code_has_changed_is_computed_again",
        file="methods/own.py",
        before="            digest.update(Path(file).read_bytes())\n",
        after="            digest.update(file.encode())\n",
    ),
    Sabotage(
        broken="A model folder says which module is imported.",
        test="tests/tables/test_model_folder.py::test_a_folder_says_not_what_is_imported",
        file="methods/finding.py",
        before="""\
    raise ValueError(
        f"its classifier {name} is of no method""",
        after="""\
    if ":" in name:
        return find_object(name)
    raise ValueError(
        f"its classifier {name} is of no method""",
    ),
)
