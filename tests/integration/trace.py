# SPDX-License-Identifier: MIT
"""assay trace: what strace says of the same program is the truth."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from harness import *


def need():
    if os.geteuid() != 0:
        skip("tracepoints need root")
    result = assay("trace", "-s", "--", "true")
    if result.returncode and "tracepoint" in result.stderr:
        skip("no tracepoints here: " + result.stderr.strip()[:200])


def lines(*arguments):
    assay("trace", "-o", "out.txt", *arguments, check=0)
    return open("out.txt").read().splitlines()


def has_texts(text):
    return '"' in text


@test
def calls_arguments_and_results_are_straces():
    need()
    if not shutil.which("strace"):
        skip("strace is not installed")
    command = ["sh", "-c", "exec cat /etc/passwd"]
    ours = lines("-c", "openat,read,write,lseek,close", "--", *command)
    subprocess.run(["strace", "-o", "theirs.txt", "-e", "trace=openat,read,write,lseek,close",
                    *command], check=True, stdout=subprocess.DEVNULL)
    theirs = open("theirs.txt").read().splitlines()

    def plain(line):
        """The name, the decoded arguments without texts and pointers, and the result."""
        line = re.sub(r" <[\d.]+>$", "", line)
        line = re.sub(r'"(\\.|[^"\\])*"(\.\.\.)?|0x[0-9a-f]+', "P", line)
        return re.sub(r" +", " ", line)
    ours = [plain(line) for line in ours]
    theirs = [plain(line) for line in theirs if not line.startswith("+++")]
    equal(ours, theirs, "calls")


@test
def texts_behind_pointers():
    need()
    # A page that is not in memory cannot be read when the call begins: then its address is shown.
    for attempt in range(5):
        text = "\n".join(lines("-c", "openat,write,clock_nanosleep,mkdir", "--", "sh", "-c",
                               f"mkdir a-directory{attempt}; echo 'one\ttwo'; sleep 0.01; "
                               "(: < /nonexistent) 2>/dev/null; true"))
        if not has_texts(text):
            skip("eBPF is not allowed here")
        # coreutils 9.7 rounds up
        wanted = (rf'mkdir\("a-directory{attempt}", 0777\) = 0 <', r'write\(1, "one\\ttwo\\n", 8\) = 8 <',
                  r"\{0\.01000000[01]\}",
                  r'"/nonexistent", O_RDONLY\) = -1 ENOENT \(No such file or directory\) <')
        missing = [part for part in wanted if not re.search(part, text)]
        if not missing:
            return
    raise AssertionError(f"{missing} not in:\n{text}")


@test
def the_summary_counts_every_call():
    need()
    result = assay("trace", "-s", "--json", "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=1",
                   "count=2000", "status=none", check=0)
    rows = {row["call"]: row for row in map(json.loads, result.stdout.splitlines())
            if row["type"] == "summary"}
    between(rows["read"]["count"], 2000, 2010, "reads")
    between(rows["write"]["count"], 2000, 2005, "writes")
    for row in rows.values():
        if row["total_ns"]:
            between(row["p50_ns"], 1, row["p99_ns"], "p50")
            between(row["p99_ns"], row["p50_ns"], row["max_ns"], "p99")
            between(row["max_ns"], row["p99_ns"], row["total_ns"], "max")


@test
def children_are_followed_and_the_exit_code_is_theirs():
    need()
    result = assay("trace", "--json", "-c", "exit_group,execve", "--", "sh", "-c",
                   "true; /bin/true; (exit 3)", check=3)
    calls = [json.loads(line) for line in result.stdout.splitlines()]
    equal(len({call["pid"] for call in calls if call["call"] == "exit_group"}), 3, "processes")
    assay("trace", "--", "/nonexistent", check=127)


@test
def other_tracepoints_with_their_fields():
    need()
    text = lines("-e", "sched:sched_switch", "--filter", "prev_state == 1", "--", "sleep", "0.02")
    equal({re.match(r"sched:sched_switch: prev_comm=sleep prev_pid=\d+ prev_prio=\d+ prev_state=S "
                    r"==> next_comm=", line) is not None for line in text}, {True}, "lines")
    result = assay("trace", "-e", "sched:sched_switch", "--filter", "nothing == 1", "--", "true",
                   check=125)
    contains(result.stderr, "its fields: prev_comm, prev_pid")
    out = assay("trace", "--json", "-e", "sched:sched_process_exit", "--", "true", check=0).stdout
    equal(json.loads(out.splitlines()[-1])["fields"]["comm"], "true", "comm")


@test
def waits_and_who_ended_them():
    need()
    out = assay("trace", "--json", "--wakeups", "-c", "clock_nanosleep", "--", "sleep", "0.05",
                check=0).stdout
    waits = [row for row in map(json.loads, out.splitlines()) if row["type"] == "wait"]
    between(max(wait["duration_ns"] for wait in waits), 50e6, 50e9, "the sleep")


@test
def a_timer_is_not_the_thread_that_it_interrupted():
    """Something is always at work on the CPU where the timer's interrupt comes."""
    need()
    busy = subprocess.Popen(["taskset", "-c", "0", sys.executable, "-c", "while True: pass"])
    try:
        out = assay("trace", "--json", "--wakeups", "-c", "clock_nanosleep,read", "--", "taskset", "-c",
                    "0", "sh", "-c", "sleep 0.05 | cat", check=0).stdout
    finally:
        busy.kill()
        busy.wait()
    rows = [json.loads(line) for line in out.splitlines()]
    (sleep,) = [row for row in rows if row.get("call") == "clock_nanosleep"]
    reads = [row for row in rows if row.get("call") == "read"]
    sleeps = [row for row in rows if row["type"] == "wait" and row["tid"] == sleep["tid"] and
              row["duration_ns"] >= 45e6]
    equal([(row.get("woken_by"), row.get("woken_by_interrupt")) for row in sleeps], [(None, True)],
          "who ended the sleep")
    # cat waits for the end of its input, which is the end of sleep
    cat = max(reads, key=lambda row: row["duration_ns"])["tid"]
    long = max((row for row in rows if row["type"] == "wait" and row["tid"] == cat),
               key=lambda row: row["duration_ns"] * (not row["preempted"]))
    equal((long.get("woken_by"), long.get("woken_by_interrupt")), (sleep["tid"], None), "who ended cat's")


