"""A small server: a model that its parent process has loaded and asked, with two threads, before it forks."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch

from eber import EBERClassifier

torch.set_num_threads(2)
MODEL = EBERClassifier.load(os.environ["EBER_SERVED_MODEL"])
ROWS = np.load(os.environ["EBER_SERVED_ROWS"])
MODEL.predict_proba(ROWS)


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Probabilities of all rows, and who has computed them."""
    answer = {"proba": MODEL.predict_proba(ROWS).tolist(), "parent": os.getppid()}
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(answer).encode()]
