# SPDX-License-Identifier: MIT
"""Monitors that trace, sample and read the scheduler: planted causes are found, in number exactly and
in time between bounds that the program itself measured; what is refused is said."""
import os
import pathlib
import re
import sqlite3
import subprocess

from harness import *

CAUSES = target("causes")


def watch(cause, *monitors, rounds=2, check=0):
    """Runs the cause under the monitors; returns for each round {metric: value}, and the notes."""
    pathlib.Path("watch.yaml").write_text(
        f"name: watch\ncommand: {cause}\nrounds: {rounds}\nwarmup: 0\n"
        f"metrics: {{low: {{optional: true}}, high: {{optional: true}}}}\n"
        f"monitors: [{', '.join(monitors)}]\n")
    result = assay("run", "--db", "watch.db", "--fresh", "watch.yaml", check=check)
    for reason in ("no permission", "no tracepoint", "not available on this machine", "hides the names"):
        if reason in result.stderr:
            skip(result.stderr.strip().splitlines()[-1])
    store = sqlite3.connect("watch.db")
    experiment = store.execute("SELECT max(id) FROM experiment").fetchone()[0]
    rows = store.execute("SELECT r.round, m.name, v.value FROM run r JOIN value v ON v.run = r.id"
                         " JOIN metric m ON m.id = v.metric WHERE r.experiment = ? AND r.status = 0",
                         (experiment,)).fetchall()
    store.close()
    found = [{} for _ in range(rounds)]
    for number, name, value in rows:
        found[number][name] = value
    return found, result.stderr


def allowed(what):
    """Whether the machine lets the program plant its cause."""
    result = subprocess.run([CAUSES, what, "1"], capture_output=True, text=True, timeout=400)
    if result.returncode == 77:
        skip(result.stderr.strip())
    equal(result.returncode, 0, result.stderr)


def chains(values, prefix, part):
    """What the chains with the part add up to."""
    return sum(value for name, value in values.items()
               if name.startswith(prefix) and part in name)


@test
def system_calls_are_counted_one_by_one():
    runs, _ = watch(f"{CAUSES} calls 4321", "syscalls")
    for values in runs:
        equal(values["syscalls.lost"], 0, "lost records")
        equal(values["syscalls.count.getppid"], 4321)
        equal(values["syscalls.count.exit_group"], 1)
        equal("syscalls.time.ms.exit_group" in values, False, "a call that never returned")
        total = sum(v for n, v in values.items() if n.startswith("syscalls.count."))
        equal(values["syscalls.total.count"], total)
        between(values["syscalls.max.us.getppid"] * 4321, values["syscalls.time.ms.getppid"] * 1000,
                float("inf"), "the longest call times their number")
        between(values["assay.traced.slowdown"], 0, float("inf"))


@test
def children_are_traced_and_others_are_not():
    busy = subprocess.Popen(["sh", "-c", "while :; do /bin/true; done"])
    try:
        runs, _ = watch(f"sh -c '{CAUSES} calls 100; {CAUSES} calls 23'", "syscalls", rounds=1)
    finally:
        busy.kill()
        busy.wait()
    # The shell itself asks for its parent once.
    between(runs[0]["syscalls.count.getppid"], 123, 124)


@test
def waits_for_a_wake_up_are_found_where_they_are():
    allowed("wakes")
    runs, _ = watch(f"{CAUSES} wakes 10", "perf-sched")
    for values in runs:
        equal(values["perf-sched.lost"], 0, "lost records")
        # Woken exactly so often; a thread may be preempted just then and leave once more.  A kernel
        # that loses wake-ups is found out.
        woken = chains(values, "perf-sched.sch_delay.count.", "eventfd_read")
        between(woken, max(0, 10 - values["perf-sched.unseen"]), 10)
        between(chains(values, "perf-sched.wait_and_delay.count.", "eventfd_read"), 10, 1000)
        equal(values["perf-sched.total_wait_and_delay.count.ms"],
              sum(v for n, v in values.items() if n.startswith("perf-sched.wait_and_delay.count.")))


@test
def waits_are_as_long_as_the_program_says():
    """The traced run's own bounds, which it notes in a file: the store has those of the measured
    run."""
    allowed("wakes")
    pathlib.Path("bounded").write_text(
        f'#!/bin/sh\nASSAY_METRICS_FD=3 {CAUSES} "$1" "$2" 3> bounds.$1\n')
    os.chmod("bounded", 0o755)
    runs, _ = watch("./bounded wakes 10", "perf-sched", rounds=1)
    bounds = [float(line.split()[2]) for line in pathlib.Path("bounds.wakes").read_text().splitlines()]
    total = chains(runs[0], "perf-sched.wait_and_delay.total.ms.", "eventfd_read")
    # A thread that /proc calls asleep is on its way out of the CPU: half of the pause is sure.
    between(total, bounds[0] / 2, bounds[1], "waits in ms")
    longest = max(v for n, v in runs[0].items()
                  if n.startswith("perf-sched.wait_and_delay.max.ms.") and "eventfd_read" in n)
    count = chains(runs[0], "perf-sched.wait_and_delay.count.", "eventfd_read")
    between(longest * count, total * 0.999999, float("inf"), "the longest wait times their number")


