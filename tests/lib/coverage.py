#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which lines the tests reach: by file and by room, from a build with gcov.

    coverage.py BUILD_DIR SUITE[,SUITE…] [--floor PERCENT | --no-floor] [--keep]

Runs the suites in a build folder made with -Db_coverage=true, and prints the share of lines that
were executed.  Fails when a room is below its floor: the one that docs/TESTING.md states, or --floor
for all of them.  A process that is killed, or leaves with _exit, writes no counts, so what is printed is
rather too low.  --keep counts what earlier runs left, and runs nothing.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = ("src", "workloads")
BATCH = 100
FLOOR = re.compile(r"^The floor is (\d+(?:\.\d+)?) % ", re.MULTILINE)
EXCEPTION = re.compile(r"^\| `([a-z/]+)` \| (\d+(?:\.\d+)?) % \|", re.MULTILINE)


def stated_floors():
    """The floor of all rooms, and those of exceptions.  The page that people read has the numbers,
    and nothing else does."""
    page = (ROOT / "docs/TESTING.md").read_text(encoding="utf-8")
    match = FLOOR.search(page)
    if not match:
        sys.exit("coverage: docs/TESTING.md does not say 'The floor is N % '")
    return float(match[1]), {room: float(floor) for room, floor in EXCEPTION.findall(page)}


def run_tests(build, suites):
    for path in build.rglob("*.gcda"):
        path.unlink()
    runner = [sys.executable, str(ROOT / "tests/lib/run.py"), f"coverage={build}:{suites}"]
    return subprocess.run(runner, cwd=ROOT, check=False).returncode


def gcov_documents(build):
    """What gcov says of each object; one that never ran counts as well, with nothing reached."""
    notes = sorted(str(path.relative_to(build)) for path in build.rglob("*.gcno"))
    if not notes:
        sys.exit(f"coverage: {build} was not configured with -Db_coverage=true")
    gcov = os.environ.get("GCOV", "gcov")
    for start in range(0, len(notes), BATCH):
        result = subprocess.run([gcov, "--json-format", "--stdout", *notes[start:start + BATCH]],
                                cwd=build, text=True, capture_output=True, check=False)
        if result.returncode:
            sys.exit(f"coverage: {gcov} failed: {result.stderr.strip()[-500:]}")
        for line in result.stdout.splitlines():
            if line.startswith("{"):
                yield json.loads(line)


def count_lines(documents, build):
    """How often each line of each file ran.  A header, or a file that two programs compile, has the
    sum over all objects."""
    lines = collections.defaultdict(collections.Counter)
    for document in documents:
        for file in document["files"]:
            path = pathlib.Path(os.path.normpath(build / file["file"]))
            if not path.is_relative_to(ROOT) or path.is_relative_to(build):
                continue
            name = path.relative_to(ROOT)
            if name.parts[0] in PARTS:
                for line in file["lines"]:
                    lines[str(name)][line["line_number"]] += line["count"]
    return lines


def room_of(name):
    """src/report/text/gate.c: report/text; workloads/vr/core/x.c: workloads/vr/core."""
    folder = os.path.dirname(name)
    return folder[len("src/"):] if folder.startswith("src/") else folder


class Share:
    def __init__(self):
        self.reached = self.lines = 0

    def add(self, counts):
        self.reached += sum(count > 0 for count in counts.values())
        self.lines += len(counts)

    @property
    def percent(self):
        return 100 * self.reached / self.lines if self.lines else 100.0


def add_up(lines):
    files, rooms, total = {}, collections.defaultdict(Share), Share()
    for name, counts in lines.items():
        files[name] = Share()
        for share in (files[name], rooms[room_of(name)], total):
            share.add(counts)
    return files, rooms, total


def table(title, shares):
    print(f"\n{'reached':>8}  {'lines':>6}  {title}")
    for name, share in sorted(shares.items(), key=lambda item: (item[1].percent, item[0])):
        print(f"{share.percent:7.1f}%  {share.lines:6}  {name}")


def below(rooms, floor, exceptions):
    """Sentences about the rooms that are below their floor."""
    for name, share in sorted(rooms.items()):
        least = exceptions.get(name, floor)
        if share.percent < least:
            yield (f"coverage: {name}: {share.percent:.1f} % of the lines are reached, less than the "
                   f"floor of {least:g} %")
    for name in sorted(set(exceptions) - set(rooms)):
        yield f"coverage: docs/TESTING.md has a floor for '{name}', which is not a room"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("suites")
    parser.add_argument("--floor", type=float)
    parser.add_argument("--no-floor", action="store_true")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    build = options.build.resolve()
    floor, exceptions = ((options.floor, {}) if options.floor is not None else
                         (0, {}) if options.no_floor else stated_floors())
    failed = 0 if options.keep else run_tests(build, options.suites)
    files, rooms, total = add_up(count_lines(gcov_documents(build), build))
    table("file", files)
    table("room", rooms)
    table("all", {"total": total})
    if failed:
        print("coverage: some tests failed; what they would have reached after that is missing")
    low = list(below(rooms, floor, exceptions))
    print(*low, sep="\n", end="\n" if low else "")
    sys.exit(1 if low else 0)


if __name__ == "__main__":
    main()
