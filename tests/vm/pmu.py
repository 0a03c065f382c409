# SPDX-License-Identifier: MIT
"""Hardware counters for real: the PMU of the emulated machine, and what assay makes of it.

The machine has a cycle counter and six others (cortex-a57), of which QEMU feeds cycles and
instructions.  Under -icount an instruction takes two nanoseconds and a cycle is one of them, so
that the truth is known: loop's work to the instruction, its start-up (about 10,700 instructions
of a static program) by counting a loop of one turn."""
import functools

from guest import guest, run, run_json, stat_json
from harness import *

# The instructions of a turn of tests/vm/loop.c's loops in user mode.
SPIN, CALLS = 6, 4
# Of user mode instructions between two runs that differ in their arguments alone.
TOLERANCE = 200


def stat(events, *command, options=()):
    """The runs of assay stat --json: each a list of counts in the order of the events."""
    document = stat_json("-e", events, *options, "--", *command)
    return [counts["counts"] for counts in document["runs"]]


def values(events, *command, options=()):
    """The values of one run, all of events that are supported."""
    return [count["value"] for count in stat(events, *command, options=options)[0]]


def not_multiplexed(count):
    return count["running_ns"] == count["enabled_ns"] > 0 and count["raw"] == count["value"]


@functools.cache
def turn_ns():
    """How long events have the counters before others get them."""
    file = "/sys/bus/event_source/devices/armv8_pmuv3/perf_event_mux_interval_ms"
    return int(guest().get(file)) * 1_000_000


@functools.cache
def start_ns():
    """How long the program takes that does nothing: exec, page faults, its end."""
    return stat("instructions:u", "loop", "spin", "1")[0][0]["enabled_ns"]


def scaling_error(count):
    """What rotation allows a scaled value to be off by, as a share.  The loop's instructions come
    evenly, so that only the ends matter: each time that a value is scaled with is known to one turn,
    and an event may have had its turn while the program started, or not."""
    return (turn_ns() * (1 / count["running_ns"] + 1 / count["enabled_ns"])
            + start_ns() / count["running_ns"])


@test
def the_emulated_pmu_counts_instructions_and_cycles():
    lines = [line.split() for line in run("probe").text().splitlines()]
    counted = {name: rest for name, _, *rest in lines}
    between(int(counted["instructions"][0]), 6_000_000, 6_000_100, "instructions")
    between(int(counted["cycles"][0]), 12_000_000, 12_000_200, "cycles")
    equal(counted["inst-retired"][0], counted["instructions"][0], "the raw event's count")
    equal(counted["cpu-cycles"][0], counted["cycles"][0], "the raw event's count")
    equal(counted["branches"][0], "error", "branches")


@test
def ten_million_turns_are_sixty_million_instructions():
    many, = values("instructions:u", "loop", "spin", "10000000")
    one, = values("instructions:u", "loop", "spin", "00000001")
    between(many - one, SPIN * 9_999_999 - TOLERANCE, SPIN * 9_999_999 + TOLERANCE, "instructions")
    between(many, 60_000_000, 60_030_000, "instructions with the program's start")


@test
def a_group_is_counted_at_the_same_time():
    for counts in stat("{cycles,instructions}", "loop", "spin", 1_000_000, options=["-r", "3"]):
        cycles, instructions = counts
        equal(cycles["value"], 2 * instructions["value"], "cycles")
        equal([cycles["enabled_ns"], cycles["running_ns"]],
              [instructions["enabled_ns"], instructions["running_ns"]], "times")


@test
def user_and_kernel_add_up():
    both, user, kernel = values("{instructions,instructions:u,instructions:k}",
                                "loop", "spin", 1_000_000)
    equal(user + kernel, both, "user and kernel")
    between(user, SPIN * 1_000_000, SPIN * 1_000_000 + 30_000, "user")
    between(kernel, 10_000, 2_000_000, "kernel: exec, page faults and timer")


@test
def system_calls_are_the_kernels_work():
    user, kernel = values("instructions:u,instructions:k", "loop", "calls", "100000")
    user_none, kernel_none = values("instructions:u,instructions:k", "loop", "calls", "000000")
    between(user - user_none, CALLS * 100_000 - TOLERANCE, CALLS * 100_000 + TOLERANCE, "user")
    between((kernel - kernel_none) / 100_000, 100, 5_000, "kernel instructions of a getppid")


