# SPDX-License-Identifier: GPL-2.0-only
"""What the lab has to know of a topology file: hosts, slots, largest VRAM.
draco-emu is the parser that judges the file; see docs/topology.md."""

import re


def strip_comments(text):
    """The text without #, // and /* */ comments; strings are kept."""
    token = re.compile(r'"(?:\\.|[^"\\])*"|#[^\n]*|//[^\n]*|/\*.*?\*/', re.S)
    return token.sub(lambda m: m.group() if m.group()[0] == '"' else " ", text)


def groups(text, name):
    """The { } groups of the list `name`, as text."""
    m = re.search(r"(?<![\w.])" + name + r"\s*[=:]\s*\(", text)
    if not m:
        return []
    out, depth, start, at = [], 1, 0, m.end()
    while depth and at < len(text):
        c = text[at]
        if c in "({":
            if c == "{" and depth == 1:
                start = at + 1
            depth += 1
        elif c in ")}":
            depth -= 1
            if c == "}" and depth == 1:
                out.append(text[start:at])
        at += 1
    return out


def hosts(path):
    """[(name, slots, ports)] in the file's order."""
    with open(path) as f:
        text = strip_comments(f.read())
    out = []
    for group in groups(text, "hosts"):
        name = re.search(r'\bname\s*[=:]\s*"([^"]*)"', group)
        slots = re.search(r"\bslots\s*[=:]\s*(\d+)", group)
        ports = re.search(r"\bports\s*[=:]\s*[(\[]([^)\]]*)[)\]]", group)
        count = len(re.findall(r'"', ports.group(1))) // 2 if ports else 0
        if name:
            out.append((name.group(1), int(slots.group(1)) if slots else 16,
                        count))
    return out


def models(path):
    """{host: model of the switch that each of its ports is on}."""
    with open(path) as f:
        text = strip_comments(f.read())
    kind = {}
    for group in groups(text, "switches"):
        name = re.search(r'\bname\s*[=:]\s*"([^"]*)"', group)
        model = re.search(r'\bmodel\s*[=:]\s*"([^"]*)"', group)
        if name:
            kind[name.group(1)] = model.group(1) if model else "draco"
    out = {}
    for group in groups(text, "hosts"):
        name = re.search(r'\bname\s*[=:]\s*"([^"]*)"', group)
        ports = re.search(r"\bports\s*[=:]\s*[(\[]([^)\]]*)[)\]]", group)
        if name and ports:
            ends = re.findall(r'"([^":]*):\d+"', ports.group(1))
            out[name.group(1)] = [kind.get(end, "draco") for end in ends]
    return out


def vram(path):
    """Bytes of the largest endpoint memory in the file, 0 for none given."""
    unit = {"K": 10, "M": 20, "G": 30}
    with open(path) as f:
        text = strip_comments(f.read())
    found = re.findall(r'\bvram\s*[=:]\s*"(\d+)([KMG])"', text)
    return max((int(n) << unit[u] for n, u in found), default=0)
