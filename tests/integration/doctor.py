# SPDX-License-Identifier: MIT
"""assay doctor: findings agree with the machine, for root and others, and the noise test ends well."""
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import time

from harness import *

STATES = {"yes", "no", "limited", "unknown"}
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def findings(*options, **kwargs):
    record = json.loads(assay("doctor", "--json", *options, check=0, **kwargs).stdout)
    return {finding["id"]: finding for finding in record["machine"]["findings"]}


def read(path):
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError:
        return None


def as_nobody():
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        skip("needs root and setpriv to become another user")
    # The binary must be reachable for others.
    copy = pathlib.Path(os.getcwd()) / "assay"
    shutil.copy(ASSAY, copy)
    os.chmod(os.getcwd(), 0o755)
    return [*NOBODY, str(copy)]


@test
def json_is_complete():
    record = json.loads(assay("doctor", "--json", "--no-noise", check=0).stdout)
    lacks(record, "noise")
    equal(record["format"], "assay-doctor-1")
    machine = record["machine"]
    equal(machine["kernel_release"], os.uname().release)
    equal(machine["arch"], os.uname().machine)
    equal(machine["cpu_usable_count"], len(os.sched_getaffinity(0)))
    equal(machine["page_bytes"], os.sysconf("SC_PAGESIZE"))
    equal(machine["root"], os.geteuid() == 0)
    lacks(json.dumps(record), os.uname().nodename + '"')
    for finding in machine["findings"]:
        for key in ("id", "state", "what", "detail"):
            if not finding.get(key):
                raise AssertionError(f"{finding} lacks {key}")
        if finding["state"] not in STATES:
            raise AssertionError(finding)


@test
def quick_and_full_name_the_same_things():
    quick, full = findings("--quick"), findings("--no-noise")
    equal(set(quick), set(full))
    for name, finding in quick.items():
        # What the quick record only assumed, the trial has settled.
        if not finding.get("assumed"):
            equal(finding["state"], full[name]["state"], name)
    for finding in full.values():
        if finding.get("assumed"):
            contains(["libc-debuginfo", "kernel-debuginfo", "hardware-trace"], finding["id"])


@test
def settings_agree_with_the_kernel():
    found = findings("--quick")
    for name, path in (("perf-event-paranoid", "/proc/sys/kernel/perf_event_paranoid"),
                       ("kptr-restrict", "/proc/sys/kernel/kptr_restrict"),
                       ("aslr", "/proc/sys/kernel/randomize_va_space")):
        text = read(path)
        if text is not None:
            equal(found[name]["value"], int(text), name)
    nodes = [path for path in pathlib.Path("/sys/devices/system/node").glob("node[0-9]*")]
    equal(found["numa"]["value"], max(len(nodes), 1))
    clock = read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    if clock:
        contains(found["clock"]["detail"], clock)
    thp = re.search(r"\[(\w+)\]", read("/sys/kernel/mm/transparent_hugepage/enabled") or "")
    if thp:
        contains(found["thp"]["detail"], thp[1])
    equal(found["btf"]["state"], "yes" if os.path.exists("/sys/kernel/btf/vmlinux") else "no")
    equal(found["psi"]["state"], "yes" if read("/proc/pressure/cpu") else "no")


@test
def tools_are_found_where_path_says():
    found = findings("--no-noise")
    for name in ("perf", "valgrind"):
        path = shutil.which(name)
        if path:
            contains(found[name]["detail"], path)
            if found[name]["state"] == "yes":
                version = subprocess.run([path, "--version"], text=True, capture_output=True).stdout
                contains(version, found[name]["detail"].split(" (")[0])
        else:
            equal(found[name]["state"], "no", name)
    empty = findings("--no-noise", env={"PATH": os.getcwd()})
    for name in ("perf", "valgrind", "qemu"):
        equal(empty[name]["state"], "no", name)
        contains(empty[name], "remedy")


@test
def a_tool_that_fails_or_floods_is_survived():
    for body, state in (("exit 3", "limited"), ("yes | head -c 1000000", "limited"),
                        ("echo 'fine 1.0'", "yes")):
        tool = pathlib.Path("perf")
        tool.write_text(f"#!/bin/sh\n{body}\n")
        tool.chmod(0o755)
        found = findings("--no-noise", env={"PATH": os.getcwd() + ":/usr/bin:/bin"})
        equal(found["perf"]["state"], state, body)


@test
def software_events_count_where_perf_events_are_allowed():
    found = findings("--quick")
    if found["perf-event-paranoid"]["state"] == "no":
        skip("perf events are closed here")
    for event in ("task-clock", "page-faults"):
        contains(found["software-events"]["detail"].split(";")[0], event)
    has_pmu = any(os.path.exists(f"/sys/bus/event_source/devices/{name}")
                  for name in ("cpu", "cpu_core", "armv8_pmuv3_0", "armv8_pmuv3"))
    if not has_pmu:
        equal(found["pmu"]["state"], "no")
        equal(found["pmu"]["value"], 0)
        contains(found["pmu"]["remedy"], "--sim")