@test
def children_and_threads_are_followed():
    for how in ("fork", "threads"):
        none, = values("instructions:u", "loop", how, 0, 1_000_000)
        four, = values("instructions:u", "loop", how, 4, 1_000_000)
        between(four - none, 4 * SPIN * 1_000_000, 4 * SPIN * 1_000_000 + 40_000, how)


@test
def every_run_counts_the_same():
    runs = stat("instructions:u,instructions:k,task-clock", "loop", "spin", 100_000,
                options=["-r", "20"])
    equal(len(runs), 20, "runs")
    user = [counts[0]["value"] for counts in runs]
    between(max(user) - min(user), 0, TOLERANCE, "spread in user mode")
    kernel = [counts[1]["value"] for counts in runs]
    between(min(kernel), 10_000, max(kernel), "kernel instructions of the least run")
    # Another measurement of the same program counts what the first one did.
    again, = values("instructions:u", "loop", "spin", 100_000)
    between(again, user[0] - TOLERANCE, user[0] + TOLERANCE, "another measurement")


@test
def events_that_fit_do_not_take_turns():
    # Six counters and the one for cycles.
    events = ",".join(["instructions:u"] * 6 + ["cycles:u"])
    for count in stat(events, "loop", "spin", 2_000_000)[0]:
        equal(not_multiplexed(count), True, str(count))


@test
def more_events_than_counters_are_scaled():
    truth, = values("instructions:u", "loop", "spin", 40_000_000)
    counts = stat(",".join(["instructions:u"] * 9 + ["cycles:u"]), "loop", "spin", 40_000_000)[0]
    *instructions, cycles = counts
    for count in instructions:
        between(count["running_ns"] / count["enabled_ns"], 0.3, 0.95, "share of the time")
        between(count["raw"] / truth, 0.3, 0.95, "share of the truth")
        off = scaling_error(count)
        between(off, 0, 0.04, "what scaling may be off by")
        between(count["value"] / truth, 1 - off, 1 + off, "scaled value to the truth")
    off = scaling_error(cycles)
    between(cycles["value"] / (2 * truth), 1 - off, 1 + off, "cycles to the truth")
    # Six run at any time: all of them together six times as long as each is enabled.
    total = sum(count["running_ns"] for count in instructions)
    between(total / instructions[0]["enabled_ns"], 5.5, 6.5, "counters in use")


@test
def the_share_of_time_is_printed():
    events = ",".join(["instructions:u"] * 9)
    errors = run("assay", "stat", "-e", events, "--", "loop", "spin", 10_000_000).error_text()
    lines = [line for line in errors.splitlines() if " instructions:u " in line]
    equal(len(lines), 9, "lines")
    for line in lines:
        share = line.rpartition("(")[2].removesuffix("%)")
        between(float(share), 30, 95, "share printed")


@test
def groups_take_turns_as_a_whole():
    pair = "{instructions:u,instructions:u}"
    counts = stat(",".join([pair] * 5), "loop", "spin", 20_000_000)[0]
    for first, second in zip(counts[::2], counts[1::2]):
        equal(first, second, "the group's second event")
        between(first["running_ns"] / first["enabled_ns"], 0.3, 0.95, "share of the time")
        off = scaling_error(first)
        between(first["value"] / (SPIN * 20e6), 1 - off, 1 + off, "instructions to the truth")


@test
def a_group_larger_than_the_pmu_is_refused_in_words():
    events = "{" + ",".join(["instructions:u"] * 7) + "}"
    document = stat_json("-e", events, "--", "loop", "spin", 100)
    supported = [event["supported"] for event in document["events"]]
    equal(supported, [True] * 6 + [False], "supported")
    contains(document["events"][6]["why"], "more events than counters")


@test
def names_raw_numbers_and_pmu_terms_agree():
    first, *others = values("{instructions:u,r8:u,armv8_pmuv3/inst_retired/u,"
                            "armv8_pmuv3/event=8/u}", "loop", "spin", 1_000_000)
    equal(others, [first] * 3, "other ways to say instructions")


