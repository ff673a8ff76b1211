#!/usr/bin/env python3
"""Puts a defect of this folder into sources, wherever its place in them is.

Usage: apply.py FOLDER NAME     changes FOLDER/Sources by NAME.mutation; prints the files that it changed
       apply.py --check FOLDER  shows that each mutation of this folder has its place in FOLDER/Sources

A mutation has one or more edits. `find:` is followed by whole lines that the sources must have exactly once, in whatever file;
`replace:` by the lines that take their place. An `in:` before `find:` has a part of a line: the lines are looked for only in the
declaration or block that begins there. Indentation doesn't count. `kinds:` in the first line is for `dev/simulate --prove`.
"""

import pathlib
import re
import sys


def edits(mutation):
    """Yields (scope or None, lines to find, lines to put there)."""
    for edit in re.finditer(r"(?:^in: (.*)\n)?^find:\n(.*?)^replace:\n(.*?)(?=^in: |^find:\n|\Z)", mutation.read_text(), re.M | re.S):
        yield edit[1], edit[2].splitlines(), edit[3].splitlines()


def indentation(line):
    return line[: len(line) - len(line.lstrip())]


def declaration(lines, scope):
    """The ranges of lines from one that has `scope` to its closing brace."""
    for first, line in enumerate(lines):
        if scope in line:
            end = indentation(line) + "}"
            yield range(first, next((n for n in range(first + 1, len(lines)) if lines[n].startswith(end)), len(lines)))


def apply(mutation, texts):
    """Applies a mutation to {path: lines} and returns the paths that it changes."""
    changed = set()
    for scope, find, replace in edits(mutation):
        wanted, places = [line.strip() for line in find], []
        for path, lines in texts.items():
            for part in [range(len(lines))] if scope is None else declaration(lines, scope):
                stripped = [lines[n].strip() for n in part]
                places += [(path, part.start + n) for n in range(len(part)) if stripped[n : n + len(wanted)] == wanted]
        if not wanted or len(places) != 1:
            sys.exit(f"{mutation.name}: its lines are {len(places)} times in the sources, not once: {find[:1]}")
        path, first = places[0]
        lines, margin = texts[path], len(indentation(find[0]))
        indent = indentation(lines[first])
        lines[first : first + len(find)] = [indent + line[margin:] if line else line for line in replace]
        changed.add(path)
    if not changed:
        sys.exit(f"{mutation.name}: nothing to find")
    return changed


def main(arguments):
    if len(arguments) != 2 or arguments[0] in ("-h", "--help"):
        sys.exit(__doc__.strip())
    here, is_check = pathlib.Path(__file__).parent, arguments[0] == "--check"
    package = pathlib.Path(arguments[1 if is_check else 0])
    texts = {path: path.read_text().split("\n") for path in sorted(package.glob("Sources/**/*.swift"))}
    if is_check:
        for mutation in sorted(here.glob("*.mutation")):
            apply(mutation, {path: list(lines) for path, lines in texts.items()})
        return
    for path in sorted(apply(here / f"{arguments[1]}.mutation", texts)):
        path.write_text("\n".join(texts[path]))
        print(path.relative_to(package))


main(sys.argv[1:])
