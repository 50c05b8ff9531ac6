#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Compares the layout of all uapi headers (sizes, offsets, constants; for 64
and 32 bit) with docs/abi/layout.txt; --write stores what it is now. Needs a
compiler for both, and objcopy."""

import argparse
import difflib
import glob
import os
import re
import struct
import subprocess
import sys
import tempfile

TREE = os.path.normpath(os.path.join(os.path.dirname(__file__), "..", ".."))
HEADERS = os.path.join(TREE, "include", "uapi")
STORED = os.path.join(TREE, "docs", "abi", "layout.txt")
ADVICE = """\
The interface to user space is not what docs/abi/layout.txt says. Programs that
exist depend on it: what is there must stay, new members go to the end of
structures that begin with a size, new constants get new values (docs/abi).
If it was changed on purpose, and in one of these ways, store it with
    tools/lab/in-root -r full selftests/uapi/frozen.py --write
and commit the file with the change. "-" is what was stored, "+" what is."""


def without_comments(text):
    return re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", " ", text, flags=re.S))


def members(body):
    """Names of the members of a structure, also of anonymous unions in it."""
    body = re.sub(r"\b(struct|union)\s*\{", "", body).replace("}", "")
    for declaration in body.split(";"):
        found = re.search(r"(\w+)\s*(\[[^]]*\])?\s*$", declaration.strip())
        if found and " " in " ".join(declaration.split()):
            yield found.group(1)


def structures(text):
    """(name, members) of each structure, in the order of the file."""
    for start in re.finditer(r"^struct (\w+)\s*\{", text, flags=re.M):
        depth, at = 1, start.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        yield start.group(1), list(members(text[start.end():at - 1]))


def constants(text):
    """Macros without arguments that have a value, and members of enums."""
    for line in re.sub(r"\\\n", " ", text).split("\n"):
        found = re.match(r"#define\s+(\w+)\s+(.+)", line)
        if found:
            yield found.group(1)
    for body in re.findall(r"\benum\s*\w*\s*\{([^}]*)\}", text):
        for name in re.findall(r"^\s*(\w+)", body, flags=re.M):
            # The number of them grows with what is added.
            if not re.search(r"_MAX$", name):
                yield name


def compiled(header, bits, declarations):
    """What the declarations put into the section "facts". Nothing is run: a
    machine that builds for 32 bit need not have a kernel for it."""
    source = "\n".join(["#include <stddef.h>", f"#include <{header}>",
                        "#define FACTS "
                        '__attribute__((section("facts"), used)) static const',
                        "#define TEXT(x) _Generic((x), char *: 1, "
                        "const char *: 1, default: 0)"] + declarations + [""])
    with tempfile.TemporaryDirectory() as where:
        compiled_to = os.path.join(where, "facts.o")
        section = os.path.join(where, "facts")
        subprocess.run(["cc", f"-m{bits}", "-w", "-std=gnu11", "-I" + HEADERS,
                        "-c", "-o", compiled_to, "-xc", "-"], check=True,
                       text=True, input=source)
        subprocess.run(["objcopy", "-O", "binary", "-j", "facts", compiled_to,
                        section], check=True)
        with open(section, "rb") as f:
            return f.read()


def numbers(header, bits, expressions):
    """Values of constant expressions."""
    words = compiled(header, bits,
                     ["FACTS unsigned long long numbers[] = {"] +
                     [f"\t(unsigned long long)({e})," for e in expressions] +
                     ["};"])
    return struct.unpack(f"<{len(expressions)}Q", words)


def shown(field, value):
    return field.format(value) if value else "0"


def facts(header, bits):
    """One line for each fact, as text."""
    with open(os.path.join(HEADERS, header)) as f:
        text = without_comments(f.read())
    lines, wanted = [header], []
    for name, fields in structures(text):
        lines.append(f"struct {name} size {{}}")
        wanted.append(f"sizeof(struct {name})")
        for f in fields:
            lines.append(f"\t{f} offset {{}} size {{}}")
            wanted += [f"offsetof(struct {name}, {f})",
                       f"sizeof(((struct {name} *)0)->{f})"]
    names = list(constants(text))
    texts = [name for name, is_text in zip(names, numbers(
        header, bits, [f"TEXT({name})" for name in names] or ["0"]))
        if is_text]
    for name in names:
        if name in texts:
            value = compiled(header, bits, [f"FACTS char text[] = {name};"])
            lines.append(f'{name} "{value.rstrip(bytes(1)).decode()}"')
        else:
            lines.append(f"{name} {{:#x}}")
            wanted.append(name)
    values = iter(numbers(header, bits, wanted))
    return "".join(re.sub(r"\{[^}]*\}", lambda field: shown(
        field[0], next(values)), line) + "\n" for line in lines)


def all_facts(bits):
    headers = sorted(glob.glob(os.path.join(HEADERS, "linux", "*.h")))
    return "\n".join(facts(os.path.relpath(h, HEADERS), bits)
                     for h in headers)


def differences(old, new, what):
    return list(difflib.unified_diff(old.splitlines(), new.splitlines(),
                                     "docs/abi/layout.txt", what, n=2,
                                     lineterm=""))


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--write", action="store_true")
    write = args.parse_args().write
    wide, narrow = all_facts(64), all_facts(32)
    differing = differences(wide, narrow, "32 bit")
    if differing:
        print("\n".join(["Layouts differ between 64 and 32 bit; use __u64 "
                         "and __aligned_u64, no pointers and no long:"]
                        + differing), file=sys.stderr)
        return 1
    if write:
        with open(STORED, "w") as f:
            f.write(wide)
        return 0
    with open(STORED) as f:
        differing = differences(f.read(), wide, "include/uapi")
    if differing:
        print("\n".join([ADVICE] + differing), file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
