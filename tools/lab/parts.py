# SPDX-License-Identifier: GPL-2.0-only
"""Parts of a long check (the list is in the file parts), and what the KCSAN
kernel is for. Used by check.py."""

import os

HERE = os.path.dirname(os.path.abspath(__file__))

# Where threads of ours meet: rings, registration, events, reset, removal.
KCSAN = ("dma.", "gpu.churn", "gpu.revoke", "unplug.", "faults.",
         "coll.", "soak.")


def load():
    """{part: words}, in order; the last one takes what no other has."""
    found = {}
    with open(os.path.join(HERE, "parts"), encoding="ascii") as f:
        for line in f:
            words = line.partition("#")[0].partition("|")[0].split()
            if words:
                found[words[0]] = tuple(words[1:])
    return found


def part_of(name, parts=None):
    """The part that a scenario belongs to."""
    parts = parts or load()
    for part, words in parts.items():
        if any(word in name for word in words):
            return part
    return list(parts)[-1]


def chooser(part):
    """A function that says whether a scenario belongs to `part`; a number of
    how many ("2/7") does as well as a name."""
    parts = load()
    number, _, of = part.partition("/")
    if number.isdecimal() and of in ("", str(len(parts))) and \
            0 < int(number) <= len(parts):
        part = list(parts)[int(number) - 1]
    if part not in parts:
        raise KeyError(f"no part {part}; there are " + ", ".join(parts)
                       + f" (1/{len(parts)} to {len(parts)}/{len(parts)})")
    return lambda name: part_of(name, parts) == part
