# SPDX-License-Identifier: MIT
"""assay-vr: the simulator finds no error, repeats itself, and finds every planted bug."""
import json
import os
import subprocess

from harness import *

FOLDER = os.path.join(os.environ.get("BUILD", "build"), "workloads/vr")

# For each planted bug a seed in which the simulator meets it (found by searching from 1 on).
PLANTED = {
    "entry-view-as-log-view": 8,
    "longest-log": 4,
    "ack-early": 3,
    "small-quorum": 1,
    "primary-resumes": 1,
    "log-view-early": 1,
    "headers-ignored": 23,
    "tail-kept": 79,
    "twice": 2,
    "evict-by-local": 5,
    "local-read": 1,
    "execute-early": 1,
}


def vr(*args, program="assay-vr", check=0):
    result = subprocess.run([os.path.join(FOLDER, program), *map(str, args)], text=True,
                            errors="replace", capture_output=True, timeout=250)
    if result.returncode != check:
        raise AssertionError(f"{program} {args}: exit {result.returncode}, not {check}\n"
                             f"{result.stdout[-2000:]}\n{result.stderr[-4000:]}")
    if "Sanitizer" in result.stderr or "runtime error:" in result.stderr:
        raise AssertionError("sanitizer report:\n" + result.stderr)
    return result


@test
def seeds_run_without_an_error():
    result = json.loads(vr("sim", "--seed", 1, "--seeds", 2000, "--time", "20s", "--json").stdout)
    equal(result["failed"], False)
    between(result["seeds"], 1, 2000, "seeds")
    if result["operations"] < 1000 * result["seeds"]:
        raise AssertionError(result)
    if result["view_changes"] < 3 * result["seeds"]:
        raise AssertionError(result)
    print("#", result["seeds"], "seeds,", result["operations"], "operations")


@test
def a_seed_repeats_itself():
    first, second = (json.loads(vr("sim", "--seed", 11, "--json").stdout) for _ in range(2))
    equal(first, second)
    other = json.loads(vr("sim", "--seed", 12, "--json").stdout)
    if other["digest"] == first["digest"]:
        raise AssertionError("two seeds, one run")


@test
def planted_bugs_are_found_with_a_readable_trace():
    for bug, seed in PLANTED.items():
        result = vr("sim", "--planted", bug, "--seed", seed, program="assay-vr-planted", check=1)
        contains(result.stderr, f"assay-vr sim: seed {seed}:")
        # An assertion of the core ends the run at once; the oracle's verdict has the trace.
        if "aborted" not in result.stderr:
            contains(result.stderr, "FAILED:")
            contains(result.stderr, "prepare")


@test
def without_a_planted_bug_the_same_seeds_pass():
    for seed in sorted(set(PLANTED.values())):
        vr("sim", "--seed", seed, program="assay-vr-planted")


@test
def wrong_words_get_an_answer():
    contains(vr("--help").stdout, "sim")
    contains(vr("sim", "--help").stdout, "--seeds")
    contains(vr("nonsense", check=2).stderr, "no command 'nonsense'")
    contains(vr("sim", "--sede", check=2).stderr, "--seed")


@test
def every_option_stands_in_the_manual_page():
    page = (ROOT / "docs/man/assay-vr.1.scd").read_text()
    for line in vr("sim", "--help").stdout.splitlines():
        for word in line.split():
            if word.startswith("--"):
                contains(page, word.rstrip(","))


main()
