"""``python -m benchmarks.real_tables fit`` fits, ``... show`` prints the tables of docs/real-tables.md, ``... labels``
those of docs/new-environments.md.

Fits that are in the output folder are not made again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.real_tables.fits import METHODS, fit_and_keep
from benchmarks.real_tables.package_tables import PACKAGE_TABLES
from benchmarks.real_tables.show import show, show_labels
from benchmarks.real_tables.tables import CONFIRMATION, DEVELOPMENT, holdouts, load, variant_holdouts
from benchmarks.real_tables.variants import BOOSTED_MIXTURE, VARIANTS

ROWS = {
    "methods": METHODS,
    "variants": (*VARIANTS, BOOSTED_MIXTURE),
    "boosting": ("Gradient boosting", BOOSTED_MIXTURE),
}


def main() -> None:
    """Fit, show, or give labels."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real_tables", description=__doc__)
    parser.add_argument("command", choices=["fit", "show", "labels"])
    parser.add_argument("--data", type=Path, required=True, help="folder that holds tables, sdss and sepsis")
    parser.add_argument("--out", type=Path, default=Path("bench/real-tables"))
    parser.add_argument("--tables", nargs="+", default=[*DEVELOPMENT, *CONFIRMATION, *PACKAGE_TABLES])
    parser.add_argument("--rows", choices=ROWS, default="methods", help="what to fit")
    options = parser.parse_args()
    if options.command == "show":
        show(options.out, options.data, options.tables)
        return
    if options.command == "labels":
        show_labels(options.out, options.data, options.tables)
        return
    for name in options.tables:
        table = load(name, options.data)
        for held_out in (variant_holdouts if options.rows == "variants" else holdouts)(name, table):
            fit_and_keep(options.out, name, table, held_out, ROWS[options.rows])


if __name__ == "__main__":
    main()
