# SPDX-License-Identifier: MIT
"""--exact: known counts of an emulated machine, in user mode and in the kernel; the host's files,
which stay as they are; what is missing, and machines that do not come back."""
import json
import os
import pathlib
import platform
import shutil
import signal
import struct
import subprocess
import time

from harness import *

# hot() takes two instructions a turn; call() makes system calls.
PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    return !strcmp(what, "fail") ? 7 : 0;
}
"""


# Exit codes, as assay-vm(1) has them.
NO_QEMU, OTHER_ARCH, HANGS, PANICKED, NO_MEMORY, QEMU_ENDED, NO_EVENTS = range(110, 117)


def need():
    if platform.machine() != "x86_64":
        skip("the programs of this test are for x86_64")
    if os.environ.get("ASSAY_EXACT_MISSING"):
        skip(os.environ["ASSAY_EXACT_MISSING"])
    if not shutil.which("qemu-system-x86_64"):
        skip("qemu-system-x86_64 is not installed (package qemu-system-x86)")
    result = assay("vm", "list")
    if "linux-image-amd64" not in result.stdout:
        skip("no kernel: 'assay vm prepare' fetches it")


def program(name="prog", text=PROGRAM):
    need()
    pathlib.Path(name + ".c").write_text(text)
    subprocess.run(["gcc", "-O1", "-pthread", name + ".c", "-o", name], check=True)
    return os.path.abspath(name)


def stat(*command, check=0, **kwargs):
    result = assay("stat", "--exact", "--json", "-o", "out.json", *command, check=check, timeout=250,
                   **kwargs)
    return json.loads(pathlib.Path("out.json").read_text()), result


def near(value, other, share):
    between(value, other * (1 - share), other * (1 + share), "a count that repeats")


def value(run, name):
    return next(c["value"] for c in run["counts"] if c["event"] == name)


def function(data, name):
    return sum(f["instructions"] for f in data["functions"] if f["name"] == name)


def calls(data, name):
    return sum(c["count"] for c in data["runs"][0]["syscalls"] if c["name"] == name)


@test
def known_counts():
    path = program()
    data, _ = stat("-r", "2", "--", path, "hot", "1000000")
    between(function(data, "hot"), 2000000, 2000010, "instructions of hot")
    first, second = data["runs"]
    equal(value(first, "exact:instructions:u"), value(second, "exact:instructions:u"), "two runs")
    near(value(first, "exact:instructions:k"), value(second, "exact:instructions:k"), 0.0005)
    equal(sum(f["instructions"] for f in data["functions"]), value(first, "exact:instructions:uk"),
          "the sum of the functions")
    equal(sum(way["instructions"] for way in first["kernel"]), value(first, "exact:instructions:k"),
          "the sum of what the kernel was entered for")
    between(value(first, "exact:machine-faults"), 50, 5000, "page faults")


@test
def one_system_call_more():
    path = program()
    few, _ = stat("--", path, "call", "10000")
    more, _ = stat("--", path, "call", "10001")
    equal(calls(few, "getppid"), 10000)
    equal(calls(more, "getppid"), 10001)
    few, more = few["runs"][0], more["runs"][0]
    equal(value(more, "exact:machine-syscalls") - value(few, "exact:machine-syscalls"), 1)
    near(value(more, "exact:instructions:k"), value(few, "exact:instructions:k"), 0.0005)


@test
def threads_scripts_and_the_hosts_files():
    path = program()
    data, _ = stat("--", path, "threads", "200000")
    between(function(data, "hot"), 1600000, 1600040, "instructions of hot in four threads")
    equal(data["runs"][0]["threads"], 5)
    again, _ = stat("--", path, "threads", "200000")
    for name in ("exact:instructions:u", "exact:machine-syscalls", "exact:machine-faults", "exact:machine-switches"):
        equal(value(again["runs"][0], name), value(data["runs"][0], name), name)
    pathlib.Path("input").write_text("of the host\n")
    script = pathlib.Path("script")
    script.write_text(f"#!/bin/sh\ncat input\nid -u\necho changed >input\necho new >new\n"
                      f"'{path}' hot 300000\nexit $(($1 + 1))\n")
    script.chmod(0o755)
    data, result = stat("--", "./script", "4", check=5)
    equal(result.stdout, f"of the host\n{os.geteuid()}\n")
    equal(pathlib.Path("input").read_text(), "of the host\n")
    equal(pathlib.Path("new").exists(), False)
    between(function(data, "hot"), 600000, 600010, "instructions of hot")
    between(calls(data, "execve"), 3, 4, "execve")


@test
def a_comparison_names_the_functions():
    path = program()
    result = assay("ab", "--exact", "-r", "3", f"{path} call 10000", f"{path} call 10020", check=0,
                   timeout=250)
    contains(result.stdout, "exact:machine-syscalls")
    contains(result.stdout, "__x64_sys_getppid")
    lacks(result.stdout, "wall")


def git(*args):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *args], check=True,
                   capture_output=True)


def commit(what, message):
    pathlib.Path("what").write_text(f"{what}\n")
    git("add", "-A")
    git("commit", "-qm", message)


def repository():
    program()
    git("init", "-q", ".")
    pathlib.Path("run").write_text('#!/bin/sh\nread what turns <what\nexec ./prog $what $turns\n')
    os.chmod("run", 0o755)
    commit("call 10000", "one")
    commit("call 10001", "two")
    commit("call 10100", "three")


@test
def a_gate_sees_the_kernel():
    """The trees are at different places, and nothing of that is in the counts."""
    repository()
    same = assay("gate", "--exact", "--base", "HEAD", "-r", "1", "--max-regression", "0.05%", "--json", "--",
                 "./run", timeout=250)
    row = json.loads(same.stdout)["rows"][0]
    equal(row["metric"], "exact:instructions:uk")
    near(row["new_median"], row["base_median"], 0.0005)
    result = assay("gate", "--exact", "--base", "HEAD~1", "-r", "3", "--max-regression", "0.2%", "--json", "--",
                   "./run", check=1, timeout=250)
    row = json.loads(result.stdout)["rows"][0]
    changes = {f["name"]: f["new"] - f["base"] for f in row["functions"]}
    between(changes["__x64_sys_getppid"], 99, 9900, "instructions of 99 calls more")
    near(sum(changes.values()), row["new_median"] - row["base_median"], 0.05)


@test
def a_gate_names_functions_whose_code_changed():
    """The base's program is seen at the place of the new one, whose file has other code."""
    program("prog", PROGRAM)
    git("init", "-q", ".")
    commit("base", "one")
    program("prog", PROGRAM.replace("1: dec %0", "1: nop\\n nop\\n dec %0"))
    commit("new", "two")
    result = assay("gate", "--exact", "--base", "HEAD~1", "-r", "3", "--max-regression", "0.2%", "--json", "--",
                   "./prog", "hot", "100000", check=1, timeout=250)
    row = json.loads(result.stdout)["rows"][0]
    functions = {f["name"]: (f["base"], f["new"]) for f in row["functions"]}
    base, new = functions["hot"]
    between(base, 200000, 200010, "instructions of hot in the base")
    between(new, 400000, 400010, "instructions of hot")
    lacks(list(functions), "[code made at run time]")


