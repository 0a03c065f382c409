# SPDX-License-Identifier: MIT
"""assay record: what it writes must be opened by perf without a word, and read back the same."""
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import time

from harness import *
from perfdump import assay_dump, perf, perf_dump

ROOT_USER = os.geteuid() == 0
SPIN = [target("spin"), "100"]
LOAD = ["sh", "-c", "for i in 1 2 3; do sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; "
        "done; ls / >/dev/null"]


def need_root(why):
    if not ROOT_USER:
        skip(f"{why} needs root")


def record(*options, command=LOAD, code=0, output="perf.data", **kwargs):
    return assay("record", *options, "-o", output, "--", *command, check=code, **kwargs)


def told_by_perf(result):
    """perf's complaints of a file; perf 6.12 also tells of its own bookkeeping of namespaces."""
    return re.sub(r"^assertion failed at util/.*\n", "", result.stderr, flags=re.M)


def check(path="perf.data", minimum=10, said=None, lossy=False):
    """perf and assay read the same from the file, and perf has nothing to say about it except, in a
    lossy one, the losses.  A busy machine may lose records in any recording: then perf must say so,
    as assay does."""
    ours = assay_dump(path)
    lossy = lossy or ours.losses["lost"] > 0
    equal(ours.trouble, "", "trouble")
    for loss in ("malformed", "unknown", "unmatched", "undecompressed", "missing"):
        equal(ours.losses[loss], 0, loss)
    if len(ours.samples) < minimum:
        raise AssertionError(f"only {len(ours.samples)} samples")
    equal(ours.times(), sorted(ours.times()), "order of time")
    if said is not None:
        count = int(re.search(r"record: ([\d,]+) samples", said)[1].replace(",", ""))
        equal(count, len(ours.samples), "samples told")
    if shutil.which("perf"):
        theirs = perf_dump(path)
        complaints = told_by_perf(theirs)
        equal("lost" in complaints if lossy else not complaints, True, complaints)
        equal(ours.keys(), theirs.keys(), "samples")
        equal(sorted(ours.maps), sorted(theirs.maps), "maps")
        report = perf("report", "--stdio", "-i", path)
        if report.returncode < 0:
            skip(f"perf report itself died: {report.stderr.strip()}")
        equal(report.returncode, 0, report.stderr)
        complaints = told_by_perf(report)
        equal("lost" in complaints if lossy else not complaints, True, complaints)
    return ours


# What is recorded.

@test
def a_command_with_frame_pointers():
    result = record("--call-graph=fp", "-F", "3000")
    dump = check(said=result.stderr)
    contains(result.stderr, "-> perf.data; 0 lost")
    between(max(len(sample.chain) for sample in dump.samples), 3, 300, "longest chain")
    equal({sample.comm for sample in dump.samples} - {"sh", "ls"}, set(), "names")
    contains(dump.info, f"release={os.uname().release}")
    contains(dump.info, "host=-")
    contains(dump.command, "assay record --call-graph=fp -F 3000")


@test
def without_call_graphs_and_without_a_file_name():
    assay("record", "--", *SPIN, check=0)
    dump = check()
    equal({sample.chain for sample in dump.samples}, {()}, "chains")
    assay("record", "-q", "--", *SPIN, check=0)
    check("perf.data.old")


@test
def dwarf_stacks():
    record("--call-graph", "dwarf,4096", command=SPIN)
    dump = check()
    if not any(sample.stack for sample in dump.samples):
        raise AssertionError("no stacks")
    assay("record", "-q", "-g", "dwarf", "-o", "short.data", *SPIN, check=0)
    if not any(sample.stack for sample in check("short.data").samples):
        raise AssertionError("no stacks with -g dwarf")


@test
def call_graphs_are_recorded_by_what_fits_the_program():
    # A C library without frame pointers, as nearly everywhere, or a program without them.
    result = record("-g", command=SPIN)
    says = result.stderr
    if "by frame pointers" in says:
        skip(f"programs and libraries keep frame pointers here: {says}")
    contains(says, "call graphs by copies of the stack: ")
    contains(says, "frame pointers (")
    dump = check()
    contains(assay("report", "perf.data", "--stdio", check=0).stdout, "main")
    # What was copied is kept, not the room for 64 KiB.
    between(size("perf.data"), 1, 16384 * (len(dump.samples) + 20), "bytes of the file")


