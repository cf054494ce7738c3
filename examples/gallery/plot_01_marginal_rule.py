"""The marginal rule, by hand
==========================

How does EBER answer for a row whose environment nobody has seen? It asks every training environment what it would say,
and weighs the answers by how plausible each environment is *for this row*:

.. math:: p(y|x) = \\sum_e p(e|x) \\, p(y|x,e).

Here this is done with one number x and no network at all, so that every term can be looked at. A patient is ill (z = 1)
or not; hospitals differ in their share of ill patients and in nothing else. We know five hospitals, and the question is
what to say in a sixth.
"""

import numpy as np
from matplotlib import pyplot as plt

shares = np.array([0.02, 0.05, 0.3, 0.6, 0.95])  # of ill patients in five hospitals
x = np.linspace(0.005, 0.995, 199)  # a laboratory value between 0 and 1
p_x_ill, p_x_well = 1 + 0.85 * (2 * x - 1), 1 - 0.85 * (2 * x - 1)  # p(x|z), the same in every hospital

# %%
# What each hospital would say
# ----------------------------
# Bayes' rule with its own share of ill patients. For the same x, hospitals disagree: what is alarming in a hospital
# full of ill patients is nothing much in one that hardly ever sees any.

p_x_given_e = shares[:, None] * p_x_ill + (1 - shares[:, None]) * p_x_well  # (5, 199)
ill_given_x_e = shares[:, None] * p_x_ill / p_x_given_e  # p(z=1|x,e)

# %%
# How plausible each hospital is
# ------------------------------
# Bayes' rule once more, now for the hospital: a high x is more often seen where many are ill.

e_given_x = p_x_given_e / p_x_given_e.sum(0)  # p(e|x); all hospitals have as many rows
print("p(e|x) at x = 0.1:", e_given_x[:, np.abs(x - 0.1).argmin()].round(2))
print("p(e|x) at x = 0.9:", e_given_x[:, np.abs(x - 0.9).argmin()].round(2))

# %%
# The marginal rule, and averaging without thinking
# -------------------------------------------------
# The same answers, weighed by p(e|x) or all alike. The first is what a patient with this x has in the pool of all five
# hospitals; the second is nobody's probability.

marginal = (e_given_x * ill_given_x_e).sum(0)
plain_mean = ill_given_x_e.mean(0)
pool = shares.mean() * p_x_ill / (shares.mean() * p_x_ill + (1 - shares.mean()) * p_x_well)
print(f"marginal rule against the pool: at most {np.abs(marginal - pool).max():.0e} apart")
print(f"plain mean against the pool:    at most {np.abs(plain_mean - pool).max():.2f} apart")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), sharex=True, layout="constrained")
for share, weights, answers, shade in zip(shares, e_given_x, ill_given_x_e, plt.cm.viridis([0, 0.2, 0.45, 0.7, 0.9])):
    left.plot(x, weights, color=shade, label=f"{share:.0%} ill")
    right.plot(x, answers, color=shade, linewidth=1)
right.plot(x, marginal, color="black", linewidth=3, label="weighed by p(e|x)")
right.plot(x, plain_mean, color="#D55E00", linewidth=2, linestyle="--", label="plain mean")
left.set(xlabel="x", ylabel="p(e|x)", title="How plausible each hospital is", ylim=(0, None))
right.set(xlabel="x", ylabel="p(ill | x)", title="What they say, and two averages")
left.legend(frameon=False, loc="upper center")
right.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The plain mean errs where hospitals differ most in how plausible they are: at low x it listens to the hospital that is
# full of ill patients, from which such a row hardly ever comes. With more and more hospitals the marginal rule comes as
# close to the population's p(y|x) as one likes, and the plain mean does not (``eber reproduce motivating``).
