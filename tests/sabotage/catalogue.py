"""All sabotages, section after section of the page."""

from tests.sabotage import (
    determinism,
    elsewhere,
    execution,
    finished,
    memory,
    numbers,
    own_methods,
    refusals,
    saved_models,
    statistics,
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
    own_methods,
    execution,
    saved_models,
    numbers,
    statistics,
    tuning,
    elsewhere,
)
SABOTAGES = tuple(sabotage for section in SECTIONS for sabotage in section.SABOTAGES)
