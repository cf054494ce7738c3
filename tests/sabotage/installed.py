"""Whatever torch is installed, and before anything of it is needed."""

from tests.sabotage.sabotage import Sabotage

OPERATIONS = "tests/nn/test_torch_operations.py"

SABOTAGES = (
    Sabotage(
        broken="What takes the place of torch's softmax gradient leaves the sum out.",
        test=f"{OPERATIONS}::test_a_fit_without_them_is_the_same_fit",
        file="nn/torch_operations.py",
        before="torch.mul(p, grad - (p * grad).sum(axis, keepdim=True), out=grad_input)",
        after="torch.mul(p, grad, out=grad_input)",
    ),
    Sabotage(
        broken="What takes the place of torch's log-softmax gradient takes logarithms for probabilities.",
        test=f"{OPERATIONS}::test_the_other_gradients_are_those_of_autograd",
        file="nn/torch_operations.py",
        before="log_p.exp() * grad.sum(",
        after="log_p * grad.sum(",
    ),
    Sabotage(
        broken="The package imports numpy at once.",
        test="tests/cli/test_starting.py::test_importing_the_package_imports_nothing_heavy",
        file="__init__.py",
        before="from importlib import import_module\n",
        after="from importlib import import_module\n\nimport numpy\n",
    ),
)
