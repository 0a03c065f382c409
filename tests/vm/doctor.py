# SPDX-License-Identifier: MIT
"""assay doctor on a machine with hardware counters and kprobes, as root and as an ordinary user,
and whether its advice helps there: settings can be changed in an emulated machine."""
from guest import guest, run, run_json
from harness import *

USER = 65534


def findings(*options, uid=0):
    record = run_json("assay", "doctor", "--json", *options, uid=uid)
    return {finding["id"]: finding for finding in record["machine"]["findings"]}


def states(found, *names):
    return {name: found[name]["state"] for name in names}


@test
def counters_are_counted_and_tried():
    found = findings("--no-noise")
    # A cycle counter and six others.
    equal((found["pmu"]["state"], found["pmu"]["value"]), ("yes", 7))
    contains(found["pmu"]["detail"], "count: cycles, instructions;")
    equal(states(found, "pmu-sampling", "precise-ip", "branch-stack"),
          {"pmu-sampling": "yes", "precise-ip": "no", "branch-stack": "no"})


@test
def probes_are_tried():
    found = findings("--no-noise")
    names = ["tracepoints", "uprobes", "kprobes", "breakpoints", "ebpf", "btf", "io-uring"]
    equal(states(found, *names), dict.fromkeys(names, "yes"))
    contains(found["uprobes"]["detail"], "each return")
    equal(findings("--quick")["kprobes"].get("assumed"), True)


@test
def advice_on_paranoid_helps():
    path = "/proc/sys/kernel/perf_event_paranoid"
    before = guest().get(path)
    names = ["perf-event-paranoid", "software-events", "clock-sampling", "kptr-restrict",
             "breakpoints"]
    try:
        guest().put(path, b"3")
        found = findings("--quick", uid=USER)
        equal(states(found, *names, "pmu"), dict.fromkeys(names, "no") | {"pmu": "unknown"})
        for name in (*names, "pmu"):
            contains(found[name]["remedy"], "sudo sysctl kernel.perf_event_paranoid=1")
        guest().put(path, b"2")
        found = findings("--quick", uid=USER)
        equal(states(found, "perf-event-paranoid", "software-events", "pmu"),
              {"perf-event-paranoid": "limited", "software-events": "limited", "pmu": "yes"})
        guest().put(path, b"1")
        found = findings("--quick", uid=USER)
        equal(states(found, *names), dict.fromkeys(names, "yes"))
        equal(found["system-wide"]["state"], "no")
        contains(found["system-wide"]["remedy"], "kernel.perf_event_paranoid=0")
        guest().put(path, b"0")
        equal(findings("--quick", uid=USER)["system-wide"]["state"], "yes")
    finally:
        guest().put(path, before)


@test
def the_noise_test_runs():
    noise = run_json("assay", "doctor", "--json", "--seconds", "1")["noise"]
    between(noise["round_count"], 1, 10000, "rounds")
    # The emulated machine's time is that of its instructions.
    between(noise["wall"]["median_ns"], 3e6, 50e6, "a run")


main()
