# SPDX-License-Identifier: MIT
"""assay stat against real programs: what it counts, what it passes through, what it says."""
import csv
import errno
import io
import json
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import subprocess
import time

from harness import *

ROOT_USER = os.geteuid() == 0


def stat_json(*args, code=0, **kwargs):
    result = assay("stat", "--json", "-o", "stat.json", *args, check=code, **kwargs)
    with open("stat.json") as file:
        return json.load(file)


def counts(document, event):
    """The event's values over all runs."""
    return [entry["value"] for run in document["runs"] for entry in run["counts"]
            if entry["event"] == event]


def notes(document):
    return {note["id"]: note["text"] for note in document["notes"]}


def unwrapped(text):
    """Text with its line breaks undone, for phrases that may be wrapped anywhere."""
    return " ".join(text.split())


def can_count_kernel():
    paranoid = int(open("/proc/sys/kernel/perf_event_paranoid").read())
    return ROOT_USER or paranoid < 2


def need_root(why):
    if not ROOT_USER:
        skip(f"{why} needs root")


def no_tracing():
    if not ROOT_USER:
        return "tracepoints need root"
    return None


# What is counted.

def fixed_layout(*command):
    """The command without address randomisation, so that its page faults repeat."""
    result = subprocess.run(["setarch", "-R", *map(str, command)], text=True, capture_output=True,
                            stdin=subprocess.DEVNULL)
    if "setarch" in result.stderr:
        skip("address randomisation cannot be switched off: " + result.stderr.strip())
    return result


def our_faults(*command):
    fixed_layout(ASSAY, "stat", "--json", "-o", "x.json", "-r", 10, "-e", "page-faults:u", "--",
                 *command)
    with open("x.json") as file:
        return counts(json.load(file), "page-faults:u")


@test
def page_faults_are_exact_to_the_page():
    # The empty twin is the same program with nothing to do.  A kernel short of memory takes pages
    # away, which come back by a fault more: the count that most runs have is the program's own.
    empty, full = our_faults(target("pages"), "000"), our_faults(target("pages"), "777")
    usual = [max(set(counted), key=counted.count) for counted in (empty, full)]
    equal([min(empty), min(full)], usual, f"the counts repeat: {empty}, {full}")
    equal(usual[1] - usual[0], 777, "pages touched")


@test
def software_counts_equal_perfs():
    if not shutil.which("perf"):
        skip("perf is not installed")
    command = [target("pages"), "500"]
    result = fixed_layout("perf", "stat", "-x,", "-e", "page-faults:u", "--", *command)
    line = [row for row in result.stderr.splitlines() if "page-faults" in row]
    if not line or not line[0].split(",")[0].isdigit():
        skip("perf cannot count here: " + result.stderr.strip()[:100])
    equal(min(our_faults(*command)), int(line[0].split(",")[0]), "faults, ours against perf's")


@test
def children_are_followed():
    alone = min(counts(stat_json("-r", 5, "-e", "page-faults", "--", target("pages"), 1000, 0),
                       "page-faults"))
    family = min(counts(stat_json("-r", 5, "-e", "page-faults", "--", target("pages"), 1000, 3),
                        "page-faults"))
    between(family - alone, 3000, 3400, "faults of three children")


@test
def every_run_counts_for_itself():
    document = stat_json("-r", 50, "-e", "page-faults,task-clock", "--", target("pages"), 100)
    equal(len(document["runs"]), 50)
    for value in counts(document, "page-faults"):
        between(value, 100, 300, "faults of one run")
    for value in counts(document, "task-clock"):
        between(value, 1, 1e9, "time of one run")
    summary = {row["event"]: row for row in document["summary"]}["page-faults"]
    values = counts(document, "page-faults")
    equal(summary["n"], 50)
    between(summary["mean"] - sum(values) / 50, -1e-6, 1e-6)
    equal((summary["min"], summary["max"]), (min(values), max(values)))


@test
def tracepoints_count_system_calls():
    need_root("tracefs")
    event = "raw_syscalls:sys_enter"
    low = min(counts(stat_json("-r", 3, "-e", event, "--", target("syscalls"), "0000"), event))
    high = min(counts(stat_json("-r", 3, "-e", event, "--", target("syscalls"), "5000"), event))
    equal(high - low, 5000, "system calls")


@test
def a_pattern_names_several_tracepoints():
    need_root("tracefs")
    document = stat_json("-e", "sched:sched_process_f*", "--", "true")
    contains([event["name"] for event in document["events"]], "sched:sched_process_fork")


@test
def uprobes_count_calls():
    if not os.path.exists("/sys/bus/event_source/devices/uprobe"):
        skip("this kernel has no uprobes")
    need_root("uprobes")
    event = f"uprobe:{target('calls')}:marked"
    equal(counts(stat_json("-e", event, "--", target("calls"), 321), event), [321])
    event = f"uretprobe:{target('calls')}:marked"
    equal(counts(stat_json("-e", event, "--", target("calls"), 12), event), [12])