@test
def a_program_that_keeps_frame_pointers_is_recorded_by_them():
    compiler = shutil.which("gcc")
    if not compiler or os.uname().machine != "x86_64":
        skip("needs gcc on x86_64")
    with open("framed.c", "w") as file:
        file.write("static volatile unsigned long sink;\n"
                   "__attribute__((noinline)) void turn(long n) "
                   "{ for (long i = 0; i < n; i++) sink += (unsigned long)i; }\n"
                   "__attribute__((noinline)) void often(void) "
                   "{ for (int i = 0; i < 200; i++) { turn(1000000); sink++; } }\n"
                   "void _start(void) { often(); "
                   "__asm__ volatile(\"syscall\" :: \"a\"(60), \"D\"(0)); __builtin_unreachable(); }\n")
    subprocess.run([compiler, "-O0", "-g", "-static", "-nostdlib", "-fno-omit-frame-pointer",
                    "-fno-stack-protector", "framed.c", "-o", "framed"], check=True)
    result = record("-g", command=["./framed"])
    contains(result.stderr, "call graphs by frame pointers: framed set them up")
    check()
    contains(assay("report", "perf.data", "--stdio", check=0).stdout, "often")
    # With optimization turn() has no frame, as it calls nothing: its caller would be missing.
    subprocess.run([compiler, "-O1", "-g", "-static", "-nostdlib", "-fno-omit-frame-pointer",
                    "-fno-stack-protector", "framed.c", "-o", "leaf"], check=True)
    result = record("-g", output="leaf.data", command=["./leaf"])
    contains(result.stderr, "call graphs by copies of the stack: ")
    contains(assay("report", "leaf.data", "--stdio", check=0).stdout, "often")


@test
def several_events():
    record("--call-graph=fp", "-e", "cpu-clock,page-faults", "-e", "task-clock", "-F", "3000")
    dump = check()
    equal([name.split(":")[0] for name in dump.events], ["cpu-clock", "page-faults", "task-clock"])
    equal({sample.event for sample in dump.samples}, set(dump.events), "events of samples")


@test
def a_fixed_period():
    record("-e", "task-clock", "-c", "500000", command=SPIN)
    dump = check()
    equal({sample.period for sample in dump.samples}, {500000}, "periods")


@test
def compressed():
    record("-z", "--call-graph=fp", "-F", "5000")
    contains(check().info, "compressed=1")
    # The layout's version and kind, as perf writes them.
    result = perf("record", "-q", "-z", "-o", "theirs.data", "--", "true")
    if result.returncode == 0:
        equal(feature("perf.data", 27)[:8], feature("theirs.data", 27)[:8], "HEADER_COMPRESSED")


def feature(path, bit):
    """The bytes of one feature of a perf.data file."""
    data = open(path, "rb").read()
    flags = int.from_bytes(data[72:104], "little")
    index = bin(flags & ((1 << bit) - 1)).count("1")
    at = sum(struct.unpack_from("<QQ", data, 40)) + 16 * index
    offset, size = struct.unpack_from("<QQ", data, at)
    return data[offset:offset + size]


@test
def through_a_pipe():
    result = subprocess.run([ASSAY, "record", "-q", "-o", "-", "--call-graph=fp", "--", "sh", "-c",
                             "echo to the terminal; exec " + " ".join(SPIN)],
                            capture_output=True, stdin=subprocess.DEVNULL)
    equal(result.returncode, 0, "exit code")
    contains(result.stderr.decode(), "to the terminal")
    with open("pipe.data", "wb") as file:
        file.write(result.stdout)
    dump = check("pipe.data")
    contains(dump.info, "pipe=1")
    contains(dump.info, f"release={os.uname().release}")


@test
def the_whole_machine():
    need_root("record -a")
    result = record("-a", "--call-graph=fp", command=SPIN)
    dump = check(said=result.stderr)
    between(len({cpu for cpu in (sample.cpu for sample in dump.samples)}), 1, 10000, "CPUs")
    # Maps of processes that ran before, this one among them.
    if not any(pid == os.getpid() for pid, *_ in dump.maps):
        raise AssertionError("this process has no maps")


