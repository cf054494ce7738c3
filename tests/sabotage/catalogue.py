"""All sabotages, section after section of the page."""

from tests.sabotage import (
    changed_data,
    determinism,
    execution,
    finished,
    memory,
    numbers,
    refusals,
    saved_models,
    statistics,
    surroundings,
    writes,
)

SECTIONS = (
    changed_data,
    determinism,
    finished,
    writes,
    memory,
    refusals,
    execution,
    saved_models,
    numbers,
    statistics,
    surroundings,
)
SABOTAGES = tuple(sabotage for section in SECTIONS for sabotage in section.SABOTAGES)
