# SPDX-License-Identifier: MIT
"""Puts the page's style and scripts into a C file.

    embed.py OUTPUT report.css SCRIPT.js …

Comments, indentation and blanks that mean nothing are left out; the scripts
become pieces, of which a page has those that it needs, in one function.  Lines stay, so that no
statement needs its end guessed.
"""
import pathlib
import re
import sys

# The piece that a script belongs to; the others begin the function, main.js ends it.
PIECES = {"frames.js": "flames", "flame.js": "flames", "profile.js": "flames", "live.js": "live", "main.js": "end"}

# What may hold blanks that mean something: strings, templates, regular expressions (here only after
# an opening parenthesis, a comma or a colon).  Comments are looked for at the same time: they may hold
# an apostrophe, and strings two slashes.
KEPT = re.compile(r"""(?P<comment>[ ]//[^\n]*)|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`|(?<=[(,:])/(?:\\.|[^/\\])+/""")


def lines_of(text, comment):
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(comment))


def shrink_script(text):
    text = lines_of(text, "//")
    parts, last = [], 0
    for kept in KEPT.finditer(text):
        parts += [squeeze(text[last:kept.start()]), "" if kept["comment"] else kept[0]]
        last = kept.end()
    return "".join(parts + [squeeze(text[last:])])


def squeeze(code):
    """Blanks around what is no word; '+ +' and '- -' are not used in the scripts."""
    return re.sub(r" *([=<>!&|?:;,(){}\[\]*/%+-]+) *", r"\1", code)


def shrink_style(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r" ?([{};,>]) ?", r"\1", text)
    return re.sub(r"(?<=[a-z-]): ", ":", text).replace(";}", "}").strip()


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
pieces = {"begin": "(() => {\n'use strict';\n", "flames": "", "live": "", "end": ""}
for path in scripts:
    pieces[PIECES.get(path.name, "begin")] += shrink_script(path.read_text()) + "\n"
pieces["end"] += "})();"
if "</script" in "".join(pieces.values()) or "</style" in style.read_text():
    sys.exit("embed.py: the script or style would end its element")
output.write_text("/* SPDX-License-Identifier: MIT */\n/* Made by web/embed.py. */\n"
                  "#include \"report/html/html.h\"\n\n"
                  + literal("web_style", shrink_style(style.read_text()))
                  + "".join(literal(f"web_script_{name}", text) for name, text in pieces.items()))
