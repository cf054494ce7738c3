"""The page of methods says what is declared."""

from __future__ import annotations

from pathlib import Path

import pytest

from eber.methods import BUILT_IN
from eber.methods.method import PENALTY_WEIGHTS, Method

PAGE = (Path(__file__).parents[2] / "docs" / "methods.md").read_text()


@pytest.mark.parametrize("method", BUILT_IN, ids=lambda method: method.name)
def test_every_method_has_its_line(method: Method) -> None:
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {method.name} | {method.purpose} |")]
    assert (method.paper or "–") in line
    if method.penalty_parameter:
        weights = ", ".join(f"{weight:g}" for weight in method.penalty_grid or PENALTY_WEIGHTS)
        assert f"`{method.penalty_parameter}` {weights}" in line
    if method.is_network:
        assert f"`{method.source.split(':')[1]}`" in line
        assert sum(line.startswith(f"| {method.name} |") for line in PAGE.splitlines()) == 2, "and an objective"
