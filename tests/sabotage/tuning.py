"""Regularisation, tuning by leaving environments out, pools, a few labels."""

from tests.sabotage.sabotage import Sabotage

SABOTAGES = (
    Sabotage(
        broken="Weight decay shrinks biases, too.",
        test="tests/test_weight_decay.py::test_it_is_adamw_on_weights_and_adam_on_biases",
        file="nn/stack.py",
        before='            if name.rpartition(".")[2] != "bias":\n',
        after="            if name:\n",
    ),
    Sabotage(
        broken="Weight decay is not scaled by the learning rate.",
        test="tests/test_weight_decay.py::test_it_is_adamw_on_weights_and_adam_on_biases",
        file="training.py",
        before="self._kept = 1 - settings.learning_rate * self.stack.on_weights(decays)",
        after="self._kept = 1 - 0.001 * self.stack.on_weights(decays)",
    ),
)
