# SPDX-License-Identifier: MIT
"""assay explain on programs that were made slower for a known reason."""
import csv
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from harness import *

BUILD = pathlib.Path(os.environ.get("BUILD", "build"))


def kernel_is_hidden():
    """Why the kernel's part of stacks is not seen, "" where it is."""
    paranoid = int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    return (f"perf_event_paranoid is {paranoid}: the kernel's part of stacks is hidden"
            if os.geteuid() != 0 and paranoid > 1 else "")


def needs_the_kernels_stacks():
    if kernel_is_hidden():
        skip(kernel_is_hidden())


def hidden_share(command):
    """The share of a command's time that no sample can be in, for lack of permission."""
    if not kernel_is_hidden():
        return 0
    process = subprocess.Popen(command, shell=True, stdout=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    return usage.ru_stime / (usage.ru_utime + usage.ru_stime)


def explain(base, new, *options):
    result = assay("explain", "--force", "--json", *options, base, new, timeout=900)
    if result.returncode and "cannot sample" in result.stderr + result.stdout:
        skip("assay record cannot sample here: " + result.stderr)
    equal(result.returncode, 0, result.stderr)
    found = json.loads(result.stdout)
    equal(found["format"], "assay-explain-1")
    for e in found["explanations"]:
        adds_up(e)
    return found["explanations"]


def adds_up(e):
    total = sum(r["cost"]["change"] for r in e["reasons"]) + e["unattributed"]["change"]
    between(total - e["whole"]["change"], -1e-6 * e["whole"]["b"] - 1e-6,
            1e-6 * e["whole"]["b"] + 1e-6, "reasons and rest less the whole change")
    between(e["cpu"]["change"] + e["own_waits"]["change"] - e["whole"]["change"], -1e-3, 1e-3)


def planted(base, cause, operations, *options):
    sides = [f"{target('planted')} {side} {operations}" for side in (base, cause)]
    (e,) = explain(*sides, "--no-sim", *options)
    between(abs(e["unattributed"]["share"]), 0, 0.15 + max(map(hidden_share, sides)),
            "unattributed share")
    equal(e["per"], "op")
    return e


@test
def an_extra_copy_is_named_first():
    e = planted("base", "copy", 20000)
    first = e["reasons"][0]
    equal((first["kind"], first["name"]), ("function", "memcpy"))
    contains(first["evidence"], "called by copy_again")
    contains(first["words"], "of the +")
    contains(first["words"], "/op")


@test
def an_extra_loop_that_misses_the_cache_is_named_first():
    e = planted("far", "cache", 20000)
    first = e["reasons"][0]
    equal((first["kind"], first["name"]), ("function", "walk_far"))


@test
def an_extra_system_call_is_named_first():
    needs_the_kernels_stacks()
    e = planted("base", "syscall", 20000)
    first = e["reasons"][0]
    equal((first["kind"], first["name"]), ("system call", "system call pread64"))
    contains(first["evidence"], "made by ask_kernel")
    if any(c["event"] == "raw_syscalls:sys_enter" for c in e["counts"]):
        contains(first["evidence"], "calls per op: 0 → 5")


@test
def an_extra_lock_is_named_first():
    needs_the_kernels_stacks()
    e = planted("free", "lock", 150)
    if "waits cannot be recorded" in e["notes"]:
        skip(e["notes"])
    first = e["reasons"][0]
    equal(first["kind"], "wait")
    contains(first["name"], "waiting for a lock (futex)")
    contains(first["name"], "hold_locked")
    contains(first["evidence"], "waits per op: 0 → ")


@test
def less_work_is_explained_too():
    e = planted("copy", "base", 20000)
    equal(e["reasons"][0]["name"], "memcpy")
    if not e["whole"]["change"] < 0 or not e["reasons"][0]["cost"]["share"] > 0.5:
        raise AssertionError(e["reasons"][0])


@test
def many_writes_and_one_writev():
    needs_the_kernels_stacks()
    program = BUILD / "workloads" / "demo" / "two-ways"
    if not program.exists():
        skip("the workload two-ways was not built")
    (e,) = explain(f"{program} write 500", f"{program} writev 500", "--no-sim")
    equal(e["reasons"][0]["name"], "system call write")
    if not e["reasons"][0]["cost"]["change"] < 0:
        raise AssertionError(e["reasons"][0])
    between(abs(e["unattributed"]["share"]), 0, 0.15, "unattributed share")


@test
def an_eventfd_that_is_never_read_is_named():
    """The mistake of a known profile, in a cluster of real processes."""
    needs_the_kernels_stacks()
    program = BUILD.resolve() / "workloads/vr/assay-vr"
    bench = f"{program} bench --in-memory --clients 1 --requests 60 --warmup 10 --transport"
    tried = subprocess.run(f"{bench} uring-eventfd --requests 1 --warmup 0", shell=True,
                           capture_output=True, text=True, timeout=240)
    if tried.returncode:
        skip("no io_uring here: " + tried.stderr.strip())
    (e,) = explain(f"{bench} uring-eventfd", f"{bench} uring-eventfd-unread", "--no-sim",
                   "--work", "requests", "--rounds", "3", "--profiles", "2")
    # A disk that is slow at the wrong moment is a wait, and beside the point.
    first = next(r for r in e["reasons"] if r["kind"] != "wait")
    equal((first["kind"], first["name"]), ("system call", "system call epoll_wait"))
    contains(first["evidence"], "made by ")
    if any(c["event"] == "raw_syscalls:sys_enter" for c in e["counts"]):
        contains(first["evidence"], "epoll_wait returns at once")


@test
def misses_are_simulated_where_nothing_counts_them():
    if not shutil.which("valgrind"):
        skip("valgrind is not installed")
    (e,) = explain(f"{target('planted')} far 3000", f"{target('planted')} cache 3000", "--sim",
                   "-r", "8", "--profiles", "2")
    if not e["simulator"]:
        contains(json.dumps(e["counts"]), "cache-misses")  # a PMU counted them
        return
    contains(e["simulator"], "cachegrind")
    far = [r for r in e["reasons"] if r["name"] == "walk_far"][0]
    contains(far["evidence"], "level 1 cache misses per op: 0 → 2")
    contains(far["evidence"], "(simulated)")
    misses = [c for c in e["counts"] if c["event"] == "sim:L1-dcache-load-misses"][0]
    between(misses["new"] - misses["base"], 20, 26)


@test
def slower_with_the_same_instructions_is_told():
    if not shutil.which("valgrind"):
        skip("valgrind is not installed")
    (e,) = explain(f"{target('planted')} order 16000", f"{target('planted')} disorder 16000", "--sim",
                   "-r", "8", "--profiles", "2")
    if not e["simulator"]:
        skip("a PMU counts here")
    steps = [r for r in e["reasons"] if r["name"] == "follow_pattern"][0]
    contains(steps["evidence"], "the same number of instructions (simulated)\n")
    found = re.search(r"its mispredicted branches per op: ([\d.]+) → ([\d.]+) \(simulated\)",
                      steps["evidence"])
    between(float(found[1]), 0, 20)
    between(float(found[2]), 60, 160)


@test
def nothing_moved_is_an_answer():
    command = f"{target('empty')}"
    result = assay("explain", "-r", "8", command, command, check=0, timeout=600)
    lacks(result.stdout, "Why:")
    equal(1, sum(words in result.stdout for words in
                 ("Nothing changed", "No difference can be told", "do not confirm it")))


@test
def what_ran_side_by_side_and_no_longer_does_leads_to_the_bills():
    text = assay("explain", "-r", "8", "--profiles", 3, "--no-sim", "sleep 0.1 & sleep 0.1 & wait",
                 "sleep 0.1; sleep 0.1; wait", check=0, timeout=600).stdout
    contains(text, "slower")
    contains(text, "'assay explain COMMAND' of each side alone bills its wall time.")


@test
def too_few_rounds_to_tell_are_no_answer():
    command = f"{target('empty')}"
    text = assay("explain", "-r", "1", command, command, check=0, timeout=600).stdout
    contains(text, "1 round is too few to tell a difference from noise, so nothing is explained; use more --rounds")


@test
def recordings_are_no_commands():
    pathlib.Path("a.data").write_bytes(b"PERFILE2" + bytes(200))
    for words in (("a.data",), ("a.data", "a.data")):
        error = assay("explain", *words, check=2).stderr
        contains(error, "a.data is a recording; 'assay report' shows it, and 'assay diff A B' compares two")


@test
def few_rounds_are_explained_when_their_verdict_is_a_difference():
    loops = [f"i=0; while [ $i -lt {count} ]; do i=$((i+1)); done" for count in (2000, 200000)]
    text = assay("explain", "--rounds", 4, "--profiles", 2, "--no-sim", *loops, check=0).stdout
    contains(text, "× slower")
    contains(text, "assuming log-normal noise")
    lacks(text, "Nothing changed")
    contains(text, "Why:")


@test
def text_and_tables():
    base, new = (f"{target('planted')} {cause} 5000" for cause in ("base", "copy"))
    options = ("--force", "--no-sim", "--profiles", "2", "-r", "8")
    text = assay("explain", *options, base, new, check=0, timeout=800).stdout
    contains(text, "measured without a profiler")
    contains(text, "  1. ")
    contains(text, "unattributed")
    lacks(text, "\033")
    rows = list(csv.DictReader(io.StringIO(
        assay("explain", "--csv", *options, base, new, check=0, timeout=800).stdout)))
    equal([r["reason"] for r in rows[-2:]], ["(unattributed)", "(whole)"])
    total = sum(float(r["change"]) for r in rows[:-1])
    between(total - float(rows[-1]["change"]), -1, 1)
    markdown = assay("explain", "--markdown", *options, base, new, check=0, timeout=800).stdout
    contains(markdown, "1. ")


@test
def recordings_can_be_kept_and_compared():
    base, new = (f"{target('planted')} {cause} 5000" for cause in ("base", "copy"))
    assay("explain", "--force", "--no-sim", "--profiles", "2", "-r", "8", "-o", "kept", base, new,
          check=0, timeout=800)
    equal(sorted(p.name for p in pathlib.Path("kept").iterdir()),
          ["base-1.data", "base-2.data", "new-1.data", "new-2.data"])
    assay("diff", "kept/base-*", "kept/new-*", check=0)


SPEC = """name: planted
command: PLANTED {cause} {ops}
factors: {cause: [base, copy], ops: [4000, 8000]}
metrics: {ops: {unit: op}}
work: ops
rounds: 8
warmup: 0
baseline: {cause: base}
"""


@test
def cells_of_the_store_are_explained():
    pathlib.Path("s.yaml").write_text(SPEC.replace("PLANTED", target("planted")))
    assay("run", "s.yaml", "-q", check=0, timeout=800)
    before = json.loads(assay("show", "1", "--json", check=0).stdout)
    found = explain("cause=base", "cause=copy", "--no-sim", "--profiles", "3")
    equal([e["cell"] for e in found], ["ops=4000", "ops=8000"])
    for e in found:
        equal((e["reasons"][0]["name"], e["per"]), ("memcpy", "op"))
        equal(len(e["measured"]["base_cpu_ns"]), 8)
    # The store is as it was.
    equal(json.loads(assay("show", "1", "--json", check=0).stdout), before)
    (one,) = explain("1 cause=base,ops=8000", "1 cause=copy,ops=8000", "--no-sim", "--profiles",
                     "2")
    equal(one["cell"], "")


@test
def cells_that_did_not_move_are_not_profiled():
    pathlib.Path("program").write_text("#!/bin/sh\necho x >> runs\n")
    os.chmod("program", 0o755)
    pathlib.Path("s.yaml").write_text("name: calm\ncommand: ./program {side}\nrounds: 8\nwarmup: 0\n"
                                      "factors: {side: [left, right]}\n")
    assay("run", "s.yaml", "-q", check=0)
    runs = len(pathlib.Path("runs").read_text().splitlines())
    result = assay("explain", "side=left", "side=right", check=0, timeout=600)
    if "Nothing changed" in result.stdout:
        equal(len(pathlib.Path("runs").read_text().splitlines()), runs)


@test
def a_program_that_changed_since_is_refused():
    pathlib.Path("program").write_text("#!/bin/sh\nexit 0\n")
    os.chmod("program", 0o755)
    pathlib.Path("s.yaml").write_text("name: old\ncommand: ./program {n}\nrounds: 8\nwarmup: 0\n"
                                      "factors: {n: [1, 2]}\n")
    assay("run", "s.yaml", "-q", check=0)
    pathlib.Path("program").write_text("#!/bin/sh\ntrue && exit 0\n")
    error = assay("explain", "--force", "n=1", "n=2", check=1).stderr
    contains(error, "./program: the program has changed since")
    contains(error, "at its own path")


VERSIONS = """name: versions
command: ['./planted-{version}', '{version}', '20000']
factors: {version: [base, copy, cache]}
metrics: {ops: {unit: op}}
work: ops
rounds: 12
warmup: 0
baseline: {version: base}
"""


@test
def what_moved_is_decided_by_the_runs_that_were_measured():
    # Two versions at paths of their own; of a third, which changed since, nothing is asked.  The
    # planted copy takes 40 % more CPU time; 12 rounds tell that on a loaded machine as well.
    for version in ("base", "copy", "cache"):
        shutil.copy(target("planted"), f"planted-{version}")
    pathlib.Path("s.yaml").write_text(VERSIONS)
    assay("run", "s.yaml", "-q", check=0, timeout=800)
    with open("planted-cache", "ab") as file:
        file.write(b"changed")
    result = assay("explain", "--json", "--no-sim", "--profiles", "2", "version=base",
                   "version=copy", timeout=900)
    if result.returncode and "cannot sample" in result.stderr:
        skip("assay record cannot sample here: " + result.stderr)
    equal(result.returncode, 0, result.stderr)
    (e,) = json.loads(result.stdout)["explanations"]
    equal((e["measured"]["moved"], e["profiled"]), (True, True))
    adds_up(e)
    equal(e["reasons"][0]["name"], "memcpy")
    equal((e["base_cell"], e["new_cell"]), ("version=base", "version=copy"))
    contains(assay("explain", "--force", "version=base", "version=cache", check=1).stderr,
             "planted-cache: the program has changed since")
    # The report of this comparison tells it first, and takes it along; another's does not.
    assay("html", "version=base", "version=copy", "-o", "why.html", check=0)
    text = pathlib.Path("why.html").read_text()
    verdict = text[text.index('id="verdict"'):text.index('id="table"')]
    contains(verdict, "<b>memcpy</b> +")
    contains(verdict, "called by copy_again")
    assay("html", "why.html", "-o", "again.html", check=0)
    contains(pathlib.Path("again.html").read_text(), "called by copy_again")
    assay("html", "version=base", "version=cache", "-o", "other.html", check=0)
    lacks(pathlib.Path("other.html").read_text(), "copy_again")
    assay("html", "-o", "all.html", check=0)
    contains(pathlib.Path("all.html").read_text(), "called by copy_again")


@test
def a_wait_that_may_not_be_seen_is_not_promised_by_more_runs():
    """Without permission to see waits, a longer sleep is in the wall time only."""
    if os.geteuid() != 0:
        skip("needs root, to become somebody else")
    if int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text()) < 2:
        skip("perf_event_paranoid is below 2: everybody may see the kernel's side of switches")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        copy = shutil.copy(ASSAY, folder)
        result = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                 "env", "HOME=/nonexistent", "TMPDIR=/tmp", copy, "explain",
                                 "--no-sim", "sleep 0.01", "sleep 0.3"], cwd="/",
                                capture_output=True, text=True, timeout=300)
    if SANITIZED and "LeakSanitizer" in result.stderr:
        skip("the sanitizer may not look at its own process as another user")
    equal(result.returncode, 0, result.stderr)
    (cpu,) = [line for line in result.stdout.splitlines() if line.startswith("CPU time per run")]
    if "slower" in cpu or "faster" in cpu:
        return  # by chance, once in twenty: then CPU time is what is looked at
    contains(result.stdout, "waits could not be seen")
    contains(result.stdout, "waits cannot be recorded")
    lacks(result.stdout, "more --rounds")