@test
def locks_that_were_taken_are_found_where_they_were_wanted():
    allowed("locks")
    pathlib.Path("bounded").write_text(
        f'#!/bin/sh\nASSAY_METRICS_FD=3 {CAUSES} "$1" "$2" 3> bounds.$1\n')
    os.chmod("bounded", 0o755)
    runs, _ = watch("./bounded locks 7", "lock-contention", rounds=1)
    values = runs[0]
    equal(values["lock-contention.lost"], 0, "lost records")
    writes = {name: value for name, value in values.items()
              if "write" in name and re.search(r"pwrite64|vfs_write", name)
              and re.match(r"lock-contention\.count\.\w*rwsem", name)}
    equal(sum(writes.values()), 7, str(writes))
    bounds = [float(line.split()[2]) for line in pathlib.Path("bounds.locks").read_text().splitlines()]
    total = sum(v for n, v in values.items()
                if n.replace("total.ms", "count", 1) in writes and ".total.ms." in n)
    between(total, bounds[0], bounds[1], "waits in ms")


@test
def a_profile_has_its_functions_with_all_their_callers():
    runs, notes = watch(f"{target('family')} deep 300", "perf-profile")
    for values in runs:
        between(values["perf-profile.samples"], 1, float("inf"))
        own = [v for n, v in values.items() if n.startswith("perf-profile.self.cycles-pp.")]
        between(sum(own), 90, 100.001, "self shares that are shown")
        for name, value in values.items():
            if name.startswith("perf-profile.self."):
                children = values[name.replace(".self.", ".children.", 1)]
                between(children, value - 1e-9, 100.001, name)
    deepest = max(name.count(".") for name in values if name.startswith("perf-profile.calltrace."))
    between(deepest, 40, 1000, "frames of the deepest chain, which recurses forty times")


@test
def the_scheduler_tells_of_its_queues():
    runs, notes = watch("sleep 0.1", "sched_debug", rounds=1)
    values = runs[0]
    for field in ("cpu.nr_running", "cpu.nr_switches"):
        low, high = (values[f"sched_debug.{field}.{kind}"] for kind in ("min", "max"))
        between(values[f"sched_debug.{field}.avg"], low, high, field)
    between(values["sched_debug.cpu.nr_switches.max"], 1, 1e9, "switches during the run")


@test
def what_one_side_never_does_is_zero_and_compared():
    pathlib.Path("two.yaml").write_text(
        f"name: two\ncommand: {CAUSES} {{what}} 10\nfactors: {{what: [calls, wakes]}}\n"
        "metrics: {low: {optional: true}, high: {optional: true}}\n"
        "rounds: 8\nwarmup: 0\nbaseline: {what: calls}\nmonitors: [syscalls]\n")
    allowed("wakes")
    result = assay("run", "--db", "two.db", "two.yaml", check=0)
    if "not available on this machine" in result.stderr:
        skip(result.stderr.strip())
    compare = ("compare", "--db", "two.db", "what=calls", "what=wakes")
    text = assay(*compare, check=0).stdout
    contains(text, "syscalls.count.getppid")
    lkp = assay(*compare, "--lkp", check=0).stdout
    row = [line for line in lkp.splitlines() if line.endswith(" syscalls.count.getppid")]
    equal(len(row), 1, lkp)
    equal(re.sub(r" +", " ", row[0]).split()[:3], ["10.00", "-100.0%", "0.00"])
    contains(lkp, "syscalls.count.eventfd2")


@test
def monitors_are_added_on_the_command_line():
    pathlib.Path("plain.yaml").write_text("name: plain\ncommand: sleep 0\nrounds: 1\n")
    result = assay("run", "--db", "x.db", "--monitor", "meminfo", "--monitor", "vmstat", "plain.yaml",
                   check=0)
    contains(assay("show", "--db", "x.db", "--all", "last", check=0).stdout, "meminfo.")
    wrong = assay("run", "--db", "x.db", "--monitor", "perf-shed", "plain.yaml")
    equal(wrong.returncode != 0, True)
    contains(wrong.stderr, "there is no monitor 'perf-shed'; near: perf-sched")
    listed = assay("run", "--monitor", "list", check=0).stdout
    for name in ("perf-profile", "perf-sched", "lock-contention", "syscalls", "sched_debug"):
        contains(listed, f"\n{name}")


@test
def without_permission_it_says_what_is_missing():
    if os.getuid() != 0:
        skip("only root can become somebody without permission")
    pathlib.Path("plain.yaml").write_text(
        "name: plain\ncommand: sleep 0\nrounds: 1\n"
        "monitors: [perf-sched, lock-contention, syscalls, sched_debug]\n")
    os.chmod(".", 0o777)
    nobody = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
                             ASSAY, "run", "--db", "nobody.db", "plain.yaml"], capture_output=True,
                            text=True, timeout=400)
    if nobody.returncode == 126 or "setpriv" in nobody.stderr:
        skip("another user cannot run this build")
    equal(nobody.returncode, 0, nobody.stderr)
    for name in ("perf-sched", "lock-contention", "syscalls", "sched_debug"):
        contains(nobody.stderr, f"{name}: ")


main()