@test
def the_default_events_and_their_figures():
    errors = run("assay", "stat", "--", "loop", "spin", 1_000_000).error_text()
    contains(errors, "0.50  insn per cycle")
    contains(errors, "GHz")
    contains(errors, "<not supported>      branches")


@test
def intervals_add_up():
    document = stat_json("-I", "20", "-e", "instructions:u", "--",
                         "loop", "spin", 10_000_000)
    parts = [interval["counts"][0]["raw"] for interval in document["intervals"]]
    between(len(parts), 5, 12, "intervals of 120 ms")
    equal(sum(parts), document["runs"][0]["counts"][0]["raw"], "the intervals' sum")


@test
def a_running_process_is_counted():
    document = stat_json("-e", "instructions:u", "-p", "PID", before=["loop", "beside", 1_000_000])
    between(document["runs"][0]["counts"][0]["value"], SPIN * 1_000_000,
            SPIN * 1_000_000 + 30_000, "instructions")


@test
def a_whole_cpu_is_counted():
    for options in (["-a"], ["-C", "0"]):
        user, both = values("instructions:u,instructions", "loop", "spin", 1_000_000,
                            options=options)
        between(user, SPIN * 1_000_000, SPIN * 1_000_000 + 1_000_000, "user")
        between(both, user, SPIN * 1_000_000 + 10_000_000, "user and kernel")


@test
def a_kernel_function_is_counted():
    count, = values("kprobe:__arm64_sys_getppid", "loop", "calls", 1234)
    equal(count, 1234, "calls of getppid")
    # A probe is inherited, too, and the forks of what is counted succeed.
    none, = values("kprobe:kernel_clone", "loop", "fork", 0, 1000)
    three, = values("kprobe:kernel_clone", "loop", "fork", 3, 1000)
    equal(three - none, 3, "forks")


@test
def a_pinned_event_without_a_counter_is_no_zero():
    document = stat_json("-C", "0", "-e", ",".join(["instructions:D"] * 9), "--", "loop", "spin",
                         1_000_000)
    states = [count["state"] for count in document["runs"][0]["counts"]]
    contains(states, "counted")
    contains(states, "not counted")
    for count in document["runs"][0]["counts"]:
        if count["state"] == "counted":
            between(count["value"], 6_000_000, 1e9, "instructions")
        else:
            equal((count["value"], count["raw"]), (None, 0))


@test
def an_ordinary_user_counts_user_mode_where_allowed():
    paranoid = "/proc/sys/kernel/perf_event_paranoid"
    before = guest().get(paranoid)
    try:
        guest().put(paranoid, b"3\n")  # Debian's own level
        refused = run("assay", "stat", "-e", "instructions", "--", "loop", "spin", 100, uid=1000,
                      check=None)
        equal(refused.returncode != 0, True, "refused")
        contains(refused.error_text(), "perf_event_paranoid")
        guest().put(paranoid, b"2\n")
        document = stat_json("-e", "instructions", "--", "loop", "spin", 1_000_000,
                             uid=1000)
    finally:
        guest().put(paranoid, before)
    equal(document["events"][0]["user_only"], True, "user_only")
    between(document["runs"][0]["counts"][0]["value"], SPIN * 1_000_000,
            SPIN * 1_000_000 + 30_000, "instructions")


@test
def threads_are_told_apart_or_it_is_said_that_they_cannot():
    arguments = ["--per-thread", "-e", "instructions:u", "--", "loop", "threads", 2, 1_000_000]
    result = run("assay", "stat", *arguments, check=None)
    if result.returncode != 0:  # Linux 6.1
        contains(result.error_text(), "this kernel does not report a thread's counts")
        return
    counts = [thread["counts"][0]["value"] for thread in stat_json(*arguments)["threads"]]
    equal(sum(count >= SPIN * 1_000_000 for count in counts), 2, "threads that spun")


@test
def events_lists_what_the_pmu_has():
    listed = {event["name"]: event["supported"]
              for event in run_json("assay", "events", "--all", "--json")}
    for name in ("cycles", "instructions", "armv8_pmuv3/inst_retired/"):
        equal(listed[name], True, name)
    equal(listed["branch-misses"], False, "branch-misses")


main()
