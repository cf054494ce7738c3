"""One run of the fuzzer: ``python -m tests.trust.fuzzing.fuzz TARGET SCRATCH [options of libFuzzer] CORPUS``.

The first byte of an input says which parser reads the rest. A finding is noted and the run goes on; only what ends the
process (a crash of native code, too much memory or time) ends the run, and is left to the process that started it.
"""

from __future__ import annotations

import json
import random
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

import atheris
import numpy as np

with atheris.instrument_imports(include=["eber", "openpyxl"]):
    from tests.trust.fuzzing.parsers import Parser
    from tests.trust.fuzzing.targets import TARGETS, kept

from tests.trust.mutations import changed_document, mutants

FINDINGS = "findings"


class Session:
    """The parsers of a target, and what was found.

    Parameters
    ----------
    target : str
        One of `TARGETS`.
    scratch : Path
        Gets a folder for the parsers' files, and one for the findings.
    """

    def __init__(self, target: str, scratch: Path) -> None:
        place = scratch / "files"
        place.mkdir(parents=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.parsers: dict[str, Parser] = TARGETS[target](place)
        self.names = list(self.parsers)
        self.target, self.findings = target, scratch.parent / FINDINGS
        self.findings.mkdir(exist_ok=True)

    def seed(self, corpus: Path) -> None:
        """Good inputs and kept ones, in the form that the fuzzer works on."""
        corpus.mkdir(exist_ok=True)
        inputs = [(name, good) for name, parser in self.parsers.items() for good in parser.good]
        inputs += [(name, path.read_bytes()) for name, path in kept(self.target)]
        for number, (name, content) in enumerate(inputs):
            (corpus / f"seed-{number}").write_bytes(bytes([self.names.index(name)]) + content)

    def attempt(self, data: bytes) -> None:
        """One input; a finding is noted under what was raised and where, the first of its kind with its input."""
        if not data:
            return
        name = self.names[data[0] % len(self.names)]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", UserWarning)  # our own remarks
                self.parsers[name].attempt(data[1:])
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            cause = error.__context__ or error
            frames = [frame for frame in traceback.extract_tb(cause.__traceback__) if "/eber/" in frame.filename]
            where = f"{Path(frames[-1].filename).stem}-{frames[-1].lineno}" if frames else "answer"
            place = self.findings / f"{name}-{type(cause).__name__}-{where}"
            if not place.exists():
                place.write_bytes(data[1:])
                place.with_name(f"{place.name}.txt").write_text("".join(traceback.format_exception(error)))
                print(f"FINDING {place.name}", flush=True)

    def mutate(self, data: bytes, max_size: int, seed: int) -> bytes:
        """The fuzzer's own changes, or such as keep a document a document, and accidents of files."""
        rng = random.Random(seed)
        selector, content = data[:1] or b"\0", data[1:]
        numbers = np.random.default_rng(seed)
        parser = self.parsers[self.names[selector[0] % len(self.names)]]
        if parser.is_json and rng.random() < 0.7:
            changed = _changed_json(content, numbers)
        elif rng.random() < 0.3:
            changed = next(mutants(content, 1, numbers))
        else:
            changed = atheris.Mutate(content, max_size - 1)
        return selector + changed[: max_size - 1]


def _changed_json(content: bytes, rng: np.random.Generator) -> bytes:
    try:
        document: Any = json.loads(content)
        for _ in range(rng.integers(1, 3)):
            document = changed_document(document, rng)
        return json.dumps(document).encode()
    except (ValueError, RecursionError, IndexError):
        return content


if __name__ == "__main__":
    program, target, scratch, *options, corpus = sys.argv
    session = Session(target, Path(scratch))
    session.seed(Path(corpus))
    atheris.Setup([program, *options, corpus], session.attempt, custom_mutator=session.mutate)
    atheris.Fuzz()