@test
def a_process_that_runs_already():
    process = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        result = assay("record", "--call-graph=fp", "-p", process.pid, "--duration", "0.5", check=0)
    finally:
        process.kill()
        process.wait()
    dump = check(said=result.stderr)
    equal({sample.pid for sample in dump.samples}, {process.pid}, "processes")
    equal({sample.comm for sample in dump.samples}, {"sh"}, "names")
    names = {name for pid, _, _, _, name in dump.maps if pid == process.pid}
    if not any("libc" in name for name in names):
        raise AssertionError(f"maps: {names}")


@test
def it_ends_with_the_process():
    process = subprocess.Popen([*SPIN[:1], "300"])
    assay("record", "-q", "-p", process.pid, check=0)
    equal(process.wait(), 0, "exit code")


@test
def the_duration_ends_the_recording_but_not_the_command():
    # The command runs until the file is finished: its header then has feature bits.
    bits = "od -An -j72 -N8 -tx8 perf.data"
    result = record("--duration", "0.2", code=3, command=[
        "sh", "-c", f'while [ "$({bits})" = " 0000000000000000" ]; do :; done; echo end; exit 3'])
    contains(result.stdout, "end")
    check(minimum=1, said=result.stderr)  # how many fit into 0.2 s is the machine's affair


@test
def some_cpus_only():
    record("-C", "0", "-F", "2000", command=["taskset", "-c", "0", *SPIN])
    equal({sample.cpu for sample in check().samples}, {0}, "CPUs")


@test
def tracepoints():
    need_root("a tracepoint")
    record("-e", "sched:sched_process_exec", command=["sh", "-c", "ls >/dev/null; ls >/dev/null"])
    dump = check(minimum=3)
    equal(len(dump.samples), 3, "samples: sh and two ls")
    text = perf("script", "-i", "perf.data").stdout
    contains(text, "sched:sched_process_exec: filename=")


@test
def tracepoints_through_a_pipe():
    need_root("a tracepoint")
    with open("pipe.data", "wb") as file:
        subprocess.run([ASSAY, "record", "-q", "-o", "-", "-e", "sched:sched_process_exec", "--",
                        "sh", "-c", "ls >/dev/null 2>&1; ls >/dev/null 2>&1"], stdout=file)
    equal(len(check("pipe.data", minimum=3).samples), 3, "samples")


@test
def probes_are_sampled_in_children():
    need_root("uprobes")
    if not os.path.exists("/sys/bus/event_source/devices/uprobe"):
        skip("this kernel has no uprobes")
    # The command forks while the probe is inherited.
    record("-e", f"uprobe:{target('calls')}:marked",
           command=["sh", "-c", f"{target('calls')} 40; {target('calls')} 2; true"])
    equal(len(assay_dump("perf.data").samples), 42)
    theirs = perf("script", "-i", "perf.data")
    equal(theirs.returncode, 0, "perf script's exit code")
    equal(theirs.stdout.count(":marked: "), 42, "samples that perf shows")


@test
def children_and_threads_are_followed():
    record("-F", "2000", "--call-graph=fp", command=["sh", "-c", f"{SPIN[0]} 100 & {SPIN[0]} 100; wait"])
    dump = check()
    spinning = {sample.pid for sample in dump.samples if sample.comm == "spin"}
    equal(len(spinning), 2, "processes named spin")


# Waiting.

# Of a sleep of 20 ms.  The timer is set a moment before the thread leaves the processor, a long one on
# a machine with much to do, and the wait is what is left of it.
SLEPT_NS = 10_000_000

def can_sample_kernel():
    return ROOT_USER or int(open("/proc/sys/kernel/perf_event_paranoid").read()) <= 1