@test
def uprobes_follow_children_and_leave_nothing():
    if not os.path.exists("/sys/bus/event_source/devices/uprobe"):
        skip("this kernel has no uprobes")
    need_root("uprobes")
    # Blanks and # separate words and start comments where the kernel takes probes' definitions.
    os.mkdir("a b#c")
    shutil.copy(target("calls"), "a b#c/calls")
    calls = "./a b#c/calls"
    event = f"uprobe:{calls}:marked"
    ways = [[], ["-D", 1]]
    if assay("stat", "--per-thread", "-e", "page-faults", "--", "true").returncode == 0:
        ways.append(["--per-thread"])
    for options in ways:
        document = stat_json(*options, "-e", event, "--", "sh", "-c",
                             f"sleep 0.1; '{calls}' 5; '{calls}' 7 && '{calls}' 8 | cat")
        if "threads" in document:
            equal(sum(t["counts"][0]["value"] for t in document["threads"]), 20, "of all threads")
        equal(counts(document, event), [20], f"calls of children with {options}")
    process = subprocess.Popen(["sh", "-c", f"sleep 0.5; '{calls}' 3 | cat; '{calls}' 4"])
    document = stat_json("-e", event, "-p", process.pid)
    equal((process.wait(), counts(document, event)), (0, [7]), "children of a running process")
    document = stat_json("-a", "-e", event, "--", calls, 6)
    equal(counts(document, event), [6], "calls on all CPUs")
    place = "/sys/kernel/tracing/uprobe_events"
    if os.path.exists(place):
        lacks(open(place).read(), "assay/")


@test
def breakpoints_count_accesses():
    table = subprocess.run(["nm", target("calls")], text=True, capture_output=True).stdout
    address = re.search(r"^([0-9a-f]+) [BbDd] watched$", table, re.MULTILINE)[1]
    event = f"mem:0x{address}/8:w:u"
    document = stat_json("-e", event, "--", target("calls"), 99)
    if not document["events"][0]["supported"]:
        skip("no hardware breakpoints here: " + document["events"][0]["why"])
    equal(counts(document, event), [99])


@test
def groups_and_modifiers_are_counted():
    document = stat_json("-e", "{page-faults:u,task-clock:u},minor-faults:u", "--",
                         target("pages"), 200)
    equal([event.get("group") for event in document["events"]], [1, 1, None])
    between(counts(document, "page-faults:u")[0], 200, 400)
    if can_count_kernel():
        document = stat_json("-e", "page-faults:u,page-faults:k", "--", target("pages"), 200)
        between(counts(document, "page-faults:k")[0], 0, 150)


@test
def sysfs_events_are_counted():
    if not os.path.exists("/sys/bus/event_source/devices/msr/events/tsc"):
        skip("no msr PMU here")
    document = stat_json("-e", "msr/tsc/,msr/config=0,name=mytsc/", "--", target("spin"), 5)
    if not document["events"][0]["supported"]:
        skip("msr/tsc/ cannot be opened: " + document["events"][0]["why"])
    ticks, again = counts(document, "msr/tsc/")[0], counts(document, "mytsc")[0]
    if ticks < 1000:
        raise AssertionError(f"msr/tsc/ counted {ticks}")
    between(ticks / again, 0.9, 1.1)


# Whom to count.

@test
def a_running_process_is_counted():
    process = subprocess.Popen([target("spin"), "100000"])
    try:
        document = stat_json("-e", "task-clock", "-p", process.pid, "--timeout", "200")
        equal(document["target"], "pid")
        if counts(document, "task-clock")[0] <= 0:
            raise AssertionError("no CPU time of a spinning process")
        equal(process.poll(), None, "the process goes on")
        # Ends by itself when the process ends.
        started = subprocess.Popen([ASSAY, "stat", "-e", "task-clock", "-p", str(process.pid)],
                                   stderr=subprocess.PIPE, text=True)
        time.sleep(0.3)
        process.kill()
        process.wait()
        output = started.communicate(timeout=240)[1]
        contains(output, f"process id {process.pid}")
        equal(started.returncode, 0)
    finally:
        process.kill()
        process.wait()


