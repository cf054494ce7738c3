"""Text from files that others made, as it stands in errors and in names of files."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eber.io.text import MAX_CHARACTERS, file_name, shortened


@given(st.text())
def test_a_file_name_leads_nowhere_else(text: str) -> None:
    """No separator, no blank, no character that a file system refuses."""
    assert not set(file_name(text)) - set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._=-")
    assert file_name(file_name(text)) == file_name(text)


def test_what_may_stand_in_a_file_name_stays() -> None:
    assert file_name("rho=0.15, V-REx / seed 3") == "rho=0.15-V-REx-seed-3"


@given(st.text(max_size=400))
def test_a_shown_value_is_whole_or_cut_with_a_word_of_it(value: str) -> None:
    shown = shortened(value)
    assert shown == repr(value) or (shown.endswith("...") and repr(value).startswith(shown[:-3]))
    assert len(shown) <= MAX_CHARACTERS + 3
    assert shown.isprintable()
