# SPDX-License-Identifier: MIT
"""The reader of perf.data against files that the installed perf has just written: what perf itself
says of them is the truth."""
import os
import re
import subprocess

from harness import *
from perfdump import assay_dump, perf, perf_dump

ROOT_USER = os.geteuid() == 0
LOAD = ["sh", "-c", "for i in 1 2 3; do sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; "
        "done; ls / >/dev/null"]


def record(*options, command=None, output="perf.data", build_ids=False):
    """Records a load of a few processes with perf.  Its search for build-ids is slow, and crashes
    now and then."""
    result = perf("record", "-q", *options, *([] if build_ids else ["-B"]), "-o", output, "--",
                  *(command or LOAD))
    if result.returncode:
        skip("perf record does not work here: " + " ".join(result.stderr.split())[:200])


def compare(path="perf.data", minimum=10, comms=True):
    """Reads a file with perf and with assay: the same samples, maps and names, in order."""
    theirs, ours = perf_dump(path), assay_dump(path)
    equal(ours.trouble, "", "trouble")
    for loss in ("malformed", "unknown", "unmatched", "late", "undecompressed", "missing"):
        equal(ours.losses[loss], 0, loss)
    equal(len(ours.samples), len(theirs.samples), "samples")
    if len(ours.samples) < minimum:
        raise AssertionError(f"only {len(ours.samples)} samples")
    equal(ours.losses["samples"], len(ours.samples), "samples counted")
    equal(ours.keys(), theirs.keys(), "samples")
    equal(ours.times(), sorted(ours.times()), "order of time")
    equal(sorted(ours.maps), sorted(theirs.maps), "maps")
    for kind in ("COMM", "FORK", "EXIT", "SWITCH", "SWITCH_CPU_WIDE", "NAMESPACES", "KSYMBOL",
                 "CGROUP", "THROTTLE", "LOST", "READ"):
        equal(ours.counts.get(kind, 0), theirs.counts.get(kind, 0), kind)
    if comms:
        names = {sample.key(): sample.comm for sample in theirs.samples}
        for sample in ours.samples:
            if sample.comm:
                equal(sample.comm, names[sample.key()], f"name at {sample.time}")
    equal([sample.stack for sample in sorted(ours.samples, key=lambda s: s.key())],
          [sample.stack for sample in sorted(theirs.samples, key=lambda s: s.key())], "stacks")
    return ours


@test
def frame_pointers():
    record("-g", "-F", "5000")
    dump = compare()
    between(max(len(sample.chain) for sample in dump.samples), 3, 300, "longest chain")
    contains(dump.info, f"release={os.uname().release}")
    contains(dump.command, "record -q -g -F 5000 -B -o perf.data")


@test
def without_call_graphs():
    record("-F", "2000")
    compare()


@test
def dwarf_stacks():
    record("--call-graph", "dwarf,4096", "-F", "5000")
    dump = compare()
    if not any(sample.stack for sample in dump.samples):
        raise AssertionError("no stacks")


@test
def several_events():
    record("-g", "-e", "cpu-clock,task-clock,page-faults", "-F", "5000")
    dump = compare()
    equal([name.split(":")[0] for name in dump.events], ["cpu-clock", "task-clock", "page-faults"])
    equal({sample.event for sample in dump.samples}, set(dump.events), "events of samples")


@test
def fixed_periods():
    record("-e", "cpu-clock", "-c", "200000")
    compare()


@test
def events_in_groups():
    record("-e", "{cpu-clock,page-faults}:S", "-F", "5000")
    # perf gives a sample to each event of the group, but prints the record once.
    ours = assay_dump("perf.data")
    lines = perf("script", "-i", "perf.data", "-F", "event,period", "--ns").stdout.split()
    theirs = sorted((name.rstrip(":"), int(period)) for period, name in zip(*[iter(lines)] * 2))
    equal(sorted((sample.event, sample.period) for sample in ours.samples), theirs, "samples")


@test
def compressed_records():
    record("-z", "-g", "-F", "20000")
    dump = compare(minimum=100)
    contains(dump.info, "compressed=1")


