"""Sets of methods that commands begin with, and those that are installed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eber.methods import BUILT_IN, default_methods, find_method, methods_named, paper_methods


def test_commands_begin_with_what_a_user_would_choose_among_and_experiments_with_the_papers_five() -> None:
    assert set(default_methods()) == {
        "No model", "Logistic regression", "Gradient boosting", "Random forest", "EBER", "ERM", "Pool"
    }  # fmt: skip
    assert paper_methods() == ("EBER", "ERM", "IRM", "V-REx", "Fishr")


def test_all_is_every_method_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [method.name for method in methods_named(["all", "ERM"])]
    assert names == [method.name for method in BUILT_IN if method.is_installed]
    absent = replace(find_method("XGBoost"), package="no_such_package")
    monkeypatch.setattr("eber.methods.finding.BUILT_IN", (*BUILT_IN[:5], absent))
    assert [method.name for method in methods_named(["ALL"])] == list(paper_methods())
    with pytest.raises(ValueError, match=r"XGBoost is not installed; .*pip install 'eber\[boosting\]'"):
        methods_named(["xgboost"])
