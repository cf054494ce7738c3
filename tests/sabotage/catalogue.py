"""All sabotages, section after section of the page."""

from tests.sabotage import (
    advice,
    changed_data,
    determinism,
    execution,
    finished,
    memory,
    numbers,
    own_methods,
    page,
    refusals,
    saved_models,
    statistics,
    surroundings,
    tables,
    terminal,
    tuning,
    workflow,
    writes,
)

SECTIONS = (
    changed_data,
    determinism,
    finished,
    writes,
    workflow,
    memory,
    refusals,
    tables,
    own_methods,
    execution,
    saved_models,
    numbers,
    statistics,
    surroundings,
    page,
    tuning,
    advice,
    terminal,
)
SABOTAGES = tuple(sabotage for section in SECTIONS for sabotage in section.SABOTAGES)