@test
def waits_are_found_with_their_length():
    if not can_sample_kernel():
        skip("no permission to sample the kernel")
    record("--off-cpu", command=[target("waits"), "7", "20"])
    check(minimum=7)
    dump = assay_dump("perf.data", "--off-cpu")
    contains(" ".join(dump.events), "off-cpu")
    main_thread = dump.waits[0].pid
    sleeps = [wait for wait in dump.waits if wait.tid != main_thread and not wait.preempted
              and wait.period >= SLEPT_NS]
    equal(len(sleeps), 7, "sleeps of 20 ms")
    joins = [wait for wait in dump.waits if wait.tid == main_thread
             and wait.period >= 7 * SLEPT_NS]
    equal(len(joins), 1, "waits of the main thread for the other")
    # All seven have the same way down to the sleep.
    equal(len({wait.chain for wait in sleeps}), 1, "call chains")


@test
def who_ended_the_waits():
    if os.geteuid() != 0:
        skip("tracepoints need root")
    # The sleep's end is a timer's, cat's wait for its input ends with sleep.
    def rows_of_a_recording():
        record("--wakers", command=["sh", "-c", "sleep 0.05 | cat"])
        text = assay("report", "--wakers", check=0).stdout
        rows = [(float(share), by) for share, by in re.findall(r"^ +([0-9.]+)%.*\S  +(\S.*)$", text, re.M)]
        between(sum(share for share, by in rows), 99, 101, "all shares")
        return rows

    rows = rows_of_a_recording()
    between(sum(share for share, by in rows if by == "sleep"), 10, 85, "sleep's share")
    between(sum(share for share, by in rows if by in ("a timer or a device", "not recorded")), 10, 70,
            "the share of what is no thread")
    # The kernel does not show every wake-up by a timer on an idle processor, so here none is idle.
    busy = [subprocess.Popen([SPIN[0], "100000"]) for _ in os.sched_getaffinity(0)]
    try:
        if not any(by == "a timer or a device" for _ in range(8) for _, by in rows_of_a_recording()):
            raise AssertionError("no timer ended a wait in eight recordings")
    finally:
        for process in busy:
            process.kill()
            process.wait()
    contains(assay("report", "--stdio", check=0).stdout, "off-cpu")
    equal("sched_waking" in assay("report", "--stdio", check=0).stdout, False, "a table of wake-ups")
    record("--off-cpu", output="plain.data", command=["true"])
    contains(assay("report", "--wakers", "plain.data", check=1).stderr, "record with --wakers")
    contains(assay("record", "--wakers", "-a", check=2).stderr, "needs a command")


@test
def waits_of_the_whole_machine():
    need_root("record -a")
    record("--off-cpu", "-a", command=[target("waits"), "3", "20"])
    check(minimum=3)
    dump = assay_dump("perf.data", "--off-cpu")
    sleeps = [wait for wait in dump.waits if wait.comm == "waits" and wait.tid != wait.pid
              and not wait.preempted and wait.period >= SLEPT_NS]
    equal(len(sleeps), 3, "sleeps of 20 ms")


@test
def two_recordings_at_once_do_not_mix():
    need_root("record -a")
    # The kernel gives samples of the first the ids of the second: see struct rings.
    first = start("-a", "--off-cpu", "-o", "first.data", command=[])
    wait_for(lambda: has_checkpoint("first.data"))
    record("-a", "--off-cpu", output="second.data", command=[target("waits"), "3", "20"])
    first.send_signal(signal.SIGINT)
    _, words = first.communicate()
    check("first.data", said=words)


# What is told.

@test
def without_a_pmu_that_is_said():
    result = record(command=SPIN)
    dump = check()
    if dump.events[0].startswith("cpu-clock"):
        contains(result.stderr, "no hardware PMU: sampling cpu-clock")
    else:
        contains(dump.events[0], "cycles")


@test
def the_machine_is_described_in_the_file():
    record("-q", command=SPIN)
    dump = check()
    machine = json.loads(dump.assay)["machine"]
    equal(machine["kernel_release"], os.uname().release, "release")
    header = perf("report", "--header-only", "-i", "perf.data").stdout
    contains(header, "assay record")
    contains(header, os.uname().release)


@test
def build_ids_are_perfs():
    record("-q", "--call-graph=fp", "-F", "3000")
    dump = check()
    listed = [line.split(None, 1) for line in
              perf("buildid-list", "-i", "perf.data").stdout.splitlines()]
    equal({name: identity for identity, name in listed}, dump.build_ids, "build-ids")
    subprocess.run(["perf", "record", "-q", "--call-graph=fp", "-o", "theirs.data", "--", *LOAD],
                   stderr=subprocess.DEVNULL)
    for name, identity in assay_dump("theirs.data").build_ids.items():
        if name in dump.build_ids:
            equal(dump.build_ids[name], identity, name)