@test
def a_process_that_is_not_there_is_named():
    result = assay("stat", "-p", 999999999, check=125)
    contains(result.stderr, "there is no process 999999999")
    code = ("import threading as t; e = t.Event(); "
            "t.Thread(target=lambda: (print(t.get_native_id(), flush=True), e.wait(20))).start()")
    process = subprocess.Popen(["python3", "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        thread = int(process.stdout.readline())
        contains(assay("stat", "-p", thread, check=125).stderr,
                 "a thread of process")
    finally:
        process.kill()
        process.communicate()


@test
def whole_cpus_are_counted():
    need_root("counting whole CPUs")
    document = stat_json("-a", "-e", "cpu-clock", "--", "sleep", "0.2")
    equal(document["target"], "cpus")
    online = os.sysconf("SC_NPROCESSORS_ONLN")
    wall = document["runs"][0]["wall_ns"]
    between(counts(document, "cpu-clock")[0] / wall, 0.9 * online, 1.1 * online, "CPUs")
    one = stat_json("-C", "0", "-e", "cpu-clock", "--", "sleep", "0.2")
    between(counts(one, "cpu-clock")[0] / one["runs"][0]["wall_ns"], 0.9, 1.1, "CPUs")
    contains(assay("stat", "-C", "999", "--", "true", check=125).stderr, "CPU 999 is not online")
    # The command is counted from its start.
    event = "raw_syscalls:sys_enter"
    alone = counts(stat_json("-e", event, "--", target("syscalls"), 0), event)[0]
    among = counts(stat_json("-a", "-e", event, "--", target("syscalls"), 0), event)[0]
    between(among, alone, 1e9, "system calls on all CPUs")


@test
def a_cgroup_is_counted():
    need_root("a cgroup of our own")
    hierarchy = None
    for line in open("/proc/mounts"):
        _, place, kind, flags = line.split()[:4]
        if kind == "cgroup2" or (kind == "cgroup" and "perf_event" in flags.split(",")):
            hierarchy = place
            break
    folder = f"{hierarchy}/assay-test-{os.getpid()}" if hierarchy else None
    try:
        os.mkdir(folder) if folder else None
    except OSError as error:
        skip(f"cgroups cannot be made here: {error}")
    if not folder:
        skip("no cgroup hierarchy that perf supports")
    process = None
    try:
        process = subprocess.Popen([target("spin"), "100000"])
        with open(folder + "/cgroup.procs", "w") as file:
            file.write(str(process.pid))
        document = stat_json("-e", "task-clock", "-G", os.path.basename(folder), "--", "sleep",
                             "0.2")
        equal(document["target"], "cgroup")
        if not counts(document, "task-clock")[0] > 0:
            raise AssertionError("nothing counted in the cgroup")
    finally:
        if process:
            process.kill()
            process.wait()
        time.sleep(0.05)
        os.rmdir(folder)


@test
def an_unknown_cgroup_is_named():
    need_root("cgroups")
    contains(assay("stat", "-G", "no-such-group", "--", "true", check=125).stderr, "cgroup")


@test
def threads_of_a_command_are_told_apart():
    tried = assay("stat", "--per-thread", "-e", "page-faults", "--", target("pages"), 1)
    if "this kernel does not report a thread's counts" in tried.stderr:
        skip("this kernel does not report a thread's counts when it ends")
    document = stat_json("--per-thread", "-e", "page-faults", "--", target("pages"), 300, 0, 3)
    by_name = {thread["name"]: thread["counts"][0]["value"] for thread in document["threads"]}
    for name in ["worker0", "worker1", "worker2", "pages"]:
        if by_name[name] is None:
            raise AssertionError(f"{name} was not counted: {document['threads']}, {document['losses']}")
        between(by_name[name], 300, 500, name)
    total = sum(thread["counts"][0]["value"] for thread in document["threads"])
    equal(total, counts(document, "page-faults")[0], "the threads' sum")
    for thread in document["threads"]:
        count = thread["counts"][0]
        equal(count["running_ns"], count["enabled_ns"], "times of an event that needs no counter")


@test
def threads_of_a_process_are_told_apart():
    process = subprocess.Popen([target("spin"), "100000"])
    try:
        document = stat_json("--per-thread", "-e", "task-clock", "-p", process.pid, "--timeout",
                             "200")
        equal([thread["tid"] for thread in document["threads"]], [process.pid])
        equal(document["threads"][0]["name"], "spin")
    finally:
        process.kill()
        process.wait()


# When.

@test
def intervals_add_up_to_the_whole():
    document = stat_json("-I", 50, "-e", "page-faults", "--", "sh", "-c",
                         f"{target('pages')} 100; sleep 0.12; {target('pages')} 200")
    if len(document["intervals"]) < 3:
        raise AssertionError(f"{len(document['intervals'])} intervals")
    parts = sum(interval["counts"][0]["value"] for interval in document["intervals"])
    equal(parts, counts(document, "page-faults")[0], "the intervals' sum")
    text = assay("stat", "-I", 50, "-e", "page-faults", "--", "sleep", "0.12", check=0).stderr
    contains(text, "counts unit events")
    assay("stat", "-I", 50, "-o", "x.txt", "-e", "page-faults", "--", "sleep", "0.12", check=0)
    contains(open("x.txt").read(), "counts unit events")


@test
def a_delay_leaves_the_start_out():
    # The pages are touched at once, so nothing is left to count after the delay.
    command = ["sh", "-c", f"{target('pages')} 5000; sleep 0.6"]
    whole = counts(stat_json("-e", "page-faults", "--", *command), "page-faults")[0]
    late = counts(stat_json("-D", 400, "-e", "page-faults", "--", *command), "page-faults")[0]
    between(whole, 5000, 6000)
    between(late, 0, 500, "faults after the delay")
    document = stat_json("-D", 2000, "-e", "page-faults", "--", "true")
    contains(notes(document), "never-enabled")


@test
def a_time_limit_ends_the_command():
    result = assay("stat", "--timeout", "200", "-e", "task-clock", "--", "sleep", "60", check=124)
    contains(result.stderr, "reached the time limit")
    # Where it cannot be kept for want of descriptors, that is said.
    for limit in range(4, 9):
        result = assay("stat", "--timeout", "100", "-e", "task-clock", "--", "sleep", "60",
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE,
                                                             (limit, limit)))
        contains([124, 125, 127], result.returncode)


# What passes through.

@test
def streams_pass_through():
    result = subprocess.run([ASSAY, "stat", "-o", "/dev/null", "--", "sh", "-c",
                             "cat; echo error >&2"], input="in\n", text=True, capture_output=True)
    equal((result.stdout, result.stderr, result.returncode), ("in\n", "error\n", 0))


@test
def exit_codes_and_signals_pass_through():
    assay("stat", "--", "sh", "-c", "exit 42", check=42)
    result = assay("stat", "--", "sh", "-c", "kill -SEGV $$", check=139)
    contains(result.stderr, "ended by signal 11")
    document = stat_json("-e", "task-clock", "--", "sh", "-c", "kill -9 $$", code=137)
    equal((document["runs"][0]["exit_code"], document["runs"][0]["signal"]), (None, 9))


@test
def a_command_that_cannot_start_counts_nothing():
    result = assay("stat", "--", "no-such-command-anywhere", check=127)
    contains(result.stderr, "no such command in PATH")
    lacks(result.stderr, "Performance counter stats")
    assay("stat", "--", "/etc/passwd", check=126)
    assay("stat", "--", "/", check=126)
    assay("stat", "-D", 10, "--", "no-such-command-anywhere", check=127)
    if ROOT_USER:
        assay("stat", "-a", "--", "no-such-command-anywhere", check=127)
    assay("stat", "--sim", "--", "no-such-command-anywhere", check=127)


@test
def ctrl_c_ends_the_command_and_prints():
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(ASSAY, [ASSAY, "stat", "-r", "5", "--", "sleep", "60"])
    time.sleep(1.0)
    os.write(terminal, b"\x03")
    output = b""
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:
            break
        if not chunk:
            break
        output += chunk
    _, status = os.waitpid(pid, 0)
    text = output.decode(errors="replace")
    contains(text, "1 run finished")
    contains(text, "task-clock")
    equal(os.waitstatus_to_exitcode(status), 130)
    equal(processes(parent=pid), [], "processes left behind")


@test
def a_signal_for_assay_reaches_the_command():
    process = subprocess.Popen([ASSAY, "stat", "--", "sleep", "60"], stderr=subprocess.PIPE,
                               text=True, start_new_session=True)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=240)[1]
    equal(process.returncode, 143)
    contains(output, "ended by signal 15")


