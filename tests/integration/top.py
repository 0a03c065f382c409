# SPDX-License-Identifier: MIT
"""assay top: a program whose threads are known (tests/targets/lively.c) is seen as it is."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

from harness import *
from terminal import Terminal

BELOW = "/sys/fs/cgroup/unified", "/sys/fs/cgroup"


class Lively:
    def __init__(self, seconds=120, **options):
        self.process = subprocess.Popen([target("lively"), str(seconds)], **options)

    def __enter__(self):
        return self.process.pid

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def need():
    result = assay("top", "-p", str(os.getpid()), "--once", "-d", "0.2")
    if result.returncode:
        skip("nothing can be sampled here: " + result.stderr.strip()[:200])


def frame(*arguments):
    """The last of three frames: a thread is known to have run after the first."""
    result = assay("top", "--json", "-n", "3", "-w", "1", "-r", "200", *arguments, check=0)
    return json.loads(result.stdout.splitlines()[-1])


def only(rows, **what):
    return [row for row in rows if all(row.get(key) == value for key, value in what.items())]


@test
def functions_threads_calls_and_waits_of_a_process():
    need()
    with Lively() as pid:
        seen = frame("-p", str(pid))
    equal(seen["target"], f"process {pid}")
    burn = only(seen["functions"], function="burn", binary="lively")
    equal(len(burn), 1, "rows of burn")
    equal(burn[0]["kernel"], False)
    threads = {row["command"]: row for row in seen["threads"]}
    for name in ("burner", "caller"):
        between(threads[name]["cpu_percent"], 1, 130, name)
    between(threads["dozer"]["cpu_percent"], 0, 30, "dozer")
    equal(threads["dozer"]["kind"], "sleep")
    waits = only(seen["waits"], command="lively")
    equal([row["kind"] for row in only(waits, call="clock_nanosleep")][:1], ["sleep"])
    # A second row where the kernel happened to wait in another function of the same call.
    equal({row["file"] for row in only(waits, call="read")}, {"pipe"})
    equal(only(waits, call="pause"), [], "threads that slept all the time")
    between(seen["threads_asleep"], 1, 2, "threads asleep")
    if not any(row["kernel"] for row in seen["functions"]):
        skip("no permission to sample the kernel")
    read = only(seen["calls"], call="read")
    equal(len(read), 1, "rows of read")
    between(read[0]["cpu_percent"], 0.5, 130, "CPU time in read")
    between(read[0]["waiting_percent"], 1, 130, "waits in read")


@test
def sleepers_on_demand_and_the_schema_fits():
    need()
    import jsonschema
    with Lively() as pid:
        seen = frame("-p", str(pid), "--idle")
    equal(len(only(seen["waits"], call="pause")), 1, "sleepers")
    schema = json.loads((ROOT / "schemas/assay-top-1.schema.json").read_text())
    jsonschema.validate(seen, schema)


@test
def text_of_the_machine():
    need()
    with Lively():
        result = assay("top", "--once", "-w", "1", check=0)
        lines = result.stdout.splitlines()
        contains(lines[0], "assay top: ")
        contains(lines[0], "busy")
        contains(lines[1], "function")
        contains(result.stdout, "burn")
        if os.geteuid() == 0:
            contains(lines[0], "machine")
        threads = assay("top", "-n", "2", "--view", "threads", "--filter", "BURNER", check=0).stdout
        contains(threads, "burner")
        lacks(threads, "caller")
        equal(threads.count("assay top: "), 2, "frames")


@test
def an_ordinary_user_sees_their_own():
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        skip("needs root to become another user")
    if int(open("/proc/sys/kernel/perf_event_paranoid").read()) < 1:
        skip("everybody may sample the machine here")
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    os.chmod(".", 0o755)
    try:
        subprocess.run([*as_nobody, ASSAY, "--version"], check=True, capture_output=True)
    except (subprocess.CalledProcessError, PermissionError):
        skip("another user may not run the program here")
    with Lively(user=65534, group=65534, extra_groups=[]):
        result = subprocess.run([*as_nobody, ASSAY, "top", "--json", "-n", "3", "-w", "1"],
                                capture_output=True, text=True, check=True,
                                env={**os.environ, "HOME": "/nonexistent"})
    seen = json.loads(result.stdout.splitlines()[-1])
    equal(seen["target"], "your processes")
    contains(result.stderr, "only your own processes")
    equal(len(only(seen["functions"], function="burn")), 1, "rows of burn")
    equal({row["command"] for row in seen["threads"]} >= {"burner", "dozer"}, True, "threads")
    equal(only(seen["waits"], call="clock_nanosleep")[0]["kind"], "sleep")


@test
def what_is_saved_is_a_recording():
    need()
    with Lively() as pid:
        result = assay("top", "-p", str(pid), "-n", "2", "-F", "500", "-o", "saved.data", check=0)
    contains(result.stderr, "-> saved.data")
    contains(assay("report", "--stdio", "saved.data", check=0).stdout, "burn")
    if shutil.which("perf") and not SANITIZED:
        theirs = subprocess.run(["perf", "report", "--stdio", "-i", "saved.data"], text=True,
                                capture_output=True)
        contains(theirs.stdout, "burn")
        # One event that asks for build-ids puts them into every recording on the machine.
        events = subprocess.run(["perf", "evlist", "-v", "-i", "saved.data"], text=True,
                                capture_output=True).stdout
        contains(events, "mmap2: 1")
        lacks(events, "build_id")


@test
def the_end_of_a_process_ends_it():
    need()
    with Lively(2) as pid:
        result = assay("top", "-p", str(pid), "-d", "0.5", check=0)
    contains(result.stderr, "the process has ended")
    gone = assay("top", "-p", str(pid), "--once", check=1)
    contains(gone.stderr, f"there is no process {pid}")


@test
def a_signal_ends_it():
    need()
    for number, code in ((signal.SIGINT, 0), (signal.SIGTERM, 128 + 15)):
        process = subprocess.Popen([ASSAY, "top", "-p", str(os.getpid()), "-d", "0.2"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        process.stdout.readline()
        process.send_signal(number)
        process.stdout.read()
        equal(process.wait(), code, f"exit code after signal {number}")


@test
def a_cgroup():
    need()
    home = next((pathlib.Path(p) for p in BELOW if pathlib.Path(p, "cgroup.procs").exists()), None)
    if os.geteuid() != 0 or not home or not os.access(home, os.W_OK):
        skip("needs root and a writable cgroup2")
    group = home / f"assay-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as why:
        skip(f"no cgroup can be made: {why}")
    try:
        with Lively() as inside, Lively() as outside:
            (group / "cgroup.procs").write_text(str(inside))
            seen = frame("--cgroup", group.name)
        equal({row["pid"] for row in seen["threads"]}, {inside}, f"processes, without {outside}")
        equal(len(only(seen["functions"], function="burn")), 1, "rows of burn")
    finally:
        group.rmdir()
    contains(assay("top", "--cgroup", "no-such", "--once", check=1).stderr, "no-such")


@test
def keys():
    need()
    with Lively() as pid, Terminal([ASSAY, "top", "-p", str(pid), "-d", "0.3"], columns=100) as t:
        t.expect("burn")
        t.send("2")
        t.expect("burner")
        t.send("4")
        t.expect("clock_nanosleep")
        t.send("i")
        t.expect("pause")
        t.send("3")
        t.expect("system call")
        t.send("2/burner\n")
        t.expect("/burner")
        t.send("\n")
        t.expect("> thread")
        t.send(" ")
        t.expect("frozen")
        t.send(" \033\033h")
        t.expect("save what was sampled")
        t.send("x")
        t.send("w\x15kept.data\n")
        t.expect("saved in kept.data")
        t.resize(40, 12)
        t.send("1")
        t.expect("burn")
        t.send("q")
        equal(t.exit_code(), 0, "exit code")
    contains(assay("report", "--stdio", "kept.data", check=0).stdout, "burn")


@test
def ctrl_c_restores_the_terminal():
    need()
    with Terminal([ASSAY, "top", "-p", str(os.getpid()), "-d", "0.3"], columns=40) as t:
        t.expect("functions")
        t.send("\x03")
        equal(t.exit_code(), 0, "exit code")
        contains(t.output[t.output.rindex("\033["):] + t.output[-40:], "\033[?1049l")


@test
def a_dumb_terminal_gets_text():
    need()
    command = f"TERM=dumb LC_ALL=C {ASSAY} top -p {os.getpid()} -d 0.2 2> /dev/null"
    with Terminal(["sh", "-c", "exec env " + command], columns=40) as t:
        t.expect("assay top: ")
        t.send("\x03")
        equal(t.exit_code(), 0, "exit code")
        lacks(t.output, "\033[")
        equal(max(len(line) for line in t.plain().splitlines()) <= 40, True, "40 columns")


@test
def wrong_command_lines():
    contains(assay("top", "sleep", check=2).stderr, "assay record")
    contains(assay("top", "-p", "1", "--cgroup", "x", check=2).stderr, "cannot be used together")
    contains(assay("top", "--view", "all", check=2).stderr, "functions, threads, calls, waits")
    contains(assay("top", "-d", "0.01", check=2).stderr, "0.1")
    contains(assay("top", "-F", "0", check=2).stderr, "at least one sample")
    contains(assay("top", "-w", "1h", check=2).stderr, "-w")
    contains(assay("top", "-p", "x", check=2).stderr, "not a process ID")


main()
