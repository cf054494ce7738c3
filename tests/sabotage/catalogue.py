"""All sabotages, section after section of the page."""

from tests.sabotage import (
    determinism,
    execution,
    finished,
    memory,
    numbers,
    own_methods,
    refusals,
    saved_models,
    statistics,
    tables,
    tuning,
    workflow,
    writes,
)

SECTIONS = (
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
    tuning,
)
SABOTAGES = tuple(sabotage for section in SECTIONS for sabotage in section.SABOTAGES)