@test
def runs_that_were_not_made_are_a_failure():
    process = subprocess.Popen([ASSAY, "stat", "--json", "-o", "x.json", "-r", "1000000", "--",
                                "true"], start_new_session=True)
    time.sleep(0.7)
    process.send_signal(signal.SIGTERM)
    equal(process.wait(timeout=240), 143)
    losses = json.load(open("x.json"))["losses"]
    equal(losses["interrupted_by_signal"], signal.SIGTERM)


@test
def a_run_that_was_cut_short_is_not_in_the_mean():
    # The first run is over when its file is there; the second waits for the signal.
    with open("work", "w") as file:
        file.write("test -e first && { touch second; exec sleep 600; }\ntouch first\n")
    process = subprocess.Popen([ASSAY, "stat", "--json", "-o", "x.json", "-r", "3", "--", "sh",
                                "work"], start_new_session=True)
    while not os.path.exists("second"):
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    equal(process.wait(timeout=240), 143)
    document = json.load(open("x.json"))
    equal(document["losses"]["interrupted_by_signal"], signal.SIGTERM)
    equal(len(document["runs"]), 1)
    contains(json.dumps(document), "the run that it cut short is not counted")


@test
def processes_left_behind_are_reported():
    document = stat_json("-r", 2, "-e", "task-clock", "--", "sh", "-c", "sleep 0.5 &")
    contains(notes(document), "left-behind")


@test
def descriptors_do_not_leak_into_the_command():
    result = assay("stat", "-o", "out", "--", "sh", "-c", "ls /proc/self/fd | wc -l")
    plain = subprocess.run(["sh", "-c", "ls /proc/self/fd | wc -l"], text=True,
                           stdin=subprocess.DEVNULL, capture_output=True)
    equal(result.stdout, plain.stdout)


# What it says.

@test
def the_layout_is_perfs():
    text = assay("stat", "--", target("spin"), 50, check=0).stderr
    contains(text, f" Performance counter stats for '{target('spin')} 50':\n\n")
    if not re.search(r"^ {11,}[\d,]+\.\d\d msec task-clock {23}#\s+0\.\d{3} CPUs utilized$", text,
                     re.MULTILINE):
        raise AssertionError(text)
    for line in [r"^\s+\d+      context-switches", r"^\s+[\d,]+      page-faults",
                 r"^\s+\d+\.\d{9} seconds time elapsed$", r"^\s+\d+\.\d{9} seconds user$",
                 r"^\s+\d+\.\d{9} seconds sys$", r"^\s+[\d,]+ kB peak RSS"]:
        if not re.search(line, text, re.MULTILINE):
            raise AssertionError(f"no {line} in {text}")


@test
def peak_memory_is_the_commands_or_said_to_be_a_bound():
    small = stat_json("-e", "task-clock", "--", target("empty-static"))["runs"][0]
    large = stat_json("-e", "task-clock", "--", target("pages"), 20000)["runs"][0]
    equal(large["rss_is_bound"], False)
    if not small["rss_is_bound"] and not 100e3 < small["rss_bytes_max"] < 3e6:
        raise AssertionError(f"{small['rss_bytes_max']} bytes for a small program")
    runs = stat_json("-r", 25, "-e", "task-clock", "--", "true")["runs"]
    exact = [run["rss_bytes_max"] for run in runs if not run["rss_is_bound"]]
    # The first twenty are started by something smaller than assay.
    if not SANITIZED and not (len(exact) == 20 and all(100e3 < peak < 3e6 for peak in exact)):
        raise AssertionError(f"{exact}")
    page = os.sysconf("SC_PAGESIZE")
    between(large["rss_bytes_max"], 20000 * page, 20000 * page + (8 << 20), "peak memory")


