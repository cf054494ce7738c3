"""Many environments
=================

A component for each environment is what EBER learns by default. With hundreds of environments most of them look
alike, and each has too few rows for a component of its own. Pseudo-environments are a few learned components that all
environments share: each environment is then a mixture of them. How many does one need?
"""

import numpy as np
from matplotlib import pyplot as plt

from eber import EBERClassifier, EnvironmentWeightsDisplay
from eber.datasets.parametric import ParametricParameters, draw
from eber.datasets.parametric_oracle import ParametricOracle
from eber.evaluation.metrics import score

# %%
# 60 environments of 100 rows each, on six branches of a spiral. Environments of one branch are nearly the same.

data = draw(ParametricParameters(m_train=60, n=100, m_validation=1, m_test=60, beta_1=3.0), random_state=0)
train, test = data.train, data.test
print(f"{len(train)} rows, {len(train.environment_names)} environments")


def fitted(pseudo_environments):
    """A fit, and its NLL in 60 new environments."""
    clf = EBERClassifier(pseudo_environments=pseudo_environments, epochs=12, learning_rate=2e-3, random_state=0)
    clf.fit(train.X, train.y, environments=train.environments)
    return clf, score(test.y, clf.predict_proba(test.X), [0, 1], ["nll"])["nll"]


numbers = [2, 4, 6, 12]
fits = {number: fitted(number) for number in numbers}
all_of_them = fitted(None)
best = score(test.y, ParametricOracle(data.parameters, data.centres).bayes_x(test.X), [0, 1], ["nll"])["nll"]
for number, (_, nll) in {**fits, "one for each": all_of_them}.items():
    print(f"{number!s:>12}: NLL {nll:.3f}")
print(f"the best that any rule of x can do: {best:.3f}")

# %%
# Left: NLL in new environments against the number of components. Two are too few for six branches; from four on there
# is little left to gain, since a component is a network and can serve more than one branch. Right: what the fit with
# twelve components says of the 60 environments, summed over those of each branch. A row is taken for one of its own
# branch nearly always, which is all that x can tell.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left.plot(numbers, [fits[number][1] for number in numbers], "o-", color="#0072B2", label="pseudo-environments")
left.axhline(all_of_them[1], color="#D55E00", linestyle="--", label="one component for each of 60")
left.axhline(best, color="#24292f", linestyle=":", label="best possible")
left.set(xlabel="number of components", ylabel="NLL in new environments", xscale="log")
left.set_xticks(numbers, numbers, minor=False)
left.minorticks_off()
left.legend(frameon=False)
left.spines[["top", "right"]].set_visible(False)

branch = np.arange(60) // 10  # environments are numbered along the branches
p_branch = np.stack([fits[12][0].predict_environment_proba(train.X)[:, branch == b].sum(1) for b in range(6)], axis=1)
EnvironmentWeightsDisplay.from_predictions(
    p_branch,
    training_environments=[f"branch {b + 1}" for b in range(6)],
    environments=[f"branch {branch[e] + 1}" for e in train.environments],
    ax=right,
)
right.set_xlabel("training environments of")
plt.show()