@test
def losses_are_counted_and_told():
    # More than the smallest buffer can hold: stacks of 32 kB.
    result = record("--buffer", "64k", "-g", "dwarf,32k", "-F", "10000", command=SPIN)
    lost = int(re.search(r"; ([\d,]+) lost", result.stderr)[1].replace(",", ""))
    dump = check(minimum=1, lossy=lost > 0)
    equal(max(dump.losses["lost"], dump.losses["lost_counted"]), lost, "lost")
    report = assay("report", "--stdio", "perf.data", check=0).stdout
    contains(report, f"# Total Lost Samples: {lost}\n")
    if lost:
        contains(result.stderr, "--buffer")


# What goes wrong.

@test
def the_commands_exit_code_is_passed_on():
    record("-q", command=["sh", "-c", "exit 7"], code=7)
    record("-q", command=["sh", "-c", "kill -9 $$"], code=137)
    result = record("-q", command=["/nonexistent/program"], code=127)
    contains(result.stderr, "'/nonexistent/program'")
    result = record("-q", command=["no-such-program"], code=127)
    contains(result.stderr, "no such command in PATH")
    record("-q", command=["/etc/passwd"], code=126)


@test
def a_command_that_is_not_there_spoils_no_file():
    record("-q", command=SPIN)
    before = open("perf.data", "rb").read()
    record("-q", command=["no-such-program"], code=127)
    record("-q", "-e", "mem:0x1000/4:w", "-F", "99999999", command=SPIN, code=125)
    equal(open("perf.data", "rb").read() == before, True, "the earlier recording is there")


@test
def wrong_command_lines_are_explained():
    for options, words in ((["-F", "0"], "at least one sample"),
                           (["-F", "x"], "option -F"),
                           (["-F", "99", "-c", "5"], "cannot be used together"),
                           (["--call-graph", "magic"], "fp or dwarf"),
                           (["--call-graph", "dwarf,100000"], "65528"),
                           (["-e", "no-such-event"], "no-such-event"),
                           (["-z=99"], "unknown option"),
                           (["--compress=99"], "between 1 and 22"),
                           (["-p", "abc"], "not a process ID"),
                           (["-a", "-p", "1"], "cannot be used together")):
        contains(assay("record", *options, "--", "true", check=2).stderr, words)
    contains(assay("record", check=2).stderr, "give a command")
    contains(assay("record", "-p", "999999999", check=1).stderr, "no process 999999999")
    contains(assay("record", "-o", "/nonexistent/x", "true", check=125).stderr, "/nonexistent/x")


@test
def too_high_a_frequency_is_explained():
    result = record("-F", "99999999", command=SPIN, code=125)
    contains(result.stderr, "kernel.perf_event_max_sample_rate")


def wait_for(condition):
    """Waits until the condition holds; the test's own limit of time ends it otherwise."""
    while not condition():
        time.sleep(0.05)


def start(*options, command):
    return subprocess.Popen([ASSAY, "record", *options, "--", *command], text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, start_new_session=True)