@test
def a_missing_pmu_is_explained_once():
    document = stat_json("--", "true")
    missing = [event for event in document["events"] if not event["supported"]]
    if not missing:
        skip("this machine has all default events")
    text = assay("stat", "--", "true", check=0).stderr
    for event in missing:
        contains(text, "   <not supported>      " + event["name"])
    equal(unwrapped(text).count("no hardware PMU on this machine"), 1)
    contains(text, "assay stat --sim")


@test
def a_ran_the_loader_is_called_one():
    contains(notes(stat_json("-r", 3, "--", target("empty"))), "mostly-startup")
    lacks(notes(stat_json("--", target("spin"), 200)), "mostly-startup")


@test
def json_and_csv_go_to_standard_output_or_a_file():
    command = ["-e", "page-faults", "--", "true"]
    for form, read in (("json", json.loads), ("csv", lambda text: list(csv.reader(io.StringIO(text))))):
        result = assay("stat", "--" + form, *command, check=0)
        read(result.stdout)
        equal(result.stderr, "")
        result = assay("stat", f"--{form}=x", *command, check=0)
        read(pathlib.Path("x").read_text())
        equal(result.stdout, "")
        contains(result.stderr, "page-faults")
        result = assay("stat", "--" + form, "-o", "y", *command, check=0)
        read(pathlib.Path("y").read_text())
        equal(result.stdout + result.stderr, "")
        assay("stat", f"--{form}=x", "-o", "z", *command, check=0)
        read(pathlib.Path("x").read_text())
        contains(pathlib.Path("z").read_text(), "page-faults")
    contains(assay("stat", "--json=none/x", "--", "touch", "made", check=125).stderr, "none/x")
    equal(pathlib.Path("made").exists(), False, "the command ran though its result has no place")


@test
def csv_holds_every_run():
    result = assay("stat", "--csv", "-o", "-", "-r", 3, "-e", "page-faults,task-clock", "--",
                   target("pages"), 10, check=0)
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    equal({None in row for row in rows}, {False}, "columns beyond the header")
    for row in rows:  # what a reader takes for a column of numbers is one
        for key in ("value", "raw", "enabled_ns", "running_ns"):
            float(row[key] or 0)
    about = {row["event"]: row for row in rows if row["where"] == "all"}
    contains(about["command"]["note"], "pages 10")
    equal((about["lost-records"]["value"], about["runs-finished"]["value"]), ("0", "3"))
    faults = [row for row in rows if row["event"] == "page-faults"]
    equal([row["where"] for row in faults], ["run 1", "run 2", "run 3"])
    for row in faults:
        between(float(row["value"]), 10, 300)
        equal(row["enabled_ns"], row["running_ns"])


@test
def json_carries_the_machine_and_hostile_names():
    os.symlink(target("empty"), b'evil"\xff\n\x1b[31m')
    result = subprocess.run([ASSAY, "stat", "--json", "-o", "x.json", "--",
                             b'./evil"\xff\n\x1b[31m'], capture_output=True)
    equal(result.returncode, 0)
    document = json.load(open("x.json"))
    equal(document["command"], ['./evil"\ufffd\n\x1b[31m'])
    contains(document["machine"], "findings")
    text = subprocess.run([ASSAY, "stat", "--", b'./evil"\xff\n\x1b[31m'], capture_output=True)
    lacks(text.stderr, b"\x1b")


@test
def intervals_tell_their_run():
    document = stat_json("-r", 2, "-I", 50, "-e", "page-faults", "--", "sleep", "0.07")
    equal(sorted({interval["run"] for interval in document["intervals"]}), [1, 2])
    for number, run in enumerate(document["runs"], 1):
        parts = sum(interval["counts"][0]["value"] for interval in document["intervals"]
                    if interval["run"] == number)
        equal(parts, run["counts"][0]["value"], f"the intervals of run {number}")


# Bad input.

@test
def bad_input_gets_a_word_and_the_right_code():
    cases = [
        (["-e", "cycels", "--", "true"], 125, "similar names: cycles"),
        (["-e", "", "--", "true"], 125, "missing"),
        (["-e", "{cycles,faults", "--", "true"], 125, "unclosed"),
        (["-e", "nopmu/x=1/", "--", "true"], 125, "no PMU 'nopmu'"),
        (["-e", "uprobe:/bin/no-such:main", "--", "true"], 125, "/bin/no-such"),
        (["-e", "mem:here", "--", "true"], 125, "mem:ADDRESS"),
        (["-r", "0", "--", "true"], 2, "at least 1"),
        (["-r", "x", "--", "true"], 2, "not a whole number"),
        (["--repaet", "3", "--", "true"], 2, "did you mean --repeat"),
        (["-C", "x", "--", "true"], 125, "list of CPUs"),
        (["-p", "abc"], 125, "not a whole number"),
        (["-p", "1", "-a"], 2, "cannot be used with"),
        ([], 2, "nothing to count"),
        (["--json", "--csv", "--", "true"], 2, "cannot be used together"),
        (["--sim=most", "--", "true"], 2, "--sim=full"),
        (["--sim", "-a", "--", "true"], 2, "--sim can be combined"),
        (["-I", "0.1", "--", "true"], 2, "at least 1 ms"),
        (["-I", "0", "--", "true"], 2, "at least 1 ms"),
        (["--timeout", "0", "--", "true"], 2, "--timeout 0"),
        (["-p", ","], 125, "no process ID"),
        (["-e", "r11111111111111111111", "--", "true"], 125, "16 hexadecimal digits"),
        (["-e", "x" * 100000, "--", "true"], 125, "unknown event 'xxx"),
        (["--" + "x" * 100000], 2, "--help lists them all"),
        (["-o", "x" * 100000, "--", "true"], 125, "File name too long"),
        (["-e", "mem:\x1b[31m", "--", "true"], 125, "'mem:\\x1b[31m'"),
    ]
    for args, code, words in cases:
        result = assay("stat", *args, check=code)
        contains(result.stderr, words)
        lacks(result.stderr, "Performance counter stats")


