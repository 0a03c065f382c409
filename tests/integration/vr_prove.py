# SPDX-License-Identifier: MIT
"""assay-vr: every planted bug is found within a thousand seeds, and many seeds pass without one.

Minutes of work, so it belongs to ./dev prove; tests/integration/vr.py holds a sample of it.
"""
import json
import os
import subprocess

from harness import *

FOLDER = os.path.join(os.environ.get("BUILD", "build"), "workloads/vr")
BOX_S = 240  # for each bug, and for the clean seeds


def sim(program, *args):
    result = subprocess.run([os.path.join(FOLDER, program), "sim", "--json", "--jobs", "0",
                             "--time", f"{BOX_S}s", *map(str, args)],
                            text=True, errors="replace", capture_output=True, timeout=BOX_S + 120)
    if result.returncode not in (0, 1):
        raise AssertionError(f"{args}: exit {result.returncode}\n{result.stderr[-3000:]}")
    return json.loads(result.stdout)


def bugs():
    result = subprocess.run([os.path.join(FOLDER, "assay-vr-planted"), "sim", "--planted", "list"],
                            text=True, capture_output=True, timeout=60, check=False)
    return [name for name in result.stdout.split() if name != "none"]


@test
def every_planted_bug_is_found_within_a_thousand_seeds():
    missed = []
    for bug in bugs():
        result = sim("assay-vr-planted", "--planted", bug, "--seeds", "1..1000")
        print("#", bug, f"seed {result['failed_seed']}: {result['reason']}" if result["failed"]
              else f"not found in {result['seeds']} seeds", flush=True)
        if not result["failed"]:
            missed.append(bug)
    equal(missed, [])


@test
def thousands_of_seeds_pass():
    result = sim("assay-vr", "--seeds", "1..1000000")
    print("#", result["seeds"], "seeds,", result["operations"], "operations")
    equal(result["failed"], False)


main()
