# SPDX-License-Identifier: MIT
"""--exact=user: known counts, programs that fork, exec, thread, crash; verdicts; what is missing."""
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import time

from harness import *

# hot() takes two instructions a turn; call() makes system calls.
PROGRAM = r"""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noinline)) void hot(long turns)
{
    __asm__ volatile("1: dec %0\n jnz 1b" : "+r"(turns));
}
static void *thread(void *turns)
{
    hot((long)turns);
    return NULL;
}
int main(int argc, char **argv)
{
    long turns = argc > 2 ? atol(argv[2]) : 100000;
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "call"))
        for (long i = 0; i < turns; i++)
            syscall(SYS_getppid);
    else if (!strcmp(what, "threads")) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, thread, (void *)turns);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
    } else
        hot(turns);
    if (!strcmp(what, "crash"))
        raise(SIGSEGV);
    if (!strcmp(what, "kill"))
        raise(SIGKILL);
    if (!strcmp(what, "random")) {
        unsigned value;
        if (getrandom(&value, sizeof(value), 0) == sizeof(value))
            printf("%u\n", value);
        hot(value % 1000 + 1);
    }
    return !strcmp(what, "fail") ? 7 : 0;
}
"""


def emulator():
    if platform.machine() != "x86_64":
        skip("the programs of this test are for x86_64")
    if not shutil.which("qemu-x86_64"):
        skip("qemu-x86_64 is not installed (package qemu-user)")
    if "-plugin" not in subprocess.run(["qemu-x86_64", "-h"], text=True, capture_output=True).stdout:
        skip("this qemu-x86_64 is built without plugins")


def program(name="prog", text=PROGRAM):
    emulator()
    pathlib.Path(name + ".c").write_text(text)
    subprocess.run(["gcc", "-O1", "-pthread", name + ".c", "-o", name], check=True)
    return os.path.abspath(name)


def stat(*command, check=0, **kwargs):
    """The result of one run, with nothing left in the directory for temporary files."""
    place = pathlib.Path("temporary").resolve()
    place.mkdir(exist_ok=True)
    env = dict(kwargs.pop("env", {}), TMPDIR=str(place))
    result = assay("stat", "--exact=user", "--json", "-o", "out.json", *command, check=check, env=env,
                   **kwargs)
    equal(list(place.iterdir()), [], "left behind")
    return json.loads(pathlib.Path("out.json").read_text()), result


def function(data, name):
    return sum(f["instructions"] for f in data["functions"] if f["name"] == name)


def calls(data, name):
    return sum(c["count"] for c in data["runs"][0]["syscalls"] if c["name"] == name)


@test
def known_counts():
    path = program()
    data, _ = stat("-r", "2", "--", path, "hot", "1000000")
    between(function(data, "hot"), 2000000, 2000010, "instructions of hot")
    values = [run["counts"][0]["value"] for run in data["runs"]]
    equal(values[0], values[1], "two runs")
    equal(sum(f["instructions"] for f in data["functions"]), values[0], "the sum of the functions")
    data, _ = stat("--", path, "call", "1234")
    equal(calls(data, "getppid"), 1234)


@test
def threads_and_processes():
    path = program()
    data, _ = stat("--", path, "threads", "200000")
    between(function(data, "hot"), 1600000, 1600040, "instructions of hot in four threads")
    equal(data["runs"][0]["threads"], 5)
    # A script, whose shell forks and executes.
    script = pathlib.Path("script")
    script.write_text(f"#!/bin/sh\n'{path}' hot 300000\n('{path}' hot 100000) | cat\nexit $(($1 + 1))\n")
    script.chmod(0o755)
    data, _ = stat("--", "./script", "4", check=5)
    between(function(data, "hot"), 800000, 800040, "instructions of hot in two processes")
    between(data["runs"][0]["processes"], 5, 8, "processes")
    equal(calls(data, "execve"), 3)


@test
def ends_are_the_programs_own():
    path = program()
    stat("--", path, "fail", check=7)
    for what, number in (("crash", signal.SIGSEGV), ("kill", signal.SIGKILL)):
        data, _ = stat("--", path, what, "500000", check=128 + number)
        equal(data["runs"][0]["signal"], number)
        between(function(data, "hot"), 1000000, 1000010, "instructions before the " + what)
    equal(list(pathlib.Path(".").glob("*.core")), [], "core files")


