"""Numbers and lists as sentences and tables have them: estimates, p-values, differences, intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence

from eber.evaluation.metrics import Quantity

LEVEL = 0.05
"""p-values below it are called significant."""
MAX_DIGITS = 8
"""Of a p-value that is as good as the level; nobody needs more."""


def format_estimate(quantity: Quantity, mean: float, sd: float) -> str:
    """A mean and its standard deviation, where there is one."""
    return quantity.format(mean) if math.isnan(sd) else f"{quantity.format(mean)} ± {quantity.format(sd)}"


def format_p(p: float) -> str:
    """A p-value with three decimals, and more where only they show on which side of `LEVEL` it is; a dash for none."""
    if math.isnan(p):
        return "–"
    if p < 0.0005:
        return "< 0.001"
    digits = 3
    while float(f"{p:.{digits}f}") == LEVEL != p and digits < MAX_DIGITS:
        digits += 1
    return f"{p:.{digits}f}"


def format_signed(value: float) -> str:
    """A difference with its sign and three decimals; a dash where there is none."""
    return "–" if math.isnan(value) else f"{value:+z.3f}".replace("-", "−")


def format_interval(low: float, high: float) -> str:
    """An interval of a difference; a dash where there is none."""
    return "–" if math.isnan(low) or math.isnan(high) else f"{format_signed(low)} to {format_signed(high)}"


def listed(items: Sequence[str]) -> str:
    """One, two and three; nothing for none."""
    return ", ".join(items[:-1]) + " and " + items[-1] if len(items) > 1 else "".join(items)


def p_with_sign(p: float) -> str:
    """A p-value as it stands behind "p": < 0.001, or = 0.012."""
    text = format_p(p)
    return text if text.startswith("<") else f"= {text}"
