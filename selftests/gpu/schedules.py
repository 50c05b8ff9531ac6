# SPDX-License-Identifier: GPL-2.0-only
"""What a schedule file (docs/schedule.md) has each rank send to which other."""

import collections


def weights(words):
    """As docs/schedule.md has them: 3x16 is sixteen times the weight 3."""
    for word in words:
        weight, _, times = word.partition("x")
        yield from [int(weight)] * int(times or 1)


def chunks(lines, ranks):
    """The parts of the size of all chunks, by their number."""
    parts = []
    for line in lines:
        words = line.split()
        if words[:1] == ["split"]:
            each = list(weights(words[1:]))
            parts += [w / sum(each) for w in each]
        if words[:1] == ["shard"]:
            each = list(weights(words[2:]))
            parts += [w / sum(each) / ranks for w in each]
    return parts


def hops_of(text, ranks, size):
    """{(rank, rank): bytes} of one operation, from the text of a schedule
    without brackets."""
    lines = text.splitlines()
    parts = chunks(lines, ranks)
    hops = collections.Counter()
    for line in lines:
        verb, *words = line.split() or [""]
        if verb not in ("copy", "reduce"):
            continue
        for path in words[1:]:
            stops = [int(stop) for stop in path.split(">")]
            for way in zip(stops, stops[1:]):
                hops[way] += size * parts[int(words[0])]
    return {way: round(n) for way, n in hops.items()}
