# SPDX-License-Identifier: MIT
"""Puts the page's style and scripts into a C file.

    embed.py OUTPUT report.css SCRIPT.js …

Comments on lines of their own and indentation are left out; the scripts become one, in a function
of their own.
"""
import pathlib
import sys


def shrink(text, is_style):
    lines = []
    for line in text.splitlines():
        line = line.strip()
        if line and not line.startswith("/*" if is_style else "//"):
            lines.append(line)
    return "\n".join(lines)


def literal(name, text):
    rows = []
    for line in text.splitlines(keepends=True):
        data = line.encode()
        for start in range(0, len(data), 64):
            rows.append('    "' + "".join(f"\\{byte:03o}" if byte < 32 or byte > 126
                                          or chr(byte) in '"\\?' else chr(byte)
                                          for byte in data[start:start + 64]) + '"')
    return f"const char {name}[] =\n" + "\n".join(rows) + ";\n"


output, style, *scripts = map(pathlib.Path, sys.argv[1:])
script = "(() => {\n'use strict';\n" + "\n".join(shrink(path.read_text(), False)
                                                 for path in scripts) + "\n})();"
if "</script" in script or "</style" in style.read_text():
    sys.exit("embed.py: the script or style would end its element")
output.write_text("/* SPDX-License-Identifier: MIT */\n/* Made by web/embed.py. */\n"
                  "#include \"report/html.h\"\n\n"
                  + literal("web_style", shrink(style.read_text(), True))
                  + literal("web_script", script))
