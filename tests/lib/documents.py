# SPDX-License-Identifier: MIT
"""The commands that README.md and docs/ print, and a directory in which they can be run."""
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess

from harness import ASSAY, ROOT

PROGRAMS = r"(?:assay(?:-\w+)?|\./dev|cc|cd|docker|echo|export|for|git|parallel|python3|seq|sudo)\b"
# FILE, [options], a|b, …: a form, not a command.
FORM = re.compile(r"…|\[|\w\|\w|(?<![\w=/.-])[A-Z]{2,}(?![\w.-])|\b[AB] B\b|\b[A-Z]+\.yaml|\bID\b")


WITH_SENTENCES = ("README.md", "START.md", "HOWTO.md", "QUEUES.md")


@dataclasses.dataclass
class Command:
    document: str
    text: str  # as printed, without the prompt and the comment behind it

    def __str__(self):
        return f"{self.document}: {self.text}"


def without_comment(line):
    return re.sub(r"\s{2,}#.*$|\s+\(on .*\)$", "", line).rstrip()


def block_commands(language, body):
    """What a reader would type: the lines behind a prompt, else all lines of a block that begins
    with a program; lines that go on (\\, |, <<END) are one command."""
    lines = body.splitlines()
    prompted = [line[2:] for line in lines if line.startswith("$ ")]
    if not prompted and language != "sh" and not re.match(PROGRAMS, body.lstrip()):
        return
    text = ""
    for line in prompted or lines:
        text += ("\n" if text else "") + line
        end = re.search(r"<<(\w+)", text)
        if line.endswith(("\\", "|")) or (end and line != end[1]):
            continue
        if text.strip():
            yield without_comment(text)
        text = ""


def commands(path):
    """Every command of a document, in its order; within sentences only in those that users read
    first, as the others name parts of commands there."""
    text = path.read_text()
    for found in re.finditer(r"^```(\w*)\n(.*?)^```|`([^`\n]+(?:\n[^`\n]+)?)`", text, re.M | re.S):
        language, body, inline = found.groups()
        if inline is None:
            for command in block_commands(language, body):
                yield Command(path.name, command)
            continue
        words = " ".join(inline.split())
        if path.name in WITH_SENTENCES and re.match(r"assay(?:-\w+| \w+) \S", words) \
                and not FORM.search(words):
            yield Command(path.name, words)


PARSE = """#include "parse.h"
#include <stdio.h>
#include <stdlib.h>

char *load(const char *path)
{{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 4096);
    if (!file || fread(text, 1, 4095, file) == 0)
        exit(1);
    fclose(file);
    return text;
}}

unsigned parse(const char *text)
{{
    unsigned sum = 0;
    for (int turn = 0; turn < {}; turn++)
        for (const char *c = text; *c; c++)
            sum = sum * 31 + (unsigned char)*c;
    return sum;
}}
"""
BENCHMARKS = "bench: bench.c parse.c\n\t$(CC) -O2 $$(pkg-config --cflags assay) bench.c parse.c -o $@\n"
SLOW = "#!/bin/sh\ni=0\nwhile [ $i -lt {} ]; do i=$((i + 1)); done\n"
MAKEFILE = "all: bench benchmark\nbench benchmark: work.sh\n\tcp work.sh $@ && chmod +x $@\n"
FILES = {"old": "#!/bin/sh\nexec two-ways write 300\n", "new": "#!/bin/sh\nexec two-ways writev 300\n",
         "bin/a": "#!/bin/sh\nexec two-ways write 300\n", "bin/b": "#!/bin/sh\nexec two-ways writev 300\n"}


def git(*arguments):
    subprocess.run(["git", *arguments], check=True, stdout=subprocess.DEVNULL)


def prepare_repository():
    """Five commits, of which v1.2 is the first, the third makes the program slower and origin/main
    is the last but one."""
    git("init", "-q", ".")
    pathlib.Path("Makefile").write_text(MAKEFILE)
    for number in range(5):
        pathlib.Path("work.sh").write_text(SLOW.format(3000 if number < 2 else 9000))
        pathlib.Path("notes").write_text(f"{number}\n")
        git("add", "Makefile", "work.sh", "notes")
        git("commit", "-q", "-m", f"change {number}")
        if number == 0:
            git("tag", "v1.2")
    git("update-ref", "refs/remotes/origin/main", "HEAD~1")
    subprocess.run(["make", "-s"], check=True)


