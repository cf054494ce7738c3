"""A method of your own
====================

A new idea should be a few lines, and be measured like all others. Here it is the oldest one in robustness: care for the
environment that is served worst. A method is a rule from models and a minibatch to a loss, and a classifier that names
it; parameters, training, validation, saving and prediction are inherited.
"""

import numpy as np
from matplotlib import pyplot as plt

from eber import EBERClassifier, ERMClassifier, fit_many
from eber.datasets.prototypes import draw
from eber.estimators.baselines.base import PenalisedClassifier
from eber.evaluation.metrics import score
from eber.nn.networks import classify, row_losses
from eber.objectives.base import LossTerms, environment_averages, mean_where

# %%
# The method
# ----------
# Arrays have a leading axis S, since models of one shape are trained side by side.


class WorstEnvironmentObjective:
    """mean_e R_e + weight · max_e R_e, for S models side by side."""

    def __init__(self, schedule, n_environments):
        self.schedule, self.n_environments = schedule, n_environments

    def __call__(self, stack, batch, step, generators):
        """The loss of a minibatch, and its terms by name."""
        _, logits = classify(stack, batch.x)
        average, counts = environment_averages(batch.e, self.n_environments, logits.dtype)
        risks = (average @ row_losses(logits, batch.y)[:, :, None])[:, :, 0]  # (S, m)
        present = (counts > 0).to(logits.dtype)
        risk, worst = mean_where(risks, present), (risks * present).amax(1)  # (S,) each
        return LossTerms.from_tensors(stack, risk + self.schedule.at(step, risk) * worst, risk=risk, worst=worst)


class WorstEnvironmentClassifier(PenalisedClassifier):
    """A classifier that does its best where it does worst."""

    method_name = "Worst environment"

    def _penalised(self, schedule, jobs):
        return WorstEnvironmentObjective(schedule, jobs[0].n_environments)


# %%
# Does it do what it says?
# ------------------------
# Six environments, of which the last two, in which the first coordinate means the opposite, have few rows. Fits with
# seven weights are trained side by side.

data = draw(random_state=0)
rows_of = np.array([1000, 1000, 1000, 1000, 100, 100])
place = np.tile(np.arange(1000), 6)
train = data.train.select(place < rows_of[data.train.environments])
settings = {"epochs": 8, "batch_size": 256, "learning_rate": 3e-3, "random_state": 0}
weights = [0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0]
ours = [WorstEnvironmentClassifier(penalty_weight=weight, **settings) for weight in weights]
erm, eber = ERMClassifier(**settings), EBERClassifier(**settings)
fit_many([*ours, erm, eber], train)


def risks(classifier, held):
    """NLL in each environment."""
    proba = classifier.predict_proba(held.X)
    rows = [held.environments == name for name in held.environment_names]
    return np.array([score(held.y[own], proba[own], [0, 1], ["nll"])["nll"] for own in rows])


fresh = draw(random_state=1).train  # new rows of the six environments
by_weight = np.array([risks(classifier, fresh) for classifier in ours])  # (weights, environments)
of_erm, of_eber = risks(erm, fresh), risks(eber, fresh)

figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
axes.plot(weights, by_weight.max(1), "D-", color="#D55E00", label="worst environment")
axes.plot(weights, by_weight.mean(1), "o-", color="#0072B2", label="mean over environments")
for values, name, dash in ((of_erm, "ERM", "--"), (of_eber, "EBER", ":")):
    axes.axhline(values.max(), color="#D55E00", linestyle=dash, linewidth=1)
    axes.axhline(values.mean(), color="#0072B2", linestyle=dash, linewidth=1)
    axes.text(weights[-1] * 1.25, values.max(), name, va="center")
    axes.text(weights[-1] * 1.25, values.mean(), name, va="center")
axes.set(xscale="log", xlabel="weight of the worst environment", ylabel="NLL on new rows")
axes.legend(frameon=False, loc="center left", bbox_to_anchor=(0, 0.6))
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# It does, and the picture says why: nearly all of the gain is there at the smallest weight. The mean over environments,
# in which each counts once, is what ERM does not have: it counts rows, and the last two environments have few. More
# weight on the worst one makes things worse again, since in a minibatch the largest of six noisy risks is mostly noise.
# A method of one's own should be measured before it is believed.

print(f"worst environment: {of_erm.max():.3f} with ERM, {by_weight.max(1).min():.3f} at best with the new method")
print(f"mean:              {of_erm.mean():.3f} with ERM, {by_weight.mean(1)[by_weight.max(1).argmin()]:.3f} then")

# %%
# What it is worth in a *new* environment is another question, which ``eber compare --methods
# ERM,my_file:WorstEnvironmentClassifier`` answers on a table with each environment held out in turn, the weight chosen
# without a look at it. Here, at the weight that is best for the worst training environment:

best = ours[int(by_weight.max(1).argmin())]
for name, classifier in (("ERM", erm), ("worst environment", best), ("EBER", eber)):
    print(f"{name:<18} NLL in the new environment {risks(classifier, data.test).mean():.3f}")
