#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the tests of one or more build folders and counts them.

    run.py [--jobs N] [--only WORD] LABEL=BUILD_DIR[:SUITE[,SUITE…]] …

The tests are those that meson knows (meson introspect); each prints TAP.  The last line is
"N passed, N failed, N skipped"; each skip is listed with its reason.
"""
import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

# A shell starts what it puts into the background with these ignored, and nohup the last; so would
# all tests be.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

LINE = re.compile(r"^(not )?ok\s+\d+\s*-?\s*(.*?)(?:\s*#\s*SKIP\s*(.*))?$", re.IGNORECASE)


def load(entry, only):
    label, _, rest = entry.partition("=")
    folder, _, suites = rest.partition(":")
    wanted = set(filter(None, suites.split(",")))
    info = json.loads((pathlib.Path(folder) / "meson-info" / "intro-tests.json").read_text())
    for test in info:
        names = {suite.split(":")[-1] for suite in test["suite"]}
        if wanted and not wanted & names:
            continue
        if only and only not in test["name"]:
            continue
        yield label, folder, test


def measures(job):
    return any(suite.split(":")[-1] in ("integration", "sanitize", "vm", "lab") for suite in job[2]["suite"])


def run(job):
    label, folder, test = job
    environment = dict(os.environ, ASSAY=os.path.abspath(f"{folder}/src/cmd/assay"),
                       TARGETS=os.path.abspath(f"{folder}/tests/targets"),
                       BUILD=os.path.abspath(folder))
    environment.update(test.get("env") or {})
    if label == "asan":
        environment["ASSAY_SANITIZED"] = "1"
        environment["ASAN_OPTIONS"] = "detect_leaks=1:abort_on_error=0:exitcode=99"
        environment["UBSAN_OPTIONS"] = "halt_on_error=1:print_stacktrace=1"
    started = time.monotonic()
    # Paths in meson's commands are relative to the build folder.
    process = subprocess.Popen(test["cmd"], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", start_new_session=True)
    timed_out = False
    try:
        output, _ = process.communicate(timeout=test["timeout"])
    except subprocess.TimeoutExpired:
        timed_out = True
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    return label, test["name"], output, process.returncode, timed_out, time.monotonic() - started


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--only", default="")
    parser.add_argument("entries", nargs="+")
    options = parser.parse_args()
    jobs = [job for entry in options.entries for job in load(entry, options.only)]
    passed = failed = 0
    skips = []
    # Tests that measure have the machine to themselves, as their users would.
    alone = [job for job in jobs if measures(job)]
    together = [job for job in jobs if not measures(job)]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = itertools.chain(pool.map(run, together), map(run, alone))
        for label, name, output, code, timed_out, seconds in results:
            good = bad = skipped = 0
            planned = None
            for line in output.splitlines():
                plan = re.match(r"^1\.\.(\d+)", line)
                if plan:
                    planned = int(plan[1])
                match = LINE.match(line)
                if not match:
                    continue
                if match[1]:
                    bad += 1
                elif match[3] is not None:
                    skipped += 1
                    skips.append(f"{label}/{name}: {match[2]}: {match[3]}")
                else:
                    good += 1
            # A program that died, ran out of time, lost tests or had none has failed, whatever it printed.
            broken = (timed_out or not planned or planned != good + bad + skipped
                      or (code != 0 and bad == 0))
            bad += broken
            state = "FAILED" if bad else "ok"
            print(f"{state:7}{label}/{name}: {good} passed, {bad} failed, {skipped} skipped "
                  f"({seconds:.1f} s)", flush=True)
            if bad:
                why = "ran out of time" if timed_out else f"exit code {code}"
                print(f"------ output ({why}):\n{output}------", flush=True)
            passed, failed = passed + good, failed + bad
    if skips:
        print("skipped:")
        for line in sorted(set(skips)):
            print("  " + line)
    print(f"{passed} passed, {failed} failed, {len(skips)} skipped", flush=True)
    sys.exit(1 if failed or not passed else 0)


main()
