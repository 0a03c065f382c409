# SPDX-License-Identifier: MIT
"""assay-vr: the simulator finds no error, repeats itself, and finds every planted bug."""
import json
import os
import subprocess
import tempfile

from harness import *

FOLDER = os.path.join(os.environ.get("BUILD", "build"), "workloads/vr")

# For each planted bug a seed in which the simulator meets it (found by searching from 1 on).
PLANTED = {
    "entry-view-as-log-view": 28,
    "longest-log": 28,
    "view-not-kept": 3,
    "ack-early": 10,
    "small-quorum": 1,
    "primary-resumes": 1,
    "log-view-early": 7,
    "tail-kept": 9,
    "headers-ignored": 7,
    "any-start-view": 788,
    "drop-before-state": 7,
    "twice": 13,
    "session-unchecked": 8,
    "evict-by-local": 2,
    "local-read": 1,
    "execute-early": 1,
    "half-recovered": 39,
    "no-fence": 4,
    "joiner-votes": 2,
    "leave-early": 45,
    "stale-acks": 62,
    "few-logs": 3,
    "doubt-forgotten": 75,
    "joins-any-epoch": 35,
    "slots-reused": 81,
    "checkpoint-early": 19,
    "checksum-unchecked": 8,
}


# As long as a test may take; ./dev prove runs more.
SEEDS_TIME = "20s"
FAULTS = ["epochs", "joined", "wiped", "lost", "doubled", "replayed", "late", "reordered", "corrupted",
          "partitions", "partitions_one_way", "promises_tested", "memories_tested", "plots", "pauses",
          "skewed_clocks", "crashes", "restarts", "crashes_of_all", "torn_writes", "lost_writes",
          "misdirected_writes", "rotten_sectors", "lost_tails", "late_checkpoints", "full_disks",
          "uncertain_starts", "entries_repaired", "states_transferred", "evictions", "refused"]
# The scenario that notices each broken rule, by the program that holds it.
SCENARIOS = {
    "entry-view-as-log-view": "scenario", "longest-log": "scenario", "view-not-kept": "scenario",
    "ack-early": "scenario", "small-quorum": "scenario", "primary-resumes": "scenario",
    "log-view-early": "scenario", "any-start-view": "scenario", "drop-before-state": "scenario",
    "execute-early": "scenario", "half-recovered": "scenario", "few-logs": "scenario",
    "checkpoint-early": "scenario", "last-prepare-only": "scenario", "always-recovers": "scenario",
    "one-wish": "scenario", "fragments-in-order": "wire", "log-never-cut": "cost",
    "no-fence": "epoch", "joiner-votes": "epoch", "leave-early": "epoch",
}

# Seeds that found an error of the core, the store or the simulator: docs/VR.md.
ONCE_FAILED = [15411, 74015, 509665, 535694]


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
    result = json.loads(vr("sim", "--seeds", 4000, "--jobs", 2, "--time", SEEDS_TIME,
                           "--json").stdout)
    equal(result["failed"], False)
    between(result["seeds"], 1, 4000, "seeds")
    if result["operations"] < 1000 * result["seeds"] or result["views"] < 3 * result["seeds"]:
        raise AssertionError(result)
    print("#", result["seeds"], "seeds,", result["operations"], "operations")


@test
def seeds_that_once_failed_pass():
    for seed in ONCE_FAILED:
        vr("sim", "--seed", seed)


@test
def every_fault_happens():
    result = json.loads(vr("sim", "--seeds", "1..150", "--jobs", 2, "--json").stdout)
    for fault in FAULTS:
        if result[fault] == 0:
            raise AssertionError(f"no {fault} in 150 seeds: {result}")


@test
def seeds_go_on_where_they_stopped():
    with tempfile.TemporaryDirectory() as folder:
        count = os.path.join(folder, "count")
        whole = json.loads(vr("sim", "--seeds", "5..14", "--json").stdout)
        first = json.loads(vr("sim", "--seeds", "5..9", "--resume", count, "--json").stdout)
        equal(first["seeds"], 5)
        second = json.loads(vr("sim", "--seeds", "5..14", "--jobs", 2, "--resume", count,
                               "--json").stdout)
        equal(second, whole)
        # Another build, other settings: those counts say nothing.
        contains(vr("sim", "--seeds", "5..14", "--operations", 1001, "--resume", count,
                    check=2).stderr, "other settings")


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
        contains(result.stderr, " ms  ")
        # An assertion of the core ends the run at once; else the oracle's verdict ends the trace.
        if "aborted" not in result.stderr:
            contains(result.stderr, "FAILED:")


@test
def without_a_planted_bug_the_same_seeds_pass():
    for seed in sorted(set(PLANTED.values())):
        vr("sim", "--seed", seed, program="assay-vr-planted")


@test
def scenarios_fail_when_their_rule_is_broken():
    folder = os.path.join(os.environ.get("BUILD", "build"), "tests")
    for bug, program in SCENARIOS.items():
        result = subprocess.run([os.path.join(folder, f"unit-vr-{program}-planted")], text=True,
                                capture_output=True, timeout=60, check=False,
                                env=dict(os.environ, VR_BUG=bug, ASAN_OPTIONS="detect_leaks=0"))
        contains(result.stdout, "not ok")


@test
def wrong_words_get_an_answer():
    contains(vr("--help").stdout, "sim")
    contains(vr("sim", "--help").stdout, "--seeds")
    contains(vr("nonsense", check=2).stderr, "no command 'nonsense'")
    contains(vr("sim", "--sede", check=2).stderr, "--seed")
    contains(vr("sim", "--seeds", "9..3", check=2).stderr, "A..B")


@test
def every_option_stands_in_the_manual_page():
    page = (ROOT / "docs/man/assay-vr.1.scd").read_text()
    for line in vr("sim", "--help").stdout.splitlines():
        for word in line.split():
            if word.startswith("--"):
                contains(page, word.rstrip(","))


main()
