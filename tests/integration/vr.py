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
    "entry-view-as-log-view": 13,
    "longest-log": 13,
    "view-not-kept": 21,
    "ack-early": 1,
    "small-quorum": 1,
    "primary-resumes": 3,
    "log-view-early": 2,
    "tail-kept": 34,
    "headers-ignored": 21,
    "any-start-view": 26,
    "drop-before-state": 25,
    "twice": 9,
    "session-unchecked": 12,
    "evict-by-local": 2,
    "local-read": 1,
    "execute-early": 1,
    "half-recovered": 90,
    "no-fence": 11,
    "joiner-votes": 2,
    "leave-early": 75,
    "stale-acks": 11,
    "few-logs": 1,
    "doubt-forgotten": 14,
    "joins-any-epoch": 64,
    "slots-reused": 25,
    "checkpoint-early": 888,
    "checksum-unchecked": 9,
    "head-later": 21,
    "copy-trusted": 19,
}


# On both cores.  ./dev prove takes many more, and docs/VR.md says how many ran outside.
SEEDS_TIME = "40s"
FAULTS = ["epochs", "joined", "wiped", "disks_lost", "replaced", "lost", "doubled", "replayed", "late", "reordered", "corrupted",
          "partitions", "partitions_one_way", "promises_tested", "memories_tested", "plots", "pauses",
          "skewed_clocks", "crashes", "restarts", "crashes_of_all", "torn_writes", "lost_writes",
          "misdirected_writes", "rotten_sectors", "lost_tails", "late_checkpoints", "full_disks",
          "uncertain_starts", "entries_repaired", "states_transferred", "evictions", "refused"]
# Faulty rules, each with the program and the scenario in it that must notice: those of the known errors,
# which docs/VR.md lists with their sources, and more of the simulator's.
SCENARIOS = {
    "loop-copy": "scenario a_new_primary_adopts_the_log_of_a_peer",
    "entry-view-as-log-view": "scenario do_view_change_names_the_last_normal_view",
    "longest-log": "scenario the_last_normal_view_decides_not_the_last_entrys",
    "last-prepare-only": "scenario all_that_is_missing_is_sent_again",
    "fragments-in-order": "wire fragments_meet_in_any_order",
    "log-never-cut": "cost the_log_is_cut_behind_checkpoints",
    "fresh-starts": "store without_a_superblock_nothing_starts",
    "log-view-early": "scenario nothing_is_cut_before_the_new_log_is_there",
    "drop-before-state": "scenario nothing_is_cut_before_the_new_state_is_there",
    "view-not-kept": "scenario do_view_change_waits_until_the_view_is_on_disk",
    "memory-trusted": "store a_restart_in_memory_is_a_doubt",
    "any-start-view": "scenario a_lost_log_comes_back_only_by_a_fresh_answer",
    "half-recovered": "scenario half_a_log_has_no_vote",
    "always-recovers": "scenario a_cluster_that_crashed_whole_goes_on",
    "one-wish": "scenario a_view_is_left_by_a_quorum_only",
    "any-reply": "host a_caller_understands_answers_to_its_request_only",
    "places-moved": "host a_replayed_request_does_not_turn_replies_away",
    "narrow-counters": "scenario numbers_pass_32_bits",
    "silent-refusal": "scenario a_request_that_no_entry_can_hold_is_refused",
    "checkpoint-missed": "scenario a_checkpoint_that_had_to_wait_is_taken",
    "install-deaf": "scenario who_takes_over_a_log_runs_what_is_committed_of_it",
    "primary-resumes": "scenario a_restarted_primary_does_not_go_on",
    "checkpoint-early": "scenario a_state_counts_when_the_superblock_names_it",
    "no-fence": "epoch nothing_follows_the_entry_that_ends_an_epoch",
    "joiner-votes": "epoch who_is_added_has_no_vote_before_it_has_the_log",
    "leave-early": "epoch who_is_removed_stays_until_a_quorum_of_the_new_group_has_the_log",
    "closed-early": "scenario a_log_is_closed_where_it_is_on_disk",
    "ack-early": "scenario an_entry_counts_when_a_quorum_has_it_on_disk",
    "small-quorum": "scenario acknowledgements_of_an_older_view_do_not_count",
    "execute-early": "scenario an_entry_counts_when_a_quorum_has_it_on_disk",
    "few-logs": "scenario a_view_begins_with_a_quorum_of_logs",
    "local-read": "cost a_read_takes_a_place_in_the_log",
    "tail-kept": "store what_a_view_cut_off_does_not_come_back",
    "headers-ignored": "store a_damaged_entry_with_its_head_is_a_hole",
    "checksum-unchecked": "wire every_flipped_bit_is_noticed",
    "joins-any-epoch": "epoch who_comes_back_with_an_empty_disk_joins_no_old_epoch",
    "stale-acks": "scenario who_leads_again_counts_no_old_acknowledgements",
    "closed-forgotten": "store a_log_that_was_closed_ends_there",
    "no-sync": "sync a_sync_reaches_the_kernel",
    "no-dsync": "sync a_durable_write_leaves_nothing_behind",
    "renumbered": "host a_request_is_sent_again_as_it_was",
    "copy-trusted": "identity an_old_copy_takes_another_incarnation",
}

# Seeds that found an error of the core, the store or the simulator, with the simulator of their time:
# docs/VR.md.  What each found is a scenario or a planted bug now.
ONCE_FAILED = [9046, 15411, 31343, 74015, 509665, 535694, 552550, 588146, 748502, 973361]


def vr(*args, program="assay-vr", check=0):
    result = subprocess.run([os.path.join(FOLDER, program), *map(str, args)], text=True,
                            errors="replace", capture_output=True, timeout=500)
    if result.returncode != check:
        raise AssertionError(f"{program} {args}: exit {result.returncode}, not {check}\n"
                             f"{result.stdout[-2000:]}\n{result.stderr[-4000:]}")
    if "Sanitizer" in result.stderr or "runtime error:" in result.stderr:
        raise AssertionError("sanitizer report:\n" + result.stderr)
    return result


@test
def seeds_run_without_an_error():
    result = json.loads(vr("sim", "--seeds", 1000000, "--jobs", 2, "--time", SEEDS_TIME,
                           "--json").stdout)
    equal(result["failed"], False)
    between(result["seeds"], 100, 1000000, "seeds")
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


def scenario(program, name, bug):
    folder = os.path.join(os.environ.get("BUILD", "build"), "tests")
    return subprocess.run([os.path.join(folder, f"unit-vr-{program}-planted"), name], text=True,
                          capture_output=True, timeout=400, check=False,
                          env=dict(os.environ, VR_BUG=bug, ASAN_OPTIONS="detect_leaks=0"))


@test
def scenarios_fail_on_their_faulty_rule_and_pass_without():
    for bug, words in SCENARIOS.items():
        program, name = words.split()
        result = scenario(program, name, "none")
        contains(result.stdout, f"ok 1 {name}")
        equal(result.returncode, 0, name)
        if "# SKIP" in result.stdout:
            print("#", name, "cannot be tried here:", result.stdout)
            continue
        result = scenario(program, name, bug)
        contains(result.stdout, f"not ok 1 {name}")
        equal(result.returncode, 1, bug)


@test
def the_known_errors_stand_in_the_documentation():
    rows = [line for line in (ROOT / "docs/VR.md").read_text().splitlines() if line.startswith("|")]
    for bug, words in SCENARIOS.items():
        if not any(bug in row and words.split()[1] in row for row in rows):
            raise AssertionError(f"docs/VR.md has no row with {bug} and {words}")


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