@test
def randomness_repeats():
    path = program()
    outputs = {stat("--", path, "random")[1].stdout for _ in range(2)}
    equal(len(outputs), 1, outputs)
    data, _ = stat("-r", "2", "--", "/bin/sh", "-c", "head -c 8 /dev/urandom | od -An -tx1")
    values = {run["counts"][0]["value"] for run in data["runs"]}
    equal(len(values), 1, values)


@test
def streams_pass():
    emulator()
    data, result = stat("--", "/bin/sh", "-c", "head -c 20000000 /dev/zero | tr '\\0' x; cat >&2",
                        input="hello", stdin=None)
    equal(len(result.stdout), 20000000)
    contains(result.stderr, "hello")


@test
def programs_that_cannot_run():
    emulator()
    for words, code, part in ((["./none"], 127, "./none"), (["/etc/passwd"], 126, "/etc/passwd")):
        result = assay("stat", "--exact=user", "--", *words, check=code)
        contains(result.stderr, part)
    foreign = pathlib.Path("foreign")
    foreign.write_bytes(b"\x7fELF\x01\x01\x01" + bytes(9) + b"\x02\x00\x28\x00" + bytes(60))
    foreign.chmod(0o755)
    result = assay("stat", "--exact=user", "--", "./foreign", check=126)
    contains(result.stderr, "not a program for this processor")
    # One that a command starts is named.
    data, _ = stat("--", "/bin/sh", "-c", "./foreign; true")
    equal(data["runs"][0]["not_counted"], ["./foreign"])


@test
def other_words_are_refused():
    for words, part in ((["--exact=all"], "--exact=user"), (["--exact=user", "--sim"], "together"),
                        (["--exact=user", "-e", "cycles"], "only with")):
        contains(assay("stat", *words, "--", "true", check=2).stderr, part)
    contains(assay("ab", "--exact=user", "--duet", "true", "false", check=2).stderr, "together")


def cpu_ticks(pid):
    """User time of a process so far."""
    try:
        return int(pathlib.Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[11])
    except FileNotFoundError:
        return 0


@test
def a_signal_ends_it():
    path = program()
    place = pathlib.Path("temporary").resolve()
    place.mkdir(exist_ok=True)
    process = subprocess.Popen([ASSAY, "stat", "--exact=user", "--", path, "hot", "100000000000"],
                               stderr=subprocess.PIPE, text=True,
                               env=dict(os.environ, TMPDIR=str(place)))
    # Half a second of CPU time is beyond QEMU's own start; before it, nothing may have been counted yet.
    while not any(cpu_ticks(file.name.split(".")[0]) > 50 for file in place.glob("*/*.counts")):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    equal(process.returncode, 130)
    contains(errors, "exact:instructions")
    equal(list(place.iterdir()), [], "left behind")


@test
def without_qemu_cachegrind_counts_and_it_is_said():
    emulator()
    if not shutil.which("valgrind"):
        skip("valgrind is not installed")
    os.mkdir("bin")
    for name in ("valgrind", "true"):
        pathlib.Path(f"bin/{name}").write_text(f'#!/bin/sh\nexec {shutil.which(name)} "$@"\n')
        os.chmod(f"bin/{name}", 0o755)
    env = {"PATH": os.path.abspath("bin"), "HOME": "/nonexistent"}
    data, _ = stat("--", "true", env=env)
    equal(data["emulator"]["fallback"], True)
    equal(data["runs"][0]["counts"][0]["event"], "sim:instructions")
    result = assay("stat", "--exact=user", "--", "true", check=0, env=env)
    contains(result.stderr, "instead of QEMU: qemu-x86_64 is not installed")
    # A QEMU that was built without plugins.
    pathlib.Path("bin/qemu-x86_64").write_text("#!/bin/sh\necho qemu-x86_64 version 10.0.13\n")
    os.chmod("bin/qemu-x86_64", 0o755)
    result = assay("stat", "--exact=user", "--", "true", check=0, env=env)
    contains(" ".join(result.stderr.split()), "10.0.13 is built without plugins")
    os.unlink("bin/qemu-x86_64")
    os.unlink("bin/valgrind")
    for words in (("stat", "--"), ("ab", "-r", "1"), ("bisect", "--good", "HEAD~1", "--run")):
        result = assay(words[0], "--exact=user", *words[1:], "true", check=110, env=env)
        contains(result.stderr, "install qemu-user")
    contains(assay("stat", "--exact=model", "--", "true", check=110, env=env).stderr, "install valgrind")


