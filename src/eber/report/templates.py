"""The pages' templates."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def render(template: str, **values: Any) -> str:
    """A template of this package with its values; texts are escaped, and a value that is missing is an error."""
    environment = Environment(
        loader=PackageLoader("eber.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**values)