@test
def an_explanation_of_commands_becomes_a_page():
    base, new = (f"{target('planted')} {cause} 5000" for cause in ("base", "copy"))
    result = assay("explain", "--force", "--no-sim", "--profiles", "2", "-r", "8", "--json", base,
                   new, check=0, timeout=800)
    pathlib.Path("e.json").write_text(result.stdout)
    assay("html", "e.json", "-o", "e.html", check=0)
    contains(pathlib.Path("e.html").read_text(), "called by copy_again")
    pathlib.Path("bad.json").write_text(result.stdout[:-20])
    contains(assay("html", "bad.json", check=1).stderr, "bad.json: the explanation is damaged")


@test
def wrong_words_are_explained():
    contains(assay("explain", "no-such-program-x", "no-such-program-y", check=1).stderr,
             "no-such-program-x")
    contains(assay("explain", "false", "true", check=1).stderr, "'false' failed: exit code 1")
    assay("explain", check=2)
    assay("explain", "true", "true", "--sim", "--no-sim", check=2)
    contains(assay("explain", "--work", "nothing", "true", "true", check=1).stderr,
             "reports no metric 'nothing'")
    contains(assay("explain", "--help", check=0).stdout, "usage: assay explain")
    # Cells of a store that is not there are no commands.
    contains(assay("explain", "way=write", "way=writev", check=1).stderr, "no store")
    equal([p.name for p in pathlib.Path(".").iterdir()], [])


main()