@test
def root_can_trace():
    if os.geteuid() != 0:
        skip("needs root")
    found = findings("--no-noise")
    if "has SYS_ADMIN" not in found["rights"]["detail"]:
        skip("root without CAP_SYS_ADMIN")
    for name, path in (("uprobes", "/sys/bus/event_source/devices/uprobe"),
                       ("kprobes", "/sys/bus/event_source/devices/kprobe"),
                       ("tracepoints", "/sys/bus/event_source/devices/tracepoint")):
        equal(found[name]["state"] == "yes", os.path.exists(path), name)


@test
def nobody_gets_remedies():
    command = as_nobody()
    result = subprocess.run([*command, "doctor", "--json", "--no-noise"], text=True,
                            capture_output=True, stdin=subprocess.DEVNULL, timeout=240)
    equal((result.returncode, result.stderr), (0, ""))
    machine = json.loads(result.stdout)["machine"]
    equal(machine["root"], False)
    found = {finding["id"]: finding for finding in machine["findings"]}
    if int(read("/proc/sys/kernel/perf_event_paranoid") or 0) >= 2:
        for name in ("perf-event-paranoid", "software-events", "system-wide"):
            if found[name]["state"] == "yes":
                raise AssertionError(found[name])
            contains(found[name]["remedy"], "sysctl")
    for name in ("tracepoints", "uprobes", "ebpf", "rights", "realtime"):
        if found[name]["state"] != "yes":
            contains(found[name], "remedy")


@test
def refusals_by_rlimit_are_told():
    found = json.loads(subprocess.run(["prlimit", "--nofile=32", "--memlock=4096", ASSAY, "doctor",
                                       "--quick", "--json"], text=True, capture_output=True,
                                      check=True).stdout)
    found = {finding["id"]: finding for finding in found["machine"]["findings"]}
    equal((found["open-files"]["state"], found["open-files"]["value"]), ("limited", 32))
    equal((found["memlock"]["state"], found["memlock"]["value"]), ("limited", 4096))
    contains(found["memlock"]["remedy"], "ulimit -l")


@test
def the_table_fits_80_columns():
    lines = assay("doctor", "--no-noise", check=0).stdout.splitlines()
    too_long = [line for line in lines if len(line) > 80]
    equal(too_long, [])
    contains("\n".join(lines), "hardware counters")
    lacks("\n".join(lines), "\033")


@test
def noise_is_told_for_wall_and_cpu_time():
    record = json.loads(assay("doctor", "--json", "--seconds", "1", "--seed", "7", check=0).stdout)
    noise = record["noise"]
    equal(noise["seed"], 7)
    lacks(noise, "ended_by_signal")
    for name in ("wall", "cpu"):
        measure = noise[name]
        equal(len(measure["first_ns"]), noise["round_count"], name)
        equal(len(measure["second_ns"]), noise["round_count"], name)
        equal(measure["sitting_count"], noise["round_count"] // measure["sitting_rounds"], name)
        if min(measure["first_ns"] + measure["second_ns"], default=1) <= 0:
            raise AssertionError(f"{name}: a run took no time")
        if noise["round_count"] >= 10:
            between(measure["false_alarm_rate"], 0, 1, name)
            between(measure["smallest_change"], 1e-9, 100, name)
    text = assay("doctor", "--seconds", "0.3", "--seed", "7", check=0).stdout
    contains(text, "seed 7")
    contains(text, "smallest change in 10 s")
    equal([line for line in text.splitlines() if len(line) > 80], [])


def children_of(pid):
    try:
        return read(f"/proc/{pid}/task/{pid}/children") or ""
    except OSError:
        return ""


@test
def an_interrupt_prints_what_there_is():
    for number, whole_group in ((signal.SIGINT, True), (signal.SIGTERM, False)):
        process = subprocess.Popen([ASSAY, "doctor", "--json", "--seconds", "100"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
        deadline = time.monotonic() + 240
        worker = ""
        while "--noise-worker" not in worker and time.monotonic() < deadline:
            pids = children_of(process.pid).split()
            worker = (read(f"/proc/{pids[0]}/cmdline") or "") if pids else ""
        time.sleep(0.5)
        (os.killpg if whole_group else os.kill)(process.pid, number)
        output, errors = process.communicate(timeout=240)
        equal((process.returncode, errors), (128 + number, ""))
        equal(json.loads(output)["noise"]["ended_by_signal"], number)
        # A run that was shot in the middle of its exit may take a moment to go.
        deadline = time.monotonic() + 240
        while (left := processes(session=process.pid)) and time.monotonic() < deadline:
            time.sleep(0.05)
        equal(left, [], "processes left behind")


@test
def progress_shows_on_a_terminal_only():
    leader, follower = pty.openpty()
    process = subprocess.Popen([ASSAY, "doctor", "--json", "--seconds", "3"], stderr=follower,
                               stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                               env=dict(os.environ, TERM="xterm"))
    os.close(follower)
    seen = b""
    try:
        while chunk := os.read(leader, 4096):
            seen += chunk
    except OSError:
        pass  # the other end is closed
    equal(process.wait(), 0)
    contains(seen.decode(), "noise test:")
    os.close(leader)


@test
def wrong_options_are_refused():
    for options in (["--seconds", "0"], ["--seconds", "soon"], ["--seed", "x"], ["extra"]):
        result = assay("doctor", *options, check=2)
        contains(result.stderr, "--help")
    contains(assay("doctor", "--seconds", "0").stderr, "--no-noise")
    assay("doctor", "--noise-worker", "x", check=2)
    assay("doctor", "--noise-worker", "10", check=0)


main()