def prepare():
    """What the documents take for granted, in the present directory: a checkout with its build, the
    programs in PATH, a repository, ./old and ./new, recordings, reports and results of hyperfine."""
    build = pathlib.Path(ASSAY).resolve().parents[2]
    programs = [build / "src/cmd", *(build / "workloads" / name for name in
                ("demo", "move", "queue", "scale", "vr")), pathlib.Path("bin").resolve()]
    os.environ["PATH"] = ":".join([*map(str, programs), os.environ["PATH"]])
    for name in "AUTHOR", "COMMITTER":
        os.environ[f"GIT_{name}_NAME"] = "Test"
        os.environ[f"GIT_{name}_EMAIL"] = "test@example.org"
    os.symlink(build, "build")
    os.symlink(ROOT / "workloads", "workloads")
    shutil.copytree(ROOT / "experiments", "experiments", ignore=shutil.ignore_patterns(".assay"))
    os.symlink(build / "workloads/demo/two-ways", "two-ways")
    os.mkdir("bin")
    for name, text in FILES.items():
        pathlib.Path(name).write_text(text)
        os.chmod(name, 0o755)
    subprocess.run("seq 20000 | sort -R > numbers.txt", shell=True, check=True)
    prepare_repository()


def prepare_results():
    """Results that somebody measured before."""
    def run(*words):
        subprocess.run(["assay", *words], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    for name, way in ("old", "write"), ("new", "writev"):
        run("record", "-q", "-F", "19999", "-o", f"{name}.data", "--", "./two-ways", way, "20000")
    for name, file in ("monday", "before"), ("tuesday", "after"):
        run("ab", "--rounds", "3", "--html", f"{name}.html", "--export-hyperfine", f"{file}.json",
            "-n", "a", "-n", "b", "a", "b")


def prepare_header():
    """assay.h, as an installation has it for pkg-config."""
    build = pathlib.Path(ASSAY).resolve().parents[2]
    text = (build / "meson-private/assay.pc").read_text()
    pathlib.Path("pc").mkdir()
    pathlib.Path("pc/assay.pc").write_text(re.sub(r"^includedir=.*", f"includedir={ROOT / 'include'}", text,
                                                  flags=re.M))
    os.environ["PKG_CONFIG_PATH"] = str(pathlib.Path("pc").resolve())


def write_benchmark(turns):
    """The first benchmark of docs/BENCH.md; parse() takes as long as its turns say."""
    first = re.search(r"^```c\n(.*?)^```", (ROOT / "docs/BENCH.md").read_text(), re.M | re.S)[1]
    pathlib.Path("bench.c").write_text("#include <stdlib.h>\n" + first)
    pathlib.Path("parse.h").write_text("char *load(const char *path);\nunsigned parse(const char *text);\n")
    pathlib.Path("parse.c").write_text(PARSE.format(turns))
    pathlib.Path("small.json").write_text(json.dumps({"numbers": list(range(40))}))


def make_object(name):
    subprocess.run("cc -O2 $(pkg-config --cflags assay) -shared -fPIC bench.c parse.c -o " + name, shell=True,
                   check=True)


def prepare_objects():
    """old.so and new.so, with the benchmark; small.json is what it reads."""
    prepare_header()
    for turns, name in (1, "old.so"), (2, "new.so"):
        write_benchmark(turns)
        make_object(name)
    for name in "bench.c", "parse.c", "parse.h":
        pathlib.Path(name).unlink()


def prepare_benchmarks():
    """What docs/BENCH.md takes for granted, in the place of the scripts: the objects, and commits of
    which the third makes parse() slower."""
    prepare_objects()
    shutil.rmtree(".git")
    git("init", "-q", ".")
    pathlib.Path("Makefile").write_text(BENCHMARKS)
    pathlib.Path("bench").unlink()
    for number, turns in enumerate((1, 1, 2, 2)):
        write_benchmark(turns)
        pathlib.Path("notes").write_text(f"{number}\n")
        git("add", "Makefile", "bench.c", "parse.c", "parse.h", "small.json", "notes")
        git("commit", "-q", "-m", f"change {number}")
        if number == 0:
            git("tag", "v1.2")
    git("update-ref", "refs/remotes/origin/main", "HEAD~1")
