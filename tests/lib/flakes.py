#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs every test many times under many conditions and prints how often each fails.

    flakes.py [N] [--only WORD] [--conditions A,B+C] [--suites A,B] [--jobs N] [--minutes M]
              [--table] [--fresh]

Conditions that do not exclude each other hold at once (B+C): what passes then passes under each, and
what fails is run again under each of them alone.  Programs of tests are taken in random order, their
tests too, every program once before any is run again.  What came out is appended to out/flakes.jsonl,
a line for each program, so that another call goes on where this one stopped, until each has run N
times under each condition; --minutes ends a call earlier.  Runs of older sources count until --fresh
removes them: a test that was mended is run anew (--fresh --only NAME).
"""
import argparse
import collections
import concurrent.futures
import datetime
import json
import os
import pathlib
import random
import subprocess
import sys
import threading
import time

import suite
from conditions import CONDITIONS, ROOT, SETS, Impossible, Together

JOURNAL = ROOT / "out" / "flakes.jsonl"
SUITES = "unit,integration,vm,lab"  # the browser's tests are among integration
writing = threading.Lock()


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
    with writing, JOURNAL.open("a") as file:
        file.write(json.dumps(line) + "\n")


def commit():
    return subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, text=True,
                          capture_output=True).stdout.strip()


def run(name, condition, seed, cases=()):
    """One program under one set of conditions; the journal's line."""
    line = {"program": name, "condition": condition, "seed": seed, "commit": commit(),
            "at": datetime.datetime.now().isoformat(timespec="seconds")}
    together = Together(condition)
    try:
        jobs = {job.name: job for job in suite.load(f"gcc={together.folder()}")}
        environment = dict(together.environment(os.environ), ASSAY_TEST_ORDER=str(seed))
        job = jobs[name]
        job.cases = tuple(cases)
        with together.holding():
            outcome = suite.run(job, environment, together.before)
    except Impossible as reason:
        return dict(line, impossible=str(reason))
    return dict(line, seconds=round(outcome.seconds, 1), broken=outcome.broken,
                passed=[case.name for case in outcome.cases if case.state == "passed"],
                failed=[case.name for case in outcome.cases if case.state == "failed"],
                skipped={case.name: case.reason for case in outcome.cases
                         if case.state == "skipped"},
                output=outcome.output if outcome.failed else "")


def remaining(names, conditions, times):
    """What is still to run, in random order, but nothing a second time before all had their first."""
    done = collections.Counter((line["program"], line["condition"]) for line in read_journal()
                               if not line.get("alone"))
    left = []
    for turn in range(times):
        batch = [(name, condition) for name in names for condition in conditions
                 if done[name, condition] <= turn]
        random.shuffle(batch)
        left += batch
    return left


def one(name, condition, end):
    """Runs a program; what failed under several conditions, under each of them alone as well."""
    if time.monotonic() > end:
        return False
    line = run(name, condition, random.randrange(1 << 30))
    record(line)
    parts = condition.split("+")
    if failures(line) and len(parts) > 1:
        for part in parts:
            again = run(name, part, line["seed"], line["failed"])
            record(dict(again, alone=True))
    return True


def failures(line):
    return line.get("failed", []) + [line["broken"]] * bool(line.get("broken"))


def record(line):
    keep(line)
    print(f"{'FAILED' if failures(line) else 'ok':7}{line['condition']:23}{line['program']} "
          f"({line.get('seconds', 0):.1f} s) {', '.join(failures(line))}", flush=True)


def go(options, names):
    conditions = options.conditions.split(",")
    left = remaining(names, conditions, options.times)
    end = time.monotonic() + 60 * options.minutes
    print(f"{len(left)} runs of {len(names)} programs: {', '.join(conditions)}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = [pool.submit(one, name, condition, end) for name, condition in left]
        try:
            ran = [future.result() for future in waiting]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            suite.stop()
            raise
    if not all(ran):
        print(f"the time is over; {ran.count(False)} runs are left: the same command goes on")


def tally(journal):
    """(program, test) -> condition -> [failures, runs]; a program that died is the test "(whole)"."""
    counts = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, 0]))
    for line in journal:
        for condition in line["condition"].split("+"):
            for test in line.get("passed", []):
                counts[line["program"], test][condition][1] += 1
            for test in line.get("failed", []) + ["(whole)"] * bool(line.get("broken")):
                counts[line["program"], test][condition][0] += 1
                counts[line["program"], test][condition][1] += 1
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
    if not journal:
        sys.exit("flakes: nothing has run yet")
    dates = sorted(line["at"][:10] for line in journal)
    print(f"{dates[0]} to {dates[-1]}; failures / runs of single tests.\n")
    print("| tests | " + " | ".join(conditions) + " |\n|---" + "|---" * len(conditions) + "|")
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
    parser.add_argument("--conditions", default=",".join(SETS),
                        help="of: " + ", ".join(CONDITIONS) + "; A+B: both at once")
    parser.add_argument("--suites", default=SUITES)
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time")
    parser.add_argument("--minutes", type=float, default=1e9, help="end after this long")
    parser.add_argument("--table", action="store_true", help="print the table for docs/TESTING.md")
    parser.add_argument("--fresh", action="store_true", help="forget earlier runs (with --only, its)")
    options = parser.parse_args()
    chosen = options.conditions.replace("+", ",").split(",")
    unknown = set(chosen) - set(CONDITIONS)
    if unknown:
        parser.error(f"no such condition: {', '.join(unknown)}")
    os.chdir(ROOT)
    names = [job.name for job in suite.load(f"gcc=build:{options.suites}")
             if options.only in job.name]
    if options.fresh:
        forget(set(names))
    if options.table:
        table(read_journal(), [name for name in CONDITIONS if name in chosen])
        return
    try:
        go(options, names)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on")
    journal = [line for line in read_journal() if line["program"] in names]
    show(journal, [name for name in CONDITIONS if name in chosen])
    failed = any(line.get("failed") or line.get("broken") for line in journal)
    sys.exit(1 if failed else 0)


main()