@test
def a_spec_and_a_search():
    repository()
    pathlib.Path("e.yaml").write_text("name: e\ncommand: ./prog hot 1000\nexact: true\nrounds: 1\nwarmup: 0\n")
    assay("run", "--db", "e.db", "e.yaml", check=0, timeout=250)
    shown = assay("show", "--db", "e.db", "1", "--all", check=0).stdout
    for name in ("exact:instructions:uk", "exact:instructions:k", "exact:machine-syscalls"):
        contains(shown, name)
    lacks(shown, "wall")
    for name in ("e.yaml", "e.db"):
        os.unlink(name)
    result = assay("bisect", "--exact", "--good", "HEAD~2", "--min-change", "0.1%", "--run", "./run", "-q",
                   check=0, timeout=250)
    contains(result.stdout, "three")
    contains(result.stdout, "exact:instructions:uk")


@test
def a_sweep_counts_under_each_kernel():
    prog = program()
    result = assay("vm", "sweep", "--cached", "--kernels", "linux-image-amd64", "-r", 1, "--json", "--", prog,
                   "call", 10000, timeout=250, check=0)
    found = json.loads(result.stdout)
    (one,) = found["kernels"]
    contains(one["kernel"], "linux-image-")
    equal((one["failed"], one["runs"], found["steps"]), (None, 1, []))
    ways = {way["name"]: way for way in one["ways"]}
    equal(ways["getppid"]["count"], 10000)
    kernel = one["kernel_instructions"]["least"]
    equal(sum(way["instructions"] for way in one["ways"]), kernel)
    equal(sum(function["instructions"] for function in one["functions"]), kernel)


