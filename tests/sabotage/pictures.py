"""Pictures from Python."""

from tests.sabotage.sabotage import Sabotage

BY_HAND = "tests/displays/test_displays.py::test_weights_are_the_mean_of_p_e_given_x_by_true_environment"
CURVES = "tests/displays/test_displays.py::test_calibration_curves_are_shares_that_one_counts_by_hand"
BARS = "tests/displays/test_displays.py::test_bars_of_uncertainty_add_up_to_the_mean_entropy"
MIXTURES = "tests/displays/test_displays.py::test_mixtures_are_those_before_and_after_adapting"
POINTS = "tests/displays/test_displays.py::test_points_of_the_latent_space_are_those_of_transform"
AXES = "tests/displays/test_displays.py::test_a_display_draws_on_the_axes_it_is_given_and_makes_its_own_otherwise"
LIGHT = "tests/displays/test_displays.py::test_displays_are_imported_without_what_draws"

SABOTAGES = (
    Sabotage(
        broken="Lines of the picture of p(e|x) are of all rows.",
        test=BY_HAND,
        file="displays/environment_weights.py",
        before="proba[rows].mean(0) for rows in",
        after="proba.mean(0) for rows in",
    ),
    Sabotage(
        broken="Environments are sorted as text, s 10 before s 2.",
        test=BY_HAND,
        file="displays/rows.py",
        before="key=lambda name: natural_order(str(name))",
        after="key=str",
    ),
    Sabotage(
        broken="Each environment has the calibration curve of all rows.",
        test=CURVES,
        file="displays/calibration.py",
        before="reliability(labels[rows], p[rows], classes, n_bins) for",
        after="reliability(labels, p, classes, n_bins) for",
    ),
    Sabotage(
        broken="The bars of uncertainty hide each other.",
        test=BARS,
        file="displays/uncertainty.py",
        before="left=start, ",
        after="",
    ),
    Sabotage(
        broken="The mixture before adapting is that after it.",
        test=MIXTURES,
        file="estimators/eber_adapting.py",
        before='hasattr(self, "adaptation_") and not before_adapting',
        after='hasattr(self, "adaptation_")',
    ),
    Sabotage(
        broken="Points of the latent space lie on the line of another environment.",
        test=POINTS,
        file="displays/latent_space.py",
        before="heights[mine] = place + ",
        after="heights[mine] = len(self.groups) - 1 - place + ",
    ),
    Sabotage(
        broken="A display draws on axes of its own, whatever it is given.",
        test=AXES,
        file="displays/axes.py",
        before="    if ax is None:\n",
        after="    if ax is not False:\n",
    ),
    Sabotage(
        broken="A display imports what draws with itself.",
        test=LIGHT,
        file="displays/axes.py",
        before="from eber.displays.colours import INK, MARKERS, PALETTE\n",
        after="from matplotlib import pyplot  # noqa\n\nfrom eber.displays.colours import INK, MARKERS, PALETTE\n",
    ),
)
