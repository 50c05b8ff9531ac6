# SPDX-License-Identifier: GPL-2.0-only
"""What a schedule file (docs/schedule.md) has each rank send to which other."""

import collections
import math


def weights(words):
    """As docs/schedule.md has them: 3x16 is sixteen times the weight 3."""
    for word in words:
        weight, _, times = word.partition("x")
        yield from [int(weight)] * int(times or 1)


def divisor(text, ranks):
    """Sizes that this divides have chunks of whole 64 bytes, which is what the
    limits of large chunks are rounded to."""
    sums = [sum(weights(words[1 if words[0] == "split" else 2:]))
            for words in map(str.split, text.splitlines())
            if words[:1] in (["split"], ["shard"])]
    return 64 * ranks * math.lcm(*sums)


def chunks(lines, ranks):
    """The parts of the size of all chunks, by their number."""
    words = [line.split() for line in lines]
    shards = 1
    if ["collective", "all-gather"] in words or \
       ["collective", "reduce-scatter"] in words:
        shards = ranks
    parts = []
    for line in words:
        if line[:1] == ["split"]:
            each = list(weights(line[1:]))
            parts += [w / sum(each) / shards for w in each] * shards
        if line[:1] == ["shard"]:
            each = list(weights(line[2:]))
            parts += [w / sum(each) / shards for w in each]
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
