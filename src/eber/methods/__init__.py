"""The methods there are, each declared once: `compare`, `reproduce`, `fit`, model folders and help texts read it here.

To add one that comes with the library, add its entry to `built_in.py`. A method of one's own is any scikit-learn
classifier with `predict_proba`; `own.py` says how it comes in, and it is then found by its name like the others.

A declaration (`method.py`) is plain data that names its class, so that help texts need not import it, worker processes
and output folders can be handed it, and a report is written without running anybody's code.
"""

from eber.methods.built_in import BUILT_IN, NO_MODEL, POOL
from eber.methods.finding import (
    ALL,
    all_methods,
    default_methods,
    find_method,
    find_saved_class,
    methods_named,
    paper_methods,
    saved_name,
)
from eber.methods.method import PENALTY_WEIGHTS, Method, middle_weight
from eber.methods.own import ENTRY_POINTS, add_method, register_method

__all__ = [
    "ALL",
    "BUILT_IN",
    "ENTRY_POINTS",
    "NO_MODEL",
    "PENALTY_WEIGHTS",
    "POOL",
    "Method",
    "add_method",
    "all_methods",
    "default_methods",
    "find_method",
    "find_saved_class",
    "methods_named",
    "middle_weight",
    "paper_methods",
    "register_method",
    "saved_name",
]
