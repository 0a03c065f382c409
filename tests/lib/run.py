#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the tests of one or more build folders and counts them.

    run.py [--jobs N] [--only WORD | --exactly NAME [--case TEST]] LABEL=BUILD_DIR[:SUITE[,SUITE…]] …

The last line is "N passed, N failed, N skipped"; each skip is listed with its reason, each failure
with the command that repeats it, and the ten slowest tests with their times.

Programs run several at a time, and a machine that is shared decides what fails beside another.  What
failed is repeated at the end, alone, up to twice: what fails each time has failed; what passes then is
listed as unsteady, with the output of its failure.  --once repeats nothing; flakes.py counts what is unsteady.
"""
import argparse
import concurrent.futures
import dataclasses
import itertools
import os
import sys

import suite

SLOWEST = 10
REPEATS = 2


def choose(options):
    for job in itertools.chain.from_iterable(map(suite.load, options.entries)):
        if options.only in job.name and options.exactly in ("", job.name):
            if options.case:
                job.cases = (options.case,)
            yield job


def tell(outcome):
    job = outcome.job
    print(f"{'FAILED' if outcome.failed else 'ok':7}{job.label}/{job.name}: "
          f"{outcome.count('passed')} passed, {outcome.failed} failed, "
          f"{outcome.count('skipped')} skipped ({outcome.seconds:.1f} s)", flush=True)
    if outcome.failed:
        for case in outcome.cases:
            if case.state == "failed":
                print(f"not ok: {case.name}\n{outcome.words(case)}", end="")
        print(f"------ output ({outcome.broken or 'to its end'}):\n{outcome.output}------")
        for line in repeats(outcome):
            print("again:  " + line)
        sys.stdout.flush()


def repeats(outcome):
    """The commands that repeat what failed."""
    cases = [case.name for case in outcome.cases if case.state == "failed"]
    return [outcome.job.again(case) for case in cases] or [outcome.job.again()]


def slowest(outcomes):
    """Tests that tell their time, and programs of tests that do not."""
    times = []
    for outcome in outcomes:
        name = f"{outcome.job.label}/{outcome.job.name}"
        timed = [(case.seconds, f"{name}: {case.name}") for case in outcome.cases if case.seconds]
        times += timed or [(outcome.seconds, name)]
    return sorted(times, reverse=True)[:SLOWEST]


def repeat_one(outcome, unsteady):
    """What failed of a program, once more, with the machine to itself.  What passes this time is named."""
    bad = [case.name for case in outcome.cases if case.state == "failed"]
    job = dataclasses.replace(outcome.job, cases=() if outcome.broken else tuple(bad))
    print(f"again, alone: {job.label}/{job.name}", flush=True)
    again = suite.run(job)
    tell(again)
    passed = [case.name for case in again.cases if case.state != "failed" and case.name in bad]
    if passed or not again.failed:
        unsteady.append(f"{job.label}/{job.name}: {', '.join(passed) or outcome.broken}")
    if job.cases and not again.broken:
        again.cases += [case for case in outcome.cases if case.state != "failed"]
    return again


def repeat(outcomes):
    """The outcomes that count, and the names of what failed at first and passed alone."""
    final, unsteady = list(outcomes), []
    for _ in range(REPEATS):
        final = [repeat_one(outcome, unsteady) if outcome.failed else outcome for outcome in final]
    return final, unsteady


def summarize(outcomes, unsteady):
    skips = sorted({f"{outcome.job.label}/{outcome.job.name}: {case.name}: {case.reason}"
                    for outcome in outcomes for case in outcome.cases if case.state == "skipped"})
    if skips:
        print("skipped:", *skips, sep="\n  ")
    if len(outcomes) > 1:
        print("slowest:")
        for seconds, name in slowest(outcomes):
            print(f"  {seconds:7.1f} s  {name}")
    if unsteady:
        print("unsteady (failed at first, passed alone):", *unsteady, sep="\n  ")
    bad = [line for outcome in outcomes if outcome.failed for line in repeats(outcome)]
    if bad:
        print("again:", *bad, sep="\n  ")
    passed, skipped = (sum(o.count(state) for o in outcomes) for state in ("passed", "skipped"))
    failed = sum(outcome.failed for outcome in outcomes)
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed or not passed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--exactly", default="", help="the program of this name")
    parser.add_argument("--case", default="", help="one of its tests")
    parser.add_argument("--once", action="store_true", help="repeat nothing that failed")
    parser.add_argument("entries", nargs="+")
    options = parser.parse_args()
    outcomes, unsteady = go(list(choose(options)), options.jobs), []
    if len(outcomes) > 1 and not options.once:
        outcomes, unsteady = repeat(outcomes)
    sys.exit(summarize(outcomes, unsteady))


def go(jobs, at_once):
    """Runs the jobs, several at a time, the longest first, so that none of these is the last; then
    those that measure, one by one."""
    outcomes = []
    jobs.sort(key=lambda job: -job.test["timeout"])
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        waiting = [pool.submit(suite.run, job) for job in jobs if not job.alone()]
        try:
            for future in concurrent.futures.as_completed(waiting):
                outcomes.append(future.result())
                tell(outcomes[-1])
        except BaseException:  # Ctrl-C
            pool.shutdown(wait=False, cancel_futures=True)
            suite.stop()
            raise
    for job in jobs:
        if job.alone():
            outcomes.append(suite.run(job))
            tell(outcomes[-1])
    return outcomes


main()
