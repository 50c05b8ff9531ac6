# SPDX-License-Identifier: GPL-2.0-only
"""Bytes that a schedule of an all-reduce or another collective of one shard
(docs/schedule.md) moves from rank to rank, from its text alone: what counters of
the fabric are compared with. Used by reduction.py."""

import re

CUT = 64		# chunks begin at multiples of it ...
LARGE = 4096		# ... if there are as many bytes for each


class BadSchedule(ValueError):
    """A statement that this does not know."""


def _weights(words):
    """`2 3x16` is one chunk of weight 2 and sixteen of weight 3."""
    weights = []
    for word in words:
        weight, _, times = word.partition("x")
        weights += [int(weight)] * int(times or 1)
    return weights


def _chunks(weights, count, size):
    """Bytes of each chunk of `count` elements of `size` bytes."""
    total, done, ends = sum(weights), 0, [0]
    step = CUT // size if count * size >= LARGE * len(weights) else 1
    for weight in weights:
        done += weight
        end = count * done // total
        ends.append(count if done == total else end // step * step)
    return [(b - a) * size for a, b in zip(ends, ends[1:])]


def _numbers(text):
    """`0-2,7` is 0, 1, 2 and 7."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def traffic(text, count, size):
    """{(from, to): bytes} of the schedule for `count` elements of `size`
    bytes."""
    weights, chunks, moved = [1], (), {}
    for line in text.splitlines():
        words = re.sub(r"[][]", " ", line.partition("#")[0]).split()
        if not words or words[0] in ("fabrex-schedule", "collective", "ranks",
                                     "root"):
            continue
        if words[0] == "split":
            weights = _weights(words[1:])
            continue
        if words[0] in ("copy", "reduce"):
            chunks, words = tuple(_numbers(words[1])), words[2:]
        elif ">" not in words[0]:
            raise BadSchedule(f"unknown statement: {line}")
        sizes = _chunks(weights, count, size)
        for path in words:
            hops = [int(rank) for rank in path.split(">")]
            for hop in zip(hops, hops[1:]):
                moved[hop] = moved.get(hop, 0) + sum(sizes[c] for c in chunks)
    return moved