@test
def an_output_that_cannot_be_written():
    # A place that is closed from the start is said before anything runs.
    result = assay("stat", "-o", "/no/such/folder/x", "--", "touch", "ran", check=125)
    contains(result.stderr, "/no/such/folder/x")
    equal(os.path.exists("ran"), False, "the command ran")
    # A full disk is said afterwards, and the result is not lost.
    result = assay("stat", "-o", "/dev/full", "--", "true", check=125)
    contains(result.stderr, "disk is full")
    contains(result.stderr, "task-clock")
    os.mkdir("closed")
    if ROOT_USER:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", "closed"],
                                 capture_output=True)
        if mounted.returncode:
            skip("cannot mount a read-only file system")
        try:
            result = assay("stat", "-o", "closed/x", "--", "true", check=125)
            contains(result.stderr, "read-only")
        finally:
            subprocess.run(["umount", "-l", "closed"])
    else:
        os.chmod("closed", 0o500)
        contains(assay("stat", "-o", "closed/x", "--", "true", check=125).stderr, "closed/x")


@test
def an_output_that_is_there_already():
    # The command's own output is not lost when the report goes to the same file.
    with open("both", "w") as both:
        subprocess.run([ASSAY, "stat", "-o", "/dev/stdout", "--", "echo", "hello"], stdout=both)
    text = open("both").read()
    contains(text, "hello\n")
    contains(text, "task-clock")
    os.symlink("later", "link")
    assay("stat", "-o", "link", "--", "true", check=0)
    equal(os.path.islink("link"), True, "the link is a link")
    contains(open("later").read(), "task-clock")
    with open("one", "w") as file:
        file.write("x" * 100000)
    os.link("one", "other")
    assay("stat", "-o", "one", "--", "true", check=0)
    equal(open("one").read(), open("other").read(), "one file with two names")
    lacks(open("one").read(), "xxx")
    # Who may not write the file may not replace it either.
    os.chmod(".", 0o777)
    with open("kept", "w") as file:
        file.write("kept")
    os.chmod("kept", 0o444)
    shutil.copy(ASSAY, "assay")
    command = ["./assay", "stat", "-e", "task-clock", "-o", "kept", "--", "true"]
    if ROOT_USER:
        command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *command]
    result = subprocess.run(command, capture_output=True, text=True)
    equal((result.returncode, open("kept").read()), (125, "kept"))
    contains(result.stderr, "kept: Permission denied")


@test
def closed_streams_stay_closed():
    shell = '"$0" stat -e task-clock -o out -- sh -c "! (exec 3>&1) 2>/dev/null" >&-'
    result = subprocess.run(["sh", "-c", shell, ASSAY])
    equal(result.returncode, 0, "the command's own view of its closed output")
    contains(open("out").read(), "task-clock")
    result = subprocess.run(["sh", "-c", '"$0" stat -o out -- /no/such 2>&-', ASSAY])
    equal(result.returncode, 127)
    result = subprocess.run(["sh", "-c", '"$0" events >&-', ASSAY], text=True, capture_output=True)
    equal(result.returncode, 1)
    contains(result.stderr, "Bad file descriptor")


@test
def an_interrupted_run_leaves_no_half_file():
    process = subprocess.Popen([ASSAY, "stat", "--json", "-o", "x.json", "--", "sleep", "60"],
                               stderr=subprocess.DEVNULL, start_new_session=True)
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    process.wait(timeout=240)
    equal(json.load(open("x.json"))["losses"]["interrupted_by_signal"], signal.SIGINT)
    equal([name for name in os.listdir(".") if name.startswith("x.json.")], [])


@test
def switches_and_migrations_come_from_accounting_where_events_are_not_permitted():
    need_root("dropping privileges")
    if int(open("/proc/sys/kernel/perf_event_paranoid").read()) < 2:
        skip("kernel.perf_event_paranoid permits the events")
    cpus = sorted(os.sched_getaffinity(0))
    os.chmod(".", 0o755)
    shutil.copy(ASSAY, "assay")
    moves = f"import os\nfor i in range(40): os.sched_setaffinity(0, [{cpus}[i % {len(cpus)}]])"
    sleeps = "import time\nfor i in range(50): time.sleep(0.001)"
    events = "context-switches,cpu-migrations"

    def run(*args):
        return subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
                               "./assay", "stat", *args], text=True, capture_output=True, check=True)

    def figures(code):
        result = run("--json", "-e", events, "--", "/usr/bin/python3", "-c", code)
        document = json.loads(result.stdout)
        equal([event["accounted"] for event in document["events"]], [True, True])
        contains(notes(document), "accounted")
        return [count["value"] for count in document["runs"][0]["counts"]]

    between(figures(sleeps)[0], 50, 10000, "switches of 50 sleeps")
    if len(cpus) > 1:
        between(figures(moves)[1], 39, 10000, "migrations of 40 moves between processors")
    # Within a group the others are counted as ever, and with intervals there is nothing to take.
    text = run("-e", "{context-switches,task-clock,page-faults}", "--", "true").stderr
    lacks(text, "<not supported>")
    contains(run("-I", "10", "-e", "context-switches", "--", "sleep", "0.02").stderr,
             "<not supported>      context-switches")


