"""Pictures of a fit and of what it says, by scikit-learn's convention: `from_estimator`, `plot(ax=...)`, `ax_`."""
