"""AnnData (.h5ad): the columns of `obs`, and `X` with a column for each variable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from eber.tables.readers import protocol
from eber.tables.readers.protocol import Format, Rows, naming_reader, never, require_extra, require_path
from eber.tables.readers.whole import whole_rows
from eber.tables.reading import Reading

NAMES = "obs_name"
"""The column of what AnnData calls the names of observations, unless it has a name of its own."""


def _open(part: Any, reading: Reading) -> Rows:
    anndata = require_extra("anndata", "anndata", "AnnData")
    path = require_path(part, "AnnData")
    with naming_reader(path, "AnnData"):
        data = anndata.read_h5ad(path, backed="r")
        n_rows, n_variables = data.shape
    protocol.require_room(path, 8 * n_rows * (n_variables + data.obs.shape[1]), protocol.memory_limit())
    with naming_reader(path, "AnnData"):
        values = data.X[:] if n_variables else np.empty((n_rows, 0))
        if hasattr(values, "toarray"):
            values = values.toarray()
        obs = data.obs.copy()
        variables = [str(name) for name in data.var_names]
        data.file.close()
    names = pd.DataFrame({str(obs.index.name or NAMES): np.asarray(obs.index, dtype=object)})
    features = pd.DataFrame(np.asarray(values), columns=variables)
    return whole_rows(pd.concat([names, obs.reset_index(drop=True), features], axis=1))


FORMAT = Format("AnnData", (".h5ad",), never, _open, keeps=False)
