#!/usr/bin/python3
"""Validates JSON texts by JSON Schemas (draft 2020-12) until standard input ends.

Each line of standard input names a file of lines `<schema file>\\t<JSON text>`. The verdicts go to a file of the same name with
`.out` appended, one line each: empty if the text is valid, else the place and the reason. After each file it prints `done`.
"""

import json
import sys

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError, best_match

import re


def pattern(validator, wanted, instance, schema):
    """Matches `$` as in ECMA 262: only at the end of the text, not before a final line break."""
    ours = re.sub(r"\[(?:\\.|[^\]])*\]|\$", lambda part: r"\Z" if part[0] == "$" else part[0], wanted)
    if validator.is_type(instance, "string") and not re.search(ours, instance):
        yield ValidationError(f"{instance!r} does not match {wanted!r}")


Validator = validators.extend(Draft202012Validator, {"pattern": pattern})
known = {}


def validator(file):
    if file not in known:
        with open(file, encoding="utf-8") as text:
            schema = json.load(text)
        Validator.check_schema(schema)
        known[file] = Validator(schema)
    return known[file]


for line in sys.stdin:
    name = line.rstrip("\n")
    with open(name, encoding="utf-8", newline="\n") as cases, open(name + ".out", "w", encoding="utf-8") as out:
        for case in cases:
            file, _, text = case.rstrip("\n").partition("\t")
            error = best_match(validator(file).iter_errors(json.loads(text)))
            words = "" if error is None else f"{'/'.join(map(str, error.absolute_path))}: {error.message}"
            print(words.encode("ascii", "backslashreplace").decode()[:300].replace("\n", " "), file=out)
    print("done", flush=True)
