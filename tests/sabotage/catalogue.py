"""All sabotages, section after section of the page."""

from tests.sabotage import (
    determinism,
    execution,
    finished,
    memory,
    numbers,
    refusals,
    saved_models,
    statistics,
    tuning,
    writes,
)

SECTIONS = (determinism, finished, writes, memory, refusals, execution, saved_models, numbers, statistics, tuning)
SABOTAGES = tuple(sabotage for section in SECTIONS for sabotage in section.SABOTAGES)