@test
def a_sweep_says_what_it_cannot_do():
    prog = program()
    pathlib.Path("image").write_bytes(b"\0" * 8192)
    for words, code, expected in (
            (("--", prog), 2, "--kernels"),
            (("--kernels", "linux-image-amd64"), 2, "give a command"),
            (("--kernels", "nope*", "--", prog), 125, "'nope*'"),
            (("--kernels", "./image", "--", prog), 125, "is not a kernel"),
            (("--kernels", "linux-image-amd64", "--", "./nowhere"), 125, "./nowhere")):
        contains(assay("vm", "sweep", "--cached", *words, check=code).stderr, expected)
    result = assay("vm", "sweep", "--cached", "--kernels", "linux-image-amd64", "-r", 1, "--", prog, "fail",
                   timeout=250, check=1)
    contains(result.stdout, "exit code 7")


@test
def what_is_missing_is_said():
    need()
    result = assay("stat", "--exact", "--", "true", check=125,
                   env={"ASSAY_EXACT_KERNEL": "linux-image-none-amd64"})
    contains(result.stderr, "assay vm fetch")
    contains(assay("stat", "--exact=sometimes", "--", "true", check=2).stderr, "--exact=user")
    contains(assay("stat", "--exact", "--", "/no/such/program", check=127).stderr, "/no/such/program")
    empty = pathlib.Path("empty").resolve()
    empty.mkdir()
    for words in (("stat", "--exact", "--"), ("ab", "--exact", "-r", "1"), ("vm", "sweep", "--cached", "--kernels",
                   "linux-image-amd64", "--")):
        is_sweep = words[0] == "vm"
        result = assay(*words, "/bin/true", check=1 if is_sweep else NO_QEMU, env={"PATH": str(empty)})
        contains(result.stdout if is_sweep else result.stderr, "qemu-system-x86")
    foreign = pathlib.Path("foreign")
    foreign.write_bytes(struct.pack("<4s5B7x2HI3QI6H", b"\x7fELF", 2, 1, 1, 0, 0, 2, 183, 1, 0, 0, 0, 0, 64, 56, 0, 64,
                                    0, 0))
    foreign.chmod(0o755)
    result = assay("stat", "--exact", "--", "./foreign", check=OTHER_ARCH)
    contains(result.stderr, "./foreign is for arm64; --exact=arm64 counts its user mode")


@test
def a_command_that_needs_more_memory_is_told_so():
    hog = program("hog", """
#include <sys/mman.h>
int main(void)
{
    for (int i = 0; i < 100; i++)
        mmap(0, 64UL << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return 0;
}
""")
    _, result = stat("--", hog, check=NO_MEMORY)
    contains(pathlib.Path("out.json").read_text(), '"ran_out": true')
    # Also where runs are processes of their own.
    git("init", "-q", ".")
    commit("memory", "one")
    result = assay("gate", "--exact", "--base", "HEAD", "-r", "1", "-q", "--", "./hog", check=NO_MEMORY, timeout=250)
    contains(result.stderr, "1024 MiB of memory; the command needed more")


@test
def a_panic_is_told_with_its_reason():
    if os.geteuid() != 0:
        skip("only root can make the machine's kernel panic")
    need()
    result = assay("stat", "--exact", "--", "sh", "-c", "echo c >/proc/sysrq-trigger", check=PANICKED,
                   timeout=250)
    contains(result.stderr, "its kernel panicked: sysrq triggered crash")


def emulator_of(process):
    """The machine's, not one that is asked for its version."""
    for _ in range(600):
        for child in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            try:
                if b"-plugin" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes():
                    return int(child)
            except OSError:
                pass
        time.sleep(0.1)
    raise AssertionError("no emulator was started")


@test
def a_killed_emulator_is_noticed():
    path = program()
    measured = subprocess.Popen([ASSAY, "stat", "--exact", "--", path, "hot", "100000000000"], text=True,
                                stderr=subprocess.PIPE)
    pid = emulator_of(measured)
    time.sleep(1)
    os.kill(pid, signal.SIGKILL)
    _, errors = measured.communicate(timeout=60)
    equal(measured.returncode, QEMU_ENDED)
    contains(errors, "QEMU was killed by signal 9")



main()
