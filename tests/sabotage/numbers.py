"""Numbers at the edge."""

from tests.sabotage.sabotage import Sabotage

SABOTAGES = (
    Sabotage(
        broken="Rounding leaves less than nothing for the class that is all but impossible.",
        test="tests/method/test_integration.py::test_the_closed_form_gives_probabilities_where_it_is_sure",
        file="method/integration.py",
        before=".sum(0).clamp_(max=1)",
        after=".sum(0)",
    ),
    Sabotage(
        broken="The latent that is asked for alone does not weigh the environments.",
        test="tests/estimators/test_explanation.py::test_every_answer_is_a_part_of_one_explanation",
        file="method/inference.py",
        before="np.empty((len(x), module.latent_dim)), np.exp(log_p_e_given_x.T.numpy())",
        after="np.empty((len(x), module.latent_dim)), np.exp(0 * log_p_e_given_x.T.numpy())",
    ),
    Sabotage(
        broken="The gradient through the soft bounds lacks a factor.",
        test="tests/objectives/test_hand_written_gradients.py::test_fused_gradient_is_autograds_through_plain_layers",
        file="objectives/fused/networks.py",
        before="grad_input=grad).mul_(self.four) if self.bounded",
        after="grad_input=grad) if self.bounded",
    ),
    Sabotage(
        broken="Every class has a sigmoid of its own: probabilities do not sum to one.",
        test="tests/trust/test_numbers.py::test_every_classifier_gives_probabilities_or_advice",
        file="estimators/baselines/base.py",
        before="torch.softmax(self.module_(rows)[1], 1).T",
        after="torch.sigmoid(self.module_(rows)[1]).T",
    ),
    Sabotage(
        broken="The mean over an environment that has no row in a batch divides by zero.",
        test="tests/trust/test_numbers.py::test_every_classifier_gives_probabilities_or_advice",
        file="objectives/base.py",
        before="counts.clamp(min=1)[:, :, None]",
        after="counts[:, :, None]",
    ),
    Sabotage(
        broken="A loss that stops being finite is reported without advice.",
        test="tests/trust/test_numbers.py::test_every_classifier_gives_probabilities_or_advice",
        file="training.py",
        before='{steps_before + first + 1}. Standardise the features, "\n',
        after='{steps_before + first + 1}; "\n',
    ),
    Sabotage(
        broken="Losses are not looked at, so that a fit ends with weights that are no numbers.",
        test="tests/trust/test_numbers.py::test_every_classifier_gives_probabilities_or_advice",
        file="training.py",
        before="    return [failure or history for failure, history in zip(failures, histories, strict=True)]\n",
        after="    return list(histories)\n",
    ),
    Sabotage(
        broken="p(e|x) is worked out without care for overflow.",
        test="tests/trust/test_numbers.py::test_every_classifier_gives_probabilities_or_advice",
        file="method/model.py",
        before="        return torch.log_softmax(self.environment_gain * self.h(x, plans), 0)\n",
        after="""\
        odds = torch.exp(self.environment_gain * self.h(x, plans))
        return torch.log(odds / odds.sum(0))
""",
    ),
    Sabotage(
        broken="The latent dimension follows from the classes, whatever is asked for.",
        test="tests/trust/test_numbers.py::test_any_latent_dimension",
        file="estimators/eber_fitting.py",
        before='K - 1 if self.latent_dim == "auto" else int(self.latent_dim)',
        after="K - 1",
    ),
    Sabotage(
        broken="Quadrature is used in any dimension, and has no rule beyond two.",
        test="tests/trust/test_numbers.py::test_any_latent_dimension",
        file="method/integration.py",
        before="    if latent_dim <= MAX_QUADRATURE_DIM:",
        after="    if latent_dim:",
    ),
    Sabotage(
        broken="Steps are counted from the beginning of the pass.",
        test="tests/test_training.py::test_a_loss_that_is_not_finite_names_the_step_and_what_to_try",
        file="training.py",
        before="{steps_before + first + 1}",
        after="{first + 1}",
    ),
    Sabotage(
        broken="Steps are counted from zero.",
        test="tests/test_training.py::test_a_loss_that_is_not_finite_names_the_step_and_what_to_try",
        file="training.py",
        before="{steps_before + first + 1}",
        after="{steps_before + first}",
    ),
    Sabotage(
        broken="It is not said what to try.",
        test="tests/test_training.py::test_a_loss_that_is_not_finite_names_the_step_and_what_to_try",
        file="training.py",
        before='        f"lower learning_rate (now {settings.learning_rate:g}), or set clip_norm."\n',
        after='        f"or set clip_norm."\n',
    ),
    Sabotage(
        broken="Only the weights are looked at, at the end, and not the losses.",
        test="tests/test_training.py::test_a_loss_that_is_not_finite_names_the_step_and_what_to_try",
        file="training.py",
        before="            failures[s] = failures[s] or _first_failure(values[:, 0, s], before, settings)\n",
        after="",
    ),
)