@test
def calls_that_a_signal_ends_are_shown_as_strace_does():
    need()
    text = "import signal; signal.setitimer(signal.ITIMER_REAL, 0.02); signal.pause()"
    handler = "signal.signal(signal.SIGALRM, lambda *a: None);"
    for words in (text, text.replace("import signal;", "import signal;" + handler)):
        result = assay("trace", "-c", "pause", "--", sys.executable, "-c", words)
        contains(result.stderr, "pause() = ? ERESTARTNOHAND (To be restarted if no handler) <0.0")


@test
def the_return_of_a_signal_handler_is_a_call_with_its_name():
    """The kernel no longer knows its number when it is over."""
    need()
    result = assay("trace", "--", "sh", "-c", "trap 'exit 3' USR1; kill -USR1 $$; :", check=3)
    contains(result.stderr, "rt_sigreturn(")
    equal(re.findall(r"syscall_\d+", result.stderr), [], "calls without a name")


@test
def texts_that_nothing_has_touched_are_shown():
    """They are in no page yet when the call begins."""
    need()
    if not shutil.which("gcc"):
        skip("needs gcc")
    with open("untouched.c", "w") as file:
        file.write("#include <fcntl.h>\n#include <unistd.h>\n"
                   "static const char before[8192] = \"b\", text[] = \"never touched\", after[8192] = \"a\";\n"
                   "int main(void) { long got = write(1, text, sizeof(text) - 1);\n"
                   "return open(\"/nonexistent/place\", O_RDONLY) + (before[5000] | after[5000] | (got < 0)) + 1; }\n")
    subprocess.run(["gcc", "-O0", "-o", "untouched", "untouched.c"], check=True)
    for _ in range(5):
        result = assay("trace", "-c", "write,openat", "--", "./untouched", check=0)
        if "texts of arguments are not shown" in result.stderr:
            skip("eBPF is not allowed here")
        contains(result.stderr, '"never touched"')
        contains(result.stderr, '"/nonexistent/place"')


@test
def a_running_process_and_a_signal():
    need()
    process = subprocess.Popen(["sh", "-c", "while :; do sleep 0.01; done"])
    try:
        out = assay("trace", "-s", "-p", str(process.pid), "--duration", "0.5", check=0).stdout
        contains(out, "wait4")
        tracer = subprocess.Popen([ASSAY, "trace", "-p", str(process.pid), "-o", "live.txt"])
        for _ in range(600):
            if os.path.exists("live.txt") and os.path.getsize("live.txt"):
                break
            time.sleep(0.05)
        tracer.send_signal(signal.SIGINT)
        equal(tracer.wait(60), 0, "exit code")
        contains(open("live.txt").read(), "wait4(")
    finally:
        process.kill()
        process.wait()


@test
def an_ordinary_user_is_told_what_to_do():
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        skip("needs root and setpriv to become somebody else")
    result = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", ASSAY, "trace", "true"],
                            text=True, capture_output=True)
    if result.returncode == 126 or "cannot open" in result.stderr:
        skip("the build is not readable for others")
    equal(result.returncode, 125, "exit code")
    contains(result.stderr, "tracefs")


@test
def filters_of_stat_and_record():
    need()
    out = assay("stat", "--json", "-e", "syscalls:sys_enter_write,"
                "raw_syscalls:sys_enter", "--filter", "id == 39", "--", "true")
    contains(out.stderr, "does not understand the filter")
    assay("record", "-q", "-e", "raw_syscalls:sys_enter", "--filter", "id == 1", "-o", "f.data", "--",
          "dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=50", "status=none", check=0)
    events = json.loads(assay("report", "--json", "f.data", check=0).stdout)["events"]
    equal(events[0]["samples"], 50, "writes")
    assay("record", "-e", "cpu-clock", "--filter", "x == 1", "--", "true", check=2)


main()