@test
def a_pipe_kept_in_a_file():
    with open("pipe.data", "wb") as file:
        subprocess.run(["perf", "record", "-q", "-B", "-g", "-o", "-", "--", *LOAD], stdout=file,
                       stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    if not os.path.getsize("pipe.data"):
        skip("perf record -o - does not work here")
    dump = compare("pipe.data")
    contains(dump.info, "pipe=1")
    contains(dump.info, f"release={os.uname().release}")


@test
def a_pipe_from_perf_itself():
    source = subprocess.Popen(["perf", "record", "-q", "-B", "-z", "-g", "-o", "-", "--", *LOAD],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL)
    dump = assay_dump("-", stdin=source.stdout)
    source.stdout.close()
    if source.wait():
        skip("perf record -o - does not work here")
    equal(dump.trouble, "", "trouble")
    between(len(dump.samples), 10, 1000000, "samples")


@test
def the_whole_machine_with_switches_and_namespaces():
    if not ROOT_USER:
        skip("perf record -a needs root")
    record("-a", "-g", "--switch-events", "--namespaces", "--all-cgroups", "-F", "3000")
    dump = compare(comms=False)
    # perf writes CGROUP records only where the hierarchy is mounted.
    kinds = ["SWITCH_CPU_WIDE", "NAMESPACES", "MMAP2"]
    if any(" cgroup2 " in line or "perf_event" in line for line in open("/proc/mounts")):
        kinds.append("CGROUP")
    for kind in kinds:
        between(dump.counts.get(kind, 0), 1, 10**9, kind)


@test
def tracepoints():
    if not ROOT_USER:
        skip("tracepoints need root")
    record("-e", "sched:sched_switch,sched:sched_process_exec", "-g")
    compare(minimum=3)


@test
def tracepoints_through_a_pipe():
    if not ROOT_USER:
        skip("tracepoints need root")
    with open("pipe.data", "wb") as file:
        subprocess.run(["perf", "record", "-q", "-B", "-e", "sched:sched_switch,cpu-clock", "-o",
                        "-", "--", *LOAD], stdout=file, stderr=subprocess.DEVNULL)
    dump = compare("pipe.data")
    contains(" ".join(dump.events), "sched:sched_switch")


@test
def addresses_and_page_sizes():
    # Not -d: perf 6.1 then looks for build-ids in mapped data and smashes its stack now and then.
    record("-e", "page-faults", "-c", "1", "--phys-data", "--data-page-size", "--code-page-size",
           "-W")
    compare()


@test
def build_ids_in_maps():
    record("--buildid-mmap", "-g", build_ids=True)
    compare()
    record("-g", output="table.data", build_ids=True)
    table = assay_dump("table.data").build_ids
    listed = dict(reversed(line.split(None, 1)) for line in
                  perf("buildid-list", "-i", "table.data").stdout.splitlines())
    equal(table, listed, "build-ids")


@test
def one_file_for_each_thread():
    if not ROOT_USER:
        skip("perf record -a needs root")
    record("-a", "-g", "--threads", "-F", "3000")
    if not os.path.isdir("perf.data"):
        skip("this perf has no --threads")
    compare(comms=False)


@test
def a_file_cut_short_gives_what_it_holds():
    record("-g", "-F", "5000")
    with open("perf.data", "rb") as file:
        whole = file.read()
    everything = len(assay_dump("perf.data").samples)
    last = 0
    for size in range(600, len(whole), max(1, len(whole) // 40)):
        with open("cut.data", "wb") as file:
            file.write(whole[:size])
        dump = assay_dump("cut.data")
        equal(dump.returncode, 0, f"exit code at {size}")
        if not dump.trouble:
            raise AssertionError(f"no word about the missing end at {size}")
        between(len(dump.samples), last, everything, f"samples at {size}")
        last = len(dump.samples)
    between(last, everything - 40, everything, "samples at the end")


@test
def a_recorder_that_was_killed_leaves_a_readable_file():
    process = subprocess.Popen(["perf", "record", "-q", "-F", "5000", "-m", "16", "-o", "perf.data",
                                "--", "sh", "-c", "while :; do :; done"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True)
    try:
        # perf writes when a buffer is half full, or at its end.
        while process.poll() is None and not (os.path.exists("perf.data") and
                                              os.path.getsize("perf.data") > 100000):
            try:
                process.wait(0.1)
            except subprocess.TimeoutExpired:
                pass
        if process.poll() is not None:
            skip("perf record does not work here")
    finally:
        os.killpg(process.pid, 9)
        process.wait()
    dump = assay_dump("perf.data")
    contains(dump.trouble, "not finished")
    between(len(dump.samples), 100, 10**9, "samples")


@test
def what_was_lost_counts_once():
    """perf tells of losses twice, as they happen and as a sum at the end.  What it tells of as it happens
    may hold a few records that are no samples."""
    if not ROOT_USER:
        skip("tracepoints need root")
    record("-m", "1", "-e", "raw_syscalls:sys_enter", "-e", "raw_syscalls:sys_exit",
           command=["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=200000", "status=none"])
    theirs = re.search(r"# Total Lost Samples: (\d+)", perf("report", "--stdio").stdout)
    if not theirs or theirs[1] == "0":
        skip("nothing was lost")
    ours = assay("report", "--stdio", "perf.data", check=0).stdout
    lost = int(re.search(r"# Total Lost Samples: (\d+)", ours)[1])
    between(lost, int(theirs[1]), int(theirs[1]) * 1.05, "lost")


main()