def size(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def has_checkpoint(path="perf.data"):
    """Whether the header says how much data there is, as it does once a second."""
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        head = file.read(104)
        return len(head) == 104 and struct.unpack_from("<Q", head, 48)[0] > 0
    return False


@test
def a_signal_ends_the_command_and_leaves_a_good_file():
    for number in (signal.SIGINT, signal.SIGTERM):
        if os.path.exists("perf.data"):
            os.unlink("perf.data")
        process = start("--call-graph=fp", command=["sh", "-c", "while :; do :; done"])
        wait_for(has_checkpoint)
        process.send_signal(number)
        _, words = process.communicate()
        equal(process.returncode, 128 + number, "exit code")
        check(said=words)


@test
def without_a_command_a_signal_ends_the_recording():
    need_root("record -a")
    process = start("-a", command=[])
    wait_for(has_checkpoint)
    process.send_signal(signal.SIGINT)
    _, words = process.communicate()
    equal(process.returncode, 0, "exit code")
    check(said=words)


@test
def a_recorder_that_was_killed_leaves_a_readable_file():
    process = start("--call-graph=fp", "-F", "2000", command=["sh", "-c", "while :; do :; done"])
    wait_for(lambda: size("perf.data") > 100000)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    dump = assay_dump("perf.data")
    contains(dump.trouble, "not finished")
    between(len(dump.samples), 100, 10**9, "samples")
    contains(dump.events[0], "c")
    theirs = perf("script", "-i", "perf.data", "-F", "time")
    equal((theirs.returncode, theirs.stderr), (0, ""), "perf script")
    # perf knows what the last checkpoint told, assay also what came behind it.
    between(theirs.stdout.count(":"), 50, len(dump.samples), "samples that perf finds")


@test
def a_limit_of_the_files_size_is_told_and_the_file_is_good():
    limit = 300000

    def set_limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    result = record("-g", "dwarf", command=["sh", "-c", f"{SPIN[0]} 2000; echo the end"], code=125,
                    preexec_fn=set_limit)
    contains(result.stdout, "the end")
    contains(result.stderr, "ulimit -f")
    between(size("perf.data"), 1000, limit, "size")
    dump = check(minimum=5, lossy=True)
    between(dump.losses["lost_counted"], 1, 10**9, "samples that did not fit")


@test
def a_full_disk_is_told_and_the_file_is_good():
    need_root("mounting a small file system")
    os.mkdir("small")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "none", "small"]).returncode:
        skip("tmpfs cannot be mounted here")
    try:
        result = record("-g", "dwarf", command=[SPIN[0], "2000"], code=125,
                        output="small/perf.data")
        contains(result.stderr, "the disk is full")
        check("small/perf.data", minimum=5, lossy=True)
    finally:
        subprocess.run(["umount", "-l", "small"])


@test
def an_ordinary_user_gets_user_mode_and_a_word():
    need_root("becoming another user")
    level = int(open("/proc/sys/kernel/perf_event_paranoid").read())
    if level != 2:
        skip(f"kernel.perf_event_paranoid is {level}, not 2")
    os.chmod(".", 0o777)
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if subprocess.run([*as_nobody, ASSAY, "--version"], stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL).returncode:
        skip("another user cannot run this build")
    result = subprocess.run([*as_nobody, ASSAY, "record", "--call-graph=fp", "--", *SPIN], text=True,
                            capture_output=True, stdin=subprocess.DEVNULL)
    equal(result.returncode, 0, result.stderr)
    contains(result.stderr, "user mode only")
    contains(result.stderr, "sudo sysctl kernel.perf_event_paranoid=1")
    dump = assay_dump("perf.data")
    contains(dump.events[0], ":u")
    between(len(dump.samples), 5, 10**9, "samples")
    # No address of the kernel, whose half of memory starts at the top bit.
    equal([hex(sample.ip) for sample in dump.samples if sample.ip >> 63], [], "kernel addresses")
    for options, words in ((["--off-cpu"], "paranoid=1"), (["-a"], "paranoid=0"),
                           (["-e", "sched:sched_switch"], "root")):
        result = subprocess.run([*as_nobody, ASSAY, "record", *options, "--", "true"], text=True,
                                capture_output=True, stdin=subprocess.DEVNULL)
        contains(result.stderr, words)


@test
def without_sysfs_the_processors_come_from_proc():
    """As in a chroot in which only /proc is mounted."""
    need_root("hiding /sys")
    hide = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount -t tmpfs none /sys || exit 99; exec "$@"',
            "sh"]
    if subprocess.run([*hide, "true"], capture_output=True).returncode:
        skip("no mount namespace in which /sys can be hidden")
    subprocess.run([*hide, ASSAY, "record", "-o", "perf.data", "--", *LOAD], check=True, capture_output=True)
    between(len(assay_dump("perf.data").samples), 1, 10**6, "samples")
    result = subprocess.run([*hide, ASSAY, "stat", "-a", "-e", "cpu-clock", "--timeout", "50"], text=True,
                            capture_output=True)
    equal(result.returncode, 0, result.stderr)
    lacks(result.stderr, "<not supported>")


main()