CROSS = "aarch64-linux-gnu-gcc"
ARM64 = r"""
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noinline)) void hot(long turns)
{
    __asm__ volatile("1: subs %0, %0, #1\n bne 1b" : "+r"(turns) : : "cc");
}
int main(int argc, char **argv)
{
    hot(atol(argv[1]));
    for (int i = 0; i < 1234; i++)
        syscall(SYS_getppid);
    if (argc > 2)
        execv(argv[0], (char *[]){argv[0], argv[1], NULL});
    return 0;
}
"""


@test
def programs_for_arm64_are_counted_here():
    emulator()
    if not shutil.which("qemu-aarch64") or not shutil.which(CROSS):
        skip("qemu-aarch64 or a compiler for arm64 is not installed")
    pathlib.Path("arm.c").write_text(ARM64)
    for name, words in (("static", ["-static"]), ("dynamic", [])):
        subprocess.run([CROSS, "-O1", *words, "arm.c", "-o", name], check=True)
        result = assay("stat", "--exact=arm64", "-r", "2", "--json", "-o", "out.json", "--", f"./{name}", "1000000",
                       "again", check=0)
        data = json.loads(pathlib.Path("out.json").read_text())
        # The program executes itself once, and is counted there, too.
        between(function(data, "hot"), 4000000, 4000020, "instructions of hot")
        equal(calls(data, "getppid"), 2468)
        first, second = ({c["event"]: c["value"] for c in run["counts"]} for run in data["runs"])
        equal(first["exact:arm64-instructions"], second["exact:arm64-instructions"], "two runs")
    contains(assay("stat", "--exact=user", "--", "./static", "10", check=111).stderr, "--exact=arm64 counts it")
    contains(assay("stat", "--exact=arm64", "--", "/bin/true", check=111).stderr, "is for x86_64")
    result = assay("stat", "--exact=arm64", "--", "./dynamic", "10", check=111, env={"QEMU_LD_PREFIX": "/nonexistent"})
    contains(result.stderr, "libc6-arm64-cross")
    result = assay("ab", "--exact=arm64", "./static 1000000", "./static 1001000", check=0)
    contains(result.stdout, "exact:arm64-instructions")
    contains(result.stdout, "+2,000")
    os.mkdir("empty")
    result = assay("stat", "--exact=arm64", "--", "./static", "10", check=110, env={"PATH": os.path.abspath("empty")})
    contains(result.stderr, "qemu-user")


@test
def modelled_cycles_see_the_cache():
    if not shutil.which("valgrind"):
        skip("valgrind is not installed")
    path = program("walk", r"""
#include <stdlib.h>
static int v[4096][1024];
int main(int argc, char **argv)
{
    int rows = argc > 1 && *argv[1] == 'r';
    long sum = 0;
    for (int i = 0; i < 4194304; i++)
        sum += rows ? v[i / 1024][i % 1024] : v[i % 4096][i / 4096];
    return sum == 1;
}
""")
    for words in ([], ["-r", "2"]):
        assay("stat", "--exact=model", "--json", "-o", "out.json", *words, "--", path, "row", check=0)
        runs = json.loads(pathlib.Path("out.json").read_text())["runs"]
        equal(len({run["counts"][0]["value"] for run in runs}), 1, "modelled cycles of the runs")
    result = assay("ab", "--exact=model", f"{path} row", f"{path} column", check=0)
    contains(result.stderr, "modelled cycles are not a time: ")
    contains(result.stdout, "sim:modelled-cycles")
    text = assay("stat", "--exact=model", "--", path, "row", check=0).stderr
    contains(" ".join(text.split()), "of CPU time, modelled, within a factor of ")
    contains(text, "sim:modelled-cycles")


@test
def the_model_is_that_of_its_data():
    result = subprocess.run([sys.executable, str(ROOT / "bench/exact/model"), "check"], text=True, capture_output=True)
    equal(result.returncode, 0, result.stdout + result.stderr)


def git(*args):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *args], check=True,
                   capture_output=True)


def commit(turns, message):
    pathlib.Path("turns").write_text(f"{turns}\n")
    git("add", "-A")
    git("commit", "-qm", message, "--allow-empty")


def repository():
    program()
    git("init", "-q", ".")
    pathlib.Path("run").write_text('#!/bin/sh\nread turns <turns\nexec ./prog hot "$turns"\n')
    os.chmod("run", 0o755)
    commit(1000000, "one")
    commit(1000000, "two")
    commit(1005000, "three")
    commit(1005000, "four")


