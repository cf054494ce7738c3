"""The sections on a new environment, in words."""

from __future__ import annotations

from eber.compare.few_labels import LabelGain, RateCheck
from eber.report.new_environment import distance_chart, say_checks, say_gains


def checks(inside: int, n: int) -> list[RateCheck]:
    return [RateCheck(f"h{j}", 50, 0.3, 0.2, 0.4, 0.3 if j < inside else 0.9) for j in range(n)]


def test_the_check_is_said_with_how_little_it_says() -> None:
    said = say_checks(checks(7, 8), "sepsis = 1")
    assert "the share of sepsis = 1 lay within its 90 % interval in 7 of 8 held-out environments" in said
    assert "no sign against it" in said
    assert "47 % to 100 % of all" in said
    assert "fewer than it should be" in say_checks(checks(3, 8), "sepsis = 1")


def test_labels_are_said_to_help_only_where_that_is_clear() -> None:
    helps = LabelGain(30, 8, 0.43, 0.40, -0.05, -0.01, 7, 0.1)
    unclear = LabelGain(10, 8, 0.43, 0.42, -0.03, 0.01, 5, 0.2)
    harms = LabelGain(10, 8, 0.43, 0.46, 0.01, 0.05, 1, 0.8)
    assert say_gains([unclear, helps], "ERM").startswith("30 labelled rows of the new environment already help ERM")
    assert "30 labels lower its NLL from 0.430 to 0.400 on average, and in 7 of 8 held-out" in say_gains([helps], "ERM")
    assert say_gains([unclear], "ERM").startswith("There is no telling whether labels help ERM here")
    assert say_gains([harms], "ERM").startswith("Not for ERM: labels made it worse here")
    assert "rows enough" in say_gains([], "ERM")


def test_the_chart_has_its_numbers() -> None:
    chart = distance_chart(checks(1, 2), "ERM", "sepsis = 1")
    assert chart.lines[0] == ("h0", "50", "0.300", "0.200 to 0.400", "0.300", "yes")
    assert chart.lines[1][-1] == "no"
