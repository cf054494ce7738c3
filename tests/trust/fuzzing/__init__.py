"""Fuzzing that is guided by the lines that an input reaches: ``make fuzz`` (atheris, the extra ``fuzz``).

`parsers` says what is fuzzed, and knows nothing of the fuzzer; the default suite runs the kept files of
tests/trust/corpus through the same parsers.
"""