@test
def where_perf_events_are_refused_the_kernels_accounting_is_told():
    """As for users of a Debian as it is installed (kernel.perf_event_paranoid=3), and in containers."""
    def run(number, *args):
        result = subprocess.run([target("refuses"), str(number), ASSAY, *map(str, args)], text=True,
                                capture_output=True, stdin=subprocess.DEVNULL)
        if result.returncode == 77:
            skip("no seccomp filters here")
        return result

    for number in errno.EACCES, errno.EPERM, errno.ENOSYS:
        result = run(number, "stat", "--json", "--", target("pages"), 1000)
        equal(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        known = {event["name"]: event for event in document["events"]}
        equal([known[name]["accounted"] for name in ("task-clock", "context-switches", "page-faults")], [True] * 3)
        equal([known[name]["supported"] for name in ("cycles", "instructions")], [False, False])
        between(counts(document, "page-faults")[0], 1000, 2000, "faults of 1000 pages")
        ran = document["runs"][0]
        equal(counts(document, "task-clock")[0], ran["user_ns"] + ran["sys_ns"])
        contains(notes(document)["accounted"], "task-clock")
        # What the kernel does not keep cannot be had.
        result = run(number, "stat", "-e", "instructions,cycles", "--", "true")
        equal(result.returncode, 125)
        contains(result.stderr, "instructions: ")
    result = run(errno.EACCES, "ab", "--rounds", 8, f"{target('spin')} 1", f"{target('spin')} 40")
    equal(result.returncode, 0, result.stderr)
    contains(result.stdout, "slower")
    contains(unwrapped(result.stdout), "no permission to count these events")
    result = run(errno.EACCES, "record", "-o", "x.data", "--", "true")
    equal((result.returncode, os.path.exists("x.data")), (125, False))
    contains(result.stderr, "perf_event")
    result = run(errno.EACCES, "explain", "true", "sleep 0.01")
    equal(result.returncode, 1)
    contains(result.stderr, "'assay ab' compares without them")
    lacks(result.stderr, "failed")


@test
def the_events_of_a_group_have_one_pair_of_times():
    document = stat_json("-r", 3, "-e", "{task-clock,page-faults:u,cpu-clock},page-faults:u", "--",
                         target("spin"), 20)
    for run in document["runs"]:
        times = {(count["enabled_ns"], count["running_ns"]) for count in run["counts"][:3]}
        equal(len(times), 1, f"pairs of times in a group: {times}")


@test
def without_permission_the_user_part_is_counted():
    need_root("dropping privileges")
    if int(open("/proc/sys/kernel/perf_event_paranoid").read()) != 2:
        skip("kernel.perf_event_paranoid is not 2")
    os.chmod(".", 0o777)
    shutil.copy(ASSAY, "assay")
    shutil.copy(target("pages"), "pages")
    as_nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]

    def run(*args):
        return subprocess.run([*as_nobody, "./assay", "stat", *args], text=True,
                              capture_output=True)

    text = run("--", "./pages", "100").stderr
    contains(text, "page-faults:u")
    contains(unwrapped(text), "page-faults: counted in user mode only")
    lacks(text, "task-clock:u")  # the clock counts the kernel's time as well
    contains(text, "kernel.perf_event_paranoid")
    # A set-uid program takes the counters off: 0 is no count of it.
    os.chmod("pages", 0o4755)
    contains(unwrapped(run("--", "./pages", "100").stderr), "The program is set-uid")
    result = run("-e", "uprobe:./pages:main", "--", "true")
    equal(result.returncode, 125)
    contains(result.stderr, "probes need root")
    result = run("-a", "--timeout", "10")
    equal(result.returncode, 125)
    contains(result.stderr, "counting whole CPUs needs root")
    result = run("-e", "sched:sched_switch", "--", "true")
    equal(result.returncode, 125)
    contains(result.stderr, "root")


# Without a PMU.

@test
def simulation_repeats_exactly():
    if not shutil.which("valgrind"):
        skip("valgrind is not installed")
    document = stat_json("--sim", "-r", 2, "--", target("calls"), 10000)
    values = counts(document, "sim:instructions")
    equal(values[0], values[1], "instructions of two runs")
    contains(document["simulator"]["tool"], "valgrind-")
    more = counts(stat_json("--sim", "--", target("calls"), 20000), "sim:instructions")[0]
    # Each call is a handful of instructions, always the same number.
    per_call = (more - values[0]) / 10000
    between(per_call, 4, 30, "instructions per call")
    equal(per_call, round(per_call))
    text = assay("stat", "--sim=full", "--", target("calls"), 10, check=0).stderr
    for name in ["sim:instructions", "sim:branches", "sim:branch-misses",
                 "sim:L1-dcache-load-misses", "sim:LLC-misses", "user mode only", "times slower"]:
        contains(text, name)
    lacks(text, "seconds time elapsed")


@test
def simulation_passes_codes_streams_and_children():
    if not shutil.which("valgrind"):
        skip("valgrind is not installed")
    result = assay("stat", "--sim", "--json", "-o", "x", "--", "sh", "-c", "/bin/true; cat; exit 7",
                   check=7, stdin=None, input="through\n")
    equal((result.stdout, result.stderr), ("through\n", ""))
    equal(json.load(open("x"))["runs"][0]["processes"], 3)
    assay("stat", "--sim", "--", "sh", "-c", "kill -9 $$", check=137)


