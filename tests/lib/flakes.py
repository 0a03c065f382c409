#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs every test many times under many conditions and prints how often each fails.

    flakes.py [N] [--only WORD] [--conditions A,B] [--suites A,B] [--minutes M] [--table] [--fresh]

Programs of tests are taken in random order, their tests too.  What came out is appended to
out/flakes.jsonl, a line for each program, so that another call goes on where this one stopped, until
each has run N times under each condition; --minutes ends a call earlier.  Runs of older sources
count until --fresh removes them: a test that was mended is run anew (--fresh --only NAME).
"""
import argparse
import collections
import datetime
import json
import os
import pathlib
import random
import subprocess
import sys
import time

import suite
from conditions import CONDITIONS, ROOT, Impossible

JOURNAL = ROOT / "out" / "flakes.jsonl"
PATIENCE = 4  # time decides no test
SUITES = "unit,integration,vm,lab"  # the browser's tests are among integration


def read_journal():
    if not JOURNAL.exists():
        return []
    return [json.loads(line) for line in JOURNAL.read_text().splitlines()]


def forget(names):
    """Removes these programs' lines."""
    kept = [line for line in read_journal() if line["program"] not in names]
    JOURNAL.write_text("".join(json.dumps(line) + "\n" for line in kept))


def keep(line):
    JOURNAL.parent.mkdir(exist_ok=True)
    with JOURNAL.open("a") as file:
        file.write(json.dumps(line) + "\n")


def commit():
    return subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, text=True,
                          capture_output=True).stdout.strip()


def run(name, condition, seed):
    """One program under one condition; the journal's line."""
    line = {"program": name, "condition": condition, "seed": seed, "commit": commit(),
            "at": datetime.datetime.now().isoformat(timespec="seconds")}
    with CONDITIONS[condition] as c:
        try:
            folder = c.folder()
            jobs = {job.name: job for job in suite.load(f"gcc={folder}")}
            environment = dict(c.environment(), ASSAY_TEST_ORDER=str(seed))
            outcome = suite.run(jobs[name], environment, c.before, PATIENCE)
        except Impossible as reason:
            return dict(line, impossible=str(reason))
    return dict(line, seconds=round(outcome.seconds, 1), broken=outcome.broken,
                passed=[case.name for case in outcome.cases if case.state == "passed"],
                failed=[case.name for case in outcome.cases if case.state == "failed"],
                skipped={case.name: case.reason for case in outcome.cases
                         if case.state == "skipped"},
                output=outcome.output if outcome.failed else "")


def remaining(names, conditions, times):
    done = collections.Counter((line["program"], line["condition"]) for line in read_journal())
    return [(name, condition) for name in names for condition in conditions
            for _ in range(times - done[name, condition])]


def go(options, names):
    conditions = options.conditions.split(",")
    left = remaining(names, conditions, options.times)
    random.shuffle(left)
    end = time.monotonic() + 60 * options.minutes
    print(f"{len(left)} runs of {len(names)} programs under {len(conditions)} conditions",
          flush=True)
    for index, (name, condition) in enumerate(left):
        if time.monotonic() > end:
            print(f"the time is over; {len(left) - index} runs are left: the same command goes on")
            return
        line = run(name, condition, random.randrange(1 << 30))
        keep(line)
        failed = line.get("failed", []) + [line["broken"]] * bool(line.get("broken"))
        print(f"{'FAILED' if failed else 'ok':7}{condition:13}{name} "
              f"({line.get('seconds', 0):.1f} s) {', '.join(failed)}", flush=True)


def tally(journal):
    """(program, test) -> condition -> [failures, runs]; a program that died is the test "(whole)"."""
    counts = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, 0]))
    for line in journal:
        for test in line.get("passed", []):
            counts[line["program"], test][line["condition"]][1] += 1
        for test in line.get("failed", []) + ["(whole)"] * bool(line.get("broken")):
            counts[line["program"], test][line["condition"]][0] += 1
            counts[line["program"], test][line["condition"]][1] += 1
    return counts


def rates(counts, conditions):
    """Lines of a table: how often each test that failed at all did, and all tests together."""
    rows = []
    for (program, test), by in sorted(counts.items()):
        if any(failures for failures, _ in by.values()):
            rows.append([f"{program}: {test}", *(f"{by[c][0]}/{by[c][1]}" if by[c][1] else "-"
                                                 for c in conditions)])
    totals = {c: [sum(by[c][i] for by in counts.values()) for i in (0, 1)] for c in conditions}
    rows.append(["all tests", *(f"{totals[c][0]}/{totals[c][1]}" for c in conditions)])
    return rows


def show(journal, conditions):
    for row in rates(tally(journal), conditions):
        print("  ".join([f"{row[0]:70}", *(f"{cell:>12}" for cell in row[1:])]))
    for line in journal:
        if "impossible" in line:
            print(f"not possible here: {line['condition']}: {line['impossible']}")
            break


def table(journal, conditions):
    """For docs/TESTING.md: failures of runs, by suite of tests and condition."""
    dates = sorted(line["at"][:10] for line in journal)
    print(f"{dates[0]} to {dates[-1]}; failures / runs of single tests.\n")
    print("| tests | " + " | ".join(conditions) + " |\n|---" * 1 + "|---" * len(conditions) + "|")
    counts = tally(journal)
    programs = sorted({program for program, _ in counts})
    for program in programs:
        ours = {key: by for key, by in counts.items() if key[0] == program}
        cells = [[sum(by[c][i] for by in ours.values()) for i in (0, 1)] for c in conditions]
        print(f"| {program} | " + " | ".join(f"{f}/{n}" if n else "-" for f, n in cells) + " |")
    for row in rates(counts, conditions):
        print("| " + " | ".join([f"**{row[0]}**", *row[1:]]) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("times", nargs="?", type=int, default=10)
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--conditions", default=",".join(CONDITIONS), help="of: %(default)s")
    parser.add_argument("--suites", default=SUITES)
    parser.add_argument("--minutes", type=float, default=1e9, help="end after this long")
    parser.add_argument("--table", action="store_true", help="print the table for docs/TESTING.md")
    parser.add_argument("--fresh", action="store_true", help="forget earlier runs (with --only, its)")
    options = parser.parse_args()
    unknown = set(options.conditions.split(",")) - set(CONDITIONS)
    if unknown:
        parser.error(f"no such condition: {', '.join(unknown)}")
    os.chdir(ROOT)
    names = [job.name for job in suite.load(f"gcc=build:{options.suites}")
             if options.only in job.name]
    if options.fresh:
        forget(set(names))
    if options.table:
        table(read_journal(), options.conditions.split(","))
        return
    try:
        go(options, names)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on")
    journal = [line for line in read_journal() if line["program"] in names]
    show(journal, options.conditions.split(","))
    failed = any(line.get("failed") or line.get("broken") for line in journal)
    sys.exit(1 if failed else 0)


main()
