# SPDX-License-Identifier: MIT
"""assay-scale: every test makes the system calls it is said to make, tasks are where they should be,
and nothing is left behind, however it ends."""
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import time

from harness import *

SCALE = os.path.join(os.environ.get("BUILD", "build"), "workloads/scale/assay-scale")
TWO = ["-t", "2", "--oversubscribe"]  # also where there is one CPU

# What each test does in one operation, as the descriptions say; written down here once more, so that
# a test that does something else cannot announce that something itself.
CALLS = {
    "brk1": {"brk": 1}, "brk2": {"brk": 1},
    "context_switch1": {"write": 1 / 2, "read": 1 / 2},
    "dup1": {"dup": 1, "close": 1},
    "eventfd1": {"write": 1, "read": 1},
    "fallocate1": {"fallocate": 1, "ftruncate": 1 / 128},
    "fallocate2": {"fallocate": 1, "ftruncate": 1 / 128},
    "futex1": {"futex": 1}, "futex2": {"futex": 1}, "futex3": {"futex": 1}, "futex4": {"futex": 1},
    "getppid1": {"getppid": 1},
    "lock1": {"fcntl": 1}, "lock2": {"fcntl": 1},
    "lseek1": {"lseek": 1}, "lseek2": {"lseek": 1},
    "malloc1": {"mmap": 1, "munmap": 1}, "malloc2": {},
    "mmap1": {"mmap": 1, "munmap": 1}, "mmap2": {"mmap": 1, "munmap": 1},
    "open1": {"openat": 1, "close": 1}, "open2": {"openat": 1, "close": 1},
    "open3": {"openat": 1, "close": 1},
    "page_fault1": {"mmap": "page", "munmap": "page"},
    "page_fault2": {"mmap": "page", "munmap": "page"},
    "page_fault3": {"mmap": "page", "munmap": "page"},
    "pipe1": {"write": 1, "read": 1},
    "poll1": {"poll": 1}, "poll2": {"poll": 1},
    "posix_semaphore1": {},
    "pread1": {"pread64": 1}, "pread2": {"pread64": 1}, "pread3": {"pread64": 1},
    "pthread_mutex1": {}, "pthread_mutex2": {}, "pthread_mutex3": {}, "pthread_mutex4": {},
    "pthread_mutex5": {},
    "pwrite1": {"pwrite64": 1}, "pwrite2": {"pwrite64": 1}, "pwrite3": {"pwrite64": 1},
    "read1": {"read": 1, "lseek": 1 / 256}, "read2": {"read": 1, "lseek": 1 / 256},
    "read3": {"read": 1, "lseek": 1 / 256}, "read4": {"read": 1, "lseek": 1 / 256},
    "readseek1": {"lseek": 1, "read": 1}, "readseek2": {"lseek": 1, "read": 1},
    "readseek3": {"lseek": 1, "read": 1},
    "sched_yield": {"sched_yield": 1},
    "signal1": {"tgkill": 1, "rt_sigreturn": 1},
    "tlb_flush1": {"madvise": 1}, "tlb_flush2": {"madvise": 1}, "tlb_flush3": {"madvise": 1},
    "unix1": {"write": 1, "read": 1},
    "unlink1": {"openat": 1, "close": 1, "unlink": 1},
    "unlink2": {"openat": 1, "close": 1, "unlink": 1},
    "write1": {"write": 1, "lseek": 1 / 256},
    "writeseek1": {"lseek": 1, "write": 1}, "writeseek2": {"lseek": 1, "write": 1},
    "writeseek3": {"lseek": 1, "write": 1},
}
# The sanitizer's malloc is another, and takes seconds to mark 128 MB as freed.
TESTS = [name for name in CALLS if not (SANITIZED and name.startswith("malloc"))]
EVERY = TESTS if SANITIZED else ["all"]
# What raise() of different C libraries does besides.
RAISE_MAY = {"getpid", "gettid", "rt_sigprocmask"}