@test
def an_interrupted_simulation_prints_what_was_counted():
    if not shutil.which("valgrind"):
        skip("valgrind is not installed")
    os.mkdir("100%pure")
    process = subprocess.Popen([ASSAY, "stat", "--sim", "--json", "-o", "x.json", "-r", "100000",
                                "--", target("empty")], start_new_session=True,
                               env=dict(os.environ, TMPDIR="100%pure"))
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    equal(process.wait(timeout=240), 130)
    losses = json.load(open("x.json"))["losses"]
    equal(losses["interrupted_by_signal"], signal.SIGINT)
    equal(os.listdir("100%pure"), [], "files left behind")


@test
def a_simulation_keeps_runs_apart():
    if not shutil.which("valgrind"):
        skip("valgrind is not installed")
    os.mkdir("tmp")
    document = stat_json("--sim", "-r", 2, "--", "sh", "-c", f"(sleep 3; {target('empty')}) & exit 0",
                         env={"TMPDIR": os.path.abspath("tmp")})
    equal([run["left_behind"] for run in document["runs"]], [True, True])
    equal([run["processes"] for run in document["runs"]], [1, 1])
    # What goes on still finds its folder.
    for _ in range(150):
        written = [name for folder in os.listdir("tmp") for name in os.listdir(f"tmp/{folder}")
                   if name.startswith("out.")]
        if len(written) >= 4:
            return
        time.sleep(0.2)
    raise AssertionError(f"only {written} after 30 s")


@test
def events_lists_and_searches():
    names = assay("events", "--names", check=0).stdout.split()
    contains(names, "task-clock")
    text = assay("events", "fault", check=0).stdout
    contains(text, "page-faults, faults")
    contains(json.loads(assay("events", "--json", "clock", check=0).stdout)[0], "help")
    contains(assay("events", "--all", "cycles", check=0).stdout, "cycles, cpu-cycles")
    contains(assay("events", "no-such-thing-at-all", check=1).stderr, "no-such-thing-at-all")
    if ROOT_USER:
        contains(assay("events", "sched:sched_switch", check=0).stdout, "prev_comm prev_pid")


@test
def cpus_and_cores_are_told_apart():
    need_root("-a needs permission")
    document = stat_json("-a", "-A", "-e", "cpu-clock,context-switches", "--", "sleep", "0.2")
    online = len(os.sched_getaffinity(0))
    between(len(document["cpus"]), online, os.cpu_count(), "CPUs")
    equal(document["cpus"][0]["name"], f"CPU{document['cpus'][0]['cpu']}")
    for index, event in enumerate(("cpu-clock", "context-switches")):
        each = sum(cpu["counts"][index]["value"] for cpu in document["cpus"])
        equal(each, counts(document, event)[0], f"{event} of all CPUs")
    text = assay("stat", "-a", "--per-core", "-e", "cpu-clock", "--", "true", check=0).stderr
    contains(text, " S0-C")
    contains(text, " all CPUs:")
    contains(assay("stat", "-A", "--", "true", check=2).stderr, "need -a, -C or -G")


@test
def fields_are_in_perfs_order():
    events = "task-clock,page-faults,cycles"
    ours = assay("stat", "-x", ";", "-e", events, "--", "true", check=0).stderr.splitlines()
    equal(len(ours), 3, "lines")
    clock = ours[0].split(";")
    equal(clock[1:3], ["msec", "task-clock"])
    equal([len(line.split(";")) for line in ours], [7, 7, 7], "fields")
    between(float(clock[0]), 0.001, 1e5, "ms")
    between(float(clock[4]), 99, 100, "share of the time")
    equal(ours[1].split(";")[1:3], ["", "page-faults" if can_count_kernel() or perf_events_are_refused() else "page-faults:u"])
    several = assay("stat", "-x", ",", "-r", "3", "-e", "page-faults", "--", "true", check=0).stderr
    contains(several.splitlines()[0].split(",")[3], "%")
    if shutil.which("perf") and ROOT_USER:
        theirs = subprocess.run(["perf", "stat", "-x", ";", "-e", events, "true"], text=True,
                                capture_output=True).stderr.splitlines()
        for our, their in zip(ours, theirs):
            equal([our.split(";")[i] for i in (1, 2)], [their.split(";")[i] for i in (1, 2)], "fields")


@test
def what_did_not_happen_shares_a_line():
    events = "page-faults,alignment-faults,emulation-faults,bpf-output"
    text = assay("stat", "-e", events, "--", "true", check=0).stderr
    contains(text, " 0      alignment-faults")
    contains(text, ", emulation-faults")
    equal(len([line for line in text.splitlines() if re.match(r" +\d+ .*faults", line)]), 2, "lines")


@test
def metrics_name_their_events():
    document = stat_json("-M", "ipc,cpus", "--", "true")
    equal([event["name"] for event in document["events"]],
          ["instructions", "cycles", "task-clock"])
    contains(assay("stat", "-M", "speed", "--", "true", check=125).stderr, "known are ipc")
    result = assay("stat", "--topdown", "--", "true")
    if result.returncode:
        contains(result.stderr, "--topdown: no PMU here lists events of the top-down method")


main()
