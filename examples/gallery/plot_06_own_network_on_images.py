"""Your own network, on images
===========================

Images need another network than tables do. Any ``torch.nn.Module`` will do as ``featurizer``; EBER puts its own heads
on its features. The images here are drawn, 8 by 8 pixels: a bar that stands or lies, in front of a background whose
brightness depends on the hospital's scanner and, in each hospital to another degree, on the label.
"""

import numpy as np
import torch
from matplotlib import pyplot as plt

from eber import EBERClassifier, ERMClassifier
from eber.evaluation.metrics import score

# %%
# The images
# ----------
# The latent z of a row is the bar and the background together. Hospitals differ in how often bar and background go
# together, and in nothing else. There is so much noise that the bar is hard to see, for us too. In the new hospital
# it is the other way round than in most of the known ones.

TOGETHER = {"A": 0.95, "B": 0.85, "C": 0.7, "D": 0.15}  # p(bright background | standing bar), and dark for lying ones


def draw_images(n, together, seed):
    """Images (n, 1, 8, 8), and whether the bar stands; labels are wrong in one case of twenty."""
    rng = np.random.default_rng(seed)
    stands = rng.random(n) < 0.5
    bright = np.where(rng.random(n) < together, stands, ~stands)
    images = np.where(bright, 0.6, -0.6)[:, None, None] + rng.normal(scale=0.6, size=(n, 8, 8))
    for image, upright, place in zip(images, stands, rng.integers(1, 7, n)):
        bar = image[:, place] if upright else image[place]
        bar += 0.7
    label = np.where(rng.random(n) < 0.05, ~stands, stands)
    return images[:, None].astype(np.float32), np.where(label, "standing", "lying")


parts = [draw_images(500, together, seed) for seed, together in enumerate(TOGETHER.values())]
X, y = np.concatenate([images for images, _ in parts]), np.concatenate([labels for _, labels in parts])
hospital = np.repeat(list(TOGETHER), 500)
X_new, y_new = draw_images(1000, 0.05, seed=9)

# %%
# The network
# -----------
# A function that is told the shape of a row and the width that is asked for, and returns a module.


def small_network(input_shape, representation_dim):
    """Two filters' worth of convolution, and what they saw at the most."""
    channels = input_shape[0]
    return torch.nn.Sequential(
        torch.nn.Conv2d(channels, 8, kernel_size=5),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(8, 32),
        torch.nn.ReLU(),
        torch.nn.Linear(32, representation_dim),
    )


settings = {
    "featurizer": small_network,
    "representation_dim": 16,
    "epochs": 25,
    "learning_rate": 3e-3,
    "random_state": 0,
}
eber = EBERClassifier(**settings).fit(X, y, environments=hospital)
erm = ERMClassifier(**settings).fit(X, y)
adapted = eber.adapt(X_new)  # the images of the new hospital, without their labels

rules = {"ERM": erm, "EBER": eber, "EBER, adapted": adapted}
results = {
    name: score(y_new, rule.predict_proba(X_new), eber.classes_, ["nll", "accuracy"]) for name, rule in rules.items()
}
for name, values in results.items():
    print(f"{name:<14} NLL {values['nll']:.3f}  accuracy {values['accuracy']:.3f}")

# %%
# All three networks have seen the same images. ERM learned to trust the background, which goes with the label in three
# of four hospitals; in the new one that is wrong. EBER, told the hospitals, errs less, and once it has seen the new
# hospital's images, without their labels, it gives most of the weight to hospital D, the only one that is like it.

print("mixture of hospitals after adapting:", dict(zip("ABCD", adapted.environment_mixture().round(2).tolist())))

figure = plt.figure(figsize=(9.5, 3.4), layout="constrained")
pictures, chart = figure.subfigures(1, 2, width_ratios=(1, 1.2))
for axes, row in zip(pictures.subplots(2, 3).ravel(), [0, 2, 5, 1501, 1503, 1505]):
    axes.imshow(X[row, 0], cmap="gray", vmin=-2, vmax=2.5)
    axes.set_title(f"{hospital[row]}: {y[row]}", fontsize="small")
    axes.set_axis_off()
axes = chart.subplots()
bars = axes.barh(list(results), [values["nll"] for values in results.values()], color=["#7d8590", "#0072B2", "#009E73"])
axes.bar_label(bars, fmt="%.3f", padding=3)
axes.set(xlabel="NLL in the new hospital (lower is better)")
axes.margins(x=0.15)
axes.invert_yaxis()
axes.spines[["top", "right"]].set_visible(False)
plt.show()