def scale(*args, check=None, **kwargs):
    kwargs.setdefault("timeout", 480)
    kwargs.setdefault("env", dict(os.environ, LC_ALL="C.UTF-8", TMPDIR=os.getcwd()))
    result = subprocess.run([SCALE, *map(str, args)], stdin=subprocess.DEVNULL, text=True,
                            capture_output=True, **kwargs)
    if "Sanitizer" in result.stderr or "runtime error:" in result.stderr:
        raise AssertionError("sanitizer report:\n" + result.stderr)
    if check is not None and result.returncode != check:
        raise AssertionError(f"{' '.join(map(str, args))}: exit {result.returncode}, not {check}\n"
                             f"{result.stdout}\n{result.stderr}")
    return result


def measured(*args, check=0):
    return json.loads(scale(*args, "--json", check=check).stdout)


def start(*args, **env):
    return subprocess.Popen([SCALE, *map(str, args)], stdin=subprocess.DEVNULL, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=dict(os.environ, TMPDIR=os.getcwd(), **env))


def await_true(condition, what):
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError(f"not after a minute: {what}")


def stat_fields(pid):
    """State and parent of a process; None when it is gone."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fields[0], int(fields[1])


def is_running(pid):
    fields = stat_fields(pid)
    return fields is not None and fields[0] != "Z"


def descendants(pid):
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        fields = stat_fields(entry.name) if entry.name.isdigit() else None
        if fields:
            parents.setdefault(fields[1], []).append(int(entry.name))
    found, left = [], [pid]
    while left:
        children = parents.get(left.pop(), [])
        found += children
        left += children
    return found


def folders():
    return list(pathlib.Path(".").glob("assay-scale.*"))


def can_direct():
    try:
        os.close(os.open("direct", os.O_RDWR | os.O_CREAT | os.O_DIRECT))
        return True
    except OSError:
        return False


@test
def sixty_tests_are_listed_with_a_line_each():
    lines = scale("--list", check=0).stdout.splitlines()
    equal(sorted(CALLS), [line.split()[0] for line in lines], "names")
    equal(len(lines), 60, "tests")
    for line in lines:
        if len(line.split(None, 1)[1]) < 6 or len(line) > 110:
            raise AssertionError(line)
    equal(sorted(test["name"] for test in json.loads(scale("--list", "--json", check=0).stdout)),
          sorted(CALLS))


def check_calls(mode):
    result = scale(*EVERY, "--calls", mode, "--json")
    if "no permission" in result.stdout or "not visible" in result.stdout:
        skip("system calls cannot be counted here: no tracepoint raw_syscalls:sys_enter for us")
    data = json.loads(result.stdout)
    direct = can_direct()
    seen = set()
    for failure in data["failures"]:
        if failure["test"] not in ("read3", "read4") or direct:
            raise AssertionError(failure)
        seen.add(failure["test"])
    pages = 128 * 1024 * 1024 // resource.getpagesize()
    for one in data["results"]:
        name = one["test"]
        seen.add(name)
        expected = {call: round(one["ops"] * (1 / pages if share == "page" else share))
                    for call, share in CALLS[name].items()}
        counted = {call: count for call, count in one["calls"].items()
                   if not (name == "signal1" and call in RAISE_MAY)}
        equal(counted, expected, f"{name}: calls in {one['ops']} operations")
        equal(one["calls_as_announced"], True, name)
    equal(seen, set(TESTS), "tests")


@test
def every_test_makes_its_calls_as_process():
    check_calls("--processes")


@test
def every_test_makes_its_calls_as_thread():
    check_calls("--threads")


@test
def the_count_of_calls_is_that_of_another_counter():
    def counted(ops):
        result = assay("stat", "--json", "-o", "stat.json", "-e", "syscalls:sys_enter_dup", "--", SCALE,
                       "dup1", "--ops", ops, "-t", "1")
        data = json.loads(pathlib.Path("stat.json").read_text()) if result.returncode == 0 else {}
        if not data.get("events") or not data["events"][0]["supported"]:
            skip("syscalls:sys_enter_dup cannot be counted here")
        return data["summary"][0]["mean"]
    equal(counted(6000) - counted(1000), 5000)


@test
def every_test_runs_as_processes_and_threads():
    data = measured(*EVERY, *TWO, "--processes", "--threads", "--ops", "300",
                    check=0 if can_direct() else None)
    for failure in data["failures"]:
        if failure["test"] not in ("read3", "read4") or can_direct():
            raise AssertionError(failure)
        contains(failure["reason"], "O_DIRECT")
    for one in data["results"]:
        equal([task["ops"] for task in one["each"]], [300, 300], f"{one['test']} {one['mode']}")
    equal(len(data["results"]) + len(data["failures"]), 2 * len(TESTS), "measurements")
    equal(folders(), [])


@test
def a_number_of_operations_is_exact():
    for mode in ("--processes", "--threads"):
        one = measured("getppid1", *TWO, mode, "--ops", "1001")["results"][0]
        equal([task["ops"] for task in one["each"]], [1001, 1001])
        equal(one["ops"], 2002)
    # Two operations go together.
    equal(measured("brk1", "--ops", "1001")["results"][0]["ops"], 1002)


@test
def the_time_is_measured():
    one = measured("getppid1", "-s", "0.5", "-w", "0", "--interval", "0.1")["results"][0]
    if one["elapsed_s"] < 0.5:
        raise AssertionError(one)
    # Intervals are as long as the clock says: fewer on a machine that oversleeps.
    between(len(one["interval_ops_per_second"]), 1, 5, "intervals")
    between(one["ops"] / one["elapsed_s"] / one["ops_per_second"], 0.999, 1.001, "rate")


@test
def tasks_are_pinned_core_by_core():
    cpus = sorted(os.sched_getaffinity(0))
    count = min(2, len(cpus))
    for mode in ("--processes", "--threads"):
        process = start("getppid1", "-t", count, mode, "-s", "60", "-w", "0")

        def pinned():
            found = []
            for pid in descendants(process.pid):
                for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
                    try:
                        allowed = os.sched_getaffinity(int(task.name))
                    except ProcessLookupError:
                        continue
                    if len(allowed) == 1:
                        found += allowed
            return sorted(found)
        if len(cpus) > 1:
            await_true(lambda: len(pinned()) == count, "tasks run on one CPU each")
            equal(len(set(pinned())), count, "different CPUs")
        process.terminate()
        process.communicate()
    each = measured("getppid1", "-t", count, "--ops", "10")["results"][0]["each"]
    equal(len({task["cpu"] for task in each}), count)


@test
def mappings_are_added_in_every_task():
    for mode in ("--processes", "--threads"):
        process = start("getppid1", mode, "-s", "60", "-w", "0", "--mappings", "1000")

        def mapped():
            for pid in descendants(process.pid):
                try:
                    if len(pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()) >= 1000:
                        return True
                except OSError:
                    pass
            return False
        await_true(mapped, "a task with a thousand mappings")
        process.terminate()
        process.communicate()


@test
def a_sweep_prints_a_table():
    cpus = len(os.sched_getaffinity(0))
    text = scale("getppid1", "-t", "1..2" if cpus > 1 else "1", "-s", "0.5", "-w", "0",
                 check=0).stdout
    contains(text, "if linear")
    rows = [line.split() for line in text.splitlines() if re.match(r"getppid1 +processes", line)]
    equal([row[2] for row in rows], ["1", "2"] if cpus > 1 else ["1"])
    equal(rows[0][6], "100.0%", "one task is the measure of linear")
    data = measured("getppid1", "-t", "1,2", "--oversubscribe", "-s", "0.5", "-w", "0")
    first, second = data["results"]
    between(second["linear_ops_per_second"] / first["ops_per_second"], 1.9999, 2.0001, "linear")
    one = scale("getppid1", "-s", "0.5", "-w", "0", check=0).stdout
    contains(one, "CPU time")


@test
def metrics_are_reported():
    def reported(*args):
        read_end, write_end = os.pipe()
        scale(*args, "-s", "0.5", "-w", "0", check=0, pass_fds=(write_end,),
              env=dict(os.environ, ASSAY_METRICS_FD=str(write_end)))
        os.close(write_end)
        with os.fdopen(read_end) as stream:
            return {line.split()[1]: float(line.split()[2]) for line in stream}
    found = reported("getppid1", *TWO)
    between(found["workload"] / found["per_process_ops"], 1.9999, 2.0001, "tasks")
    lacks("".join(found), "per_thread_ops")
    found = reported("getppid1", "--threads")
    equal(found["workload"], found["per_thread_ops"])
    found = reported("getppid1", "dup1", "-t", "1,2", "--oversubscribe")
    equal(sorted(found), ["dup1.1.processes", "dup1.2.processes", "getppid1.1.processes",
                          "getppid1.2.processes"])


@test
def impossible_settings_are_refused_with_a_reason():
    cpus = len(os.sched_getaffinity(0))
    for args, words in {
        (): "give one or more tests",
        ("page_fault",): "did you mean page_fault1",
        ("brk1", "-t", "0"): "at least one task",
        ("brk1", "-t", "two"): "not a number of tasks",
        ("brk1", "-t", "3..2", "--oversubscribe"): "empty",
        ("brk1", "-t", "0%"): "above 0",
        ("brk1", "-t", cpus + 1): "--oversubscribe",
        ("brk1", "-t", "100000", "--oversubscribe"): "more than the maximum",
        ("brk1", "-s", "0"): "10ms",
        ("brk1", "--interval", "0"): "10ms",
        ("brk1", "--folder", "/nowhere/at/all"): "--folder",
        ("brk1", "--mappings", "100000"): "at most 60000",
        ("brk1", "--sconds", "1"): "did you mean --seconds",
    }.items():
        result = scale(*args, check=2)
        contains(result.stderr, words)
        equal(result.stdout, "")
    equal(folders(), [])


@test
def what_the_machine_lacks_is_said():
    def few_files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
    result = scale("poll2", "--threads", "-t", "2", "--oversubscribe", preexec_fn=few_files, check=1)
    contains(result.stderr, "ulimit -n")
    equal(folders(), [])


@test
def nothing_is_left_when_it_is_stopped():
    for number in (signal.SIGINT, signal.SIGTERM):
        process = start("unlink1", *TWO, "-s", "60", "-w", "0")
        await_true(lambda: [path for path in pathlib.Path(".").glob("assay-scale.*/run.*/file-*")],
                   "files of the tasks")
        children = descendants(process.pid)
        process.send_signal(number)
        process.communicate(timeout=240)
        equal(process.returncode, 128 + number, "exit code")
        equal(folders(), [])
        # It waited for all of them.
        equal([pid for pid in children if is_running(pid)], [])


@test
def nothing_is_left_when_it_is_killed():
    for mode in ("--processes", "--threads"):
        for name in ("unlink2", "context_switch1"):
            process = start(name, *TWO, mode, "-s", "60", "-w", "0")
            await_true(lambda: len(descendants(process.pid)) >= 2 and
                       list(pathlib.Path(".").glob("assay-scale.*/run.*")), "tasks")
            time.sleep(0.1)
            children = descendants(process.pid)
            process.kill()
            process.communicate(timeout=240)
            await_true(lambda: not folders(), f"{name} {mode}: the folder is removed")
            await_true(lambda: not [pid for pid in children if is_running(pid)], "all processes end")


@test
def a_task_that_dies_is_an_error_and_ends_all():
    process = start("getppid1", *TWO, "-s", "60", "-w", "0")

    def tasks():
        # The tasks are the children of the host, the child that has children.
        return [pid for child in descendants(process.pid) for pid in descendants(child)]
    await_true(lambda: len(tasks()) == 2, "two tasks")
    children = descendants(process.pid)
    os.kill(tasks()[0], signal.SIGKILL)
    output, errors = process.communicate(timeout=240)
    equal(process.returncode, 1, "exit code")
    contains(errors, "signal 9")
    equal(folders(), [])
    equal([pid for pid in children if is_running(pid)], [])


@test
def one_failure_does_not_end_a_sweep():
    def few_files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
    result = scale("getppid1", "poll2", "dup1", "--threads", *TWO, "-s", "0.5", "-w", "0",
                   preexec_fn=few_files, check=1)
    contains(result.stdout, "failed: poll2")
    contains(result.stdout, "dup1")
    contains(result.stderr, "1 of 3 measurements failed")


@test
def every_option_stands_in_the_manual_page():
    page = (ROOT / "docs/man/assay-scale.1.scd").read_text().replace("\\_", "_")
    help_text = scale("--help", check=0).stdout
    for option in re.findall(r"^\s+(?:-\w,?)?\s*(--[a-z-]+)", help_text, re.MULTILINE):
        contains(page, option)
    for name in CALLS:
        contains(page, name)


@test
def the_experiment_is_a_plan():
    text = assay("run", "--dry-run", "--quick", ROOT / "experiments/scalability.yaml", check=0,
                 env={"ASSAY_DB": "plan.db"}).stdout
    contains(text, "page_fault1")


main()