@test
def verdicts():
    repository()
    # A/A, +0.4 % with 0.2 % allowed, and the functions, which add up.
    result = assay("gate", "--exact=user", "--base", "HEAD~1", "--max-regression", "0.2%", "--", "./run",
                   check=0)
    # Trees stand at different paths, which a shell and a loader handle in a few instructions more or less.
    contains(result.stdout.replace("-0.00", "+0.00"), "+0.00 % [+0.00, +0.00]")
    result = assay("gate", "--exact=user", "--base", "HEAD~2", "--max-regression", "0.2%", "--json", "--",
                   "./run", check=1)
    row = json.loads(result.stdout)["rows"][0]
    equal(row["metric"], "exact:instructions")
    changes = {f["name"]: f["new"] - f["base"] for f in row["functions"]}
    equal(changes["hot"], 10000)
    equal(sum(changes.values()), row["new_median"] - row["base_median"], "the sum of the changes")
    if shutil.which("valgrind"):
        result = assay("gate", "--exact=model", "--base", "HEAD~2", "--max-regression", "50%", "--", "./run", check=0)
        contains(result.stdout, "sim:modelled-cycles")
        contains(result.stdout, "Note: modelled cycles are not a time: ")
    # The same, by a table of two commands.
    result = assay("ab", "--exact=user", "./prog hot 1000000", "./prog hot 1002000", check=0)
    contains(result.stdout, "exact:instructions")
    contains(result.stdout, "+4,000")
    lacks(result.stdout, "wall")
    contains(result.stdout, "hot (prog)")


@test
def a_gate_on_counts_and_time():
    # Counts see half a per cent more work; only time sees a wait.
    repository()
    pathlib.Path("run").write_text('#!/bin/sh\nread turns <turns\nread pause <pause\nsleep "$pause"\nexec ./prog hot "$turns"\n')
    pathlib.Path("pause").write_text("0.02\n")
    commit(1005000, "a pause")
    pathlib.Path("pause").write_text("0.06\n")
    commit(1005000, "a longer pause")
    counts = ("gate", "--exact=user", "--base", "HEAD~1", "--max-regression", "0.2%", "-q", "-r", "8")
    result = assay(*counts, "--time", "--json", "--", "./run", check=1)
    rows = {row["metric"]: row for row in json.loads(result.stdout)["rows"]}
    equal(rows["exact:instructions"]["result"], "pass")
    equal(rows["wall"]["result"], "regression")
    equal((rows["exact:instructions"]["limit"], rows["wall"]["limit"]), (0.002, 0.05))
    contains(assay(*counts, "--time=3000%", "--", "./run", check=2).stderr, "--time")
    commit(1010000, "more work")
    text = assay(*counts, "--time=90%", "--", "./run", check=1).stdout
    contains(text, "exact counts may get at most 0.2 % worse, and the median and the mean of the time at most 90 %")
    verdicts = {line.split("|")[1].strip(): line.split("|")[-2].strip() for line in text.splitlines()
                if line.startswith("| ")}
    equal(verdicts["exact:instructions"], "regression")
    lacks(verdicts["wall"], "regression")
    # Where counting is all that is asked, there is no time to judge besides.
    contains(assay("gate", "--base", "HEAD~1", "--time", "--", "./run", check=2).stderr, "--time goes with --exact")


@test
def a_spec_and_a_search():
    repository()
    pathlib.Path("e.yaml").write_text("name: e\ncommand: ./run\nexact: user\nrounds: 3\nwarmup: 0\n")
    assay("run", "--db", "e.db", "e.yaml", check=0)
    shown = assay("show", "--db", "e.db", "1", "--all", check=0).stdout
    contains(shown, "exact:instructions")
    contains(shown, "exact:syscalls")
    lacks(shown, "wall")
    pathlib.Path("bad.yaml").write_text("name: e\ncommand: ./run\nexact: sometimes\n")
    contains(assay("run", "--db", "e.db", "bad.yaml", check=1).stderr, "exact: user")
    for name in ("e.yaml", "bad.yaml", "e.db"):
        os.unlink(name)
    result = assay("bisect", "--exact=user", "--good", "HEAD~2", "--min-change", "0.1%", "--run", "./run",
                   "-q", check=0)
    contains(result.stdout, "three")
    contains(result.stdout, "exact:instructions")
    lacks(result.stdout, "wall")


main()
