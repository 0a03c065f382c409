#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lists every string of prose in the C sources, so that a person can read them in one go.

    tests/tools/strings.py [PATH…]      file:line, then the string as the program holds it

Adjacent literals are joined, as the compiler joins them.  A string counts as prose when it holds
two words with a space between them.  The lint suite uses strings_of() to look for wordings that
CONTRIBUTING.md ("How we write") replaces.
"""
import os
import re
import sys

TOKEN = re.compile(
    r'(?P<comment>/\*.*?\*/|//[^\n]*)'
    r'|(?P<string>"(?:\\.|[^"\\\n])*")'
    r"|(?P<char>'(?:\\.|[^'\\\n])*')"
    r'|(?P<space>\s+)'
    r'|(?P<format>PRI[a-zA-Z0-9]+)'
    r'|(?P<other>.)', re.S)
PROSE = re.compile(r'[A-Za-z%\'][\w%.\',;:?!)-]* [\w%\'(]*[a-zA-Z]')


class String:
    """One literal, or several that the compiler joins."""

    def __init__(self, path, line, start):
        self.path, self.line, self.start, self.end, self.text = path, line, start, start, ""


def strings_in(path, source):
    """Every joined literal of a source, #include lines left out."""
    current, line = None, 1
    for token in TOKEN.finditer(source):
        kind, text = token.lastgroup, token.group()
        if kind == "string":
            before = source[source.rfind("\n", 0, token.start()) + 1:token.start()]
            if before.strip() != "#include":
                if current is None:
                    current = String(path, line, token.start())
                current.text += text[1:-1]
                current.end = token.end()
        elif kind == "format" and current is not None:
            current.text += f"<{text}>"
            current.end = token.end()
        elif kind not in ("space", "comment"):
            if current is not None:
                yield current
            current = None
        line += text.count("\n")
    if current is not None:
        yield current


def is_prose(text):
    return bool(PROSE.search(text))


def sources(paths):
    for path in paths:
        if os.path.isfile(path):
            yield path
            continue
        for folder, names, files in os.walk(path):
            names.sort()
            for name in sorted(files):
                if name.endswith((".c", ".h")):
                    yield os.path.join(folder, name)


def strings_of(paths):
    for path in sources(paths):
        with open(path, encoding="utf-8") as file:
            yield from (s for s in strings_in(path, file.read()) if is_prose(s.text))


def main():
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    paths = sys.argv[1:] or [os.path.join(top, "src"), os.path.join(top, "workloads")]
    for string in strings_of(paths):
        print(f"{os.path.relpath(string.path)}:{string.line}: {string.text}")


if __name__ == "__main__":
    main()
