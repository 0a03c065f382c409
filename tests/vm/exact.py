# SPDX-License-Identifier: MIT
"""--exact: known counts of an emulated machine, in user mode and in the kernel; the host's files,
which stay as they are; what is missing, and machines that do not come back."""
import json
import os
import pathlib
import platform
import shutil
import signal
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
    equal(value(more["runs"][0], "exact:machine-syscalls") - value(few["runs"][0], "exact:machine-syscalls"),
          1)


@test
def threads_scripts_and_the_hosts_files():
    path = program()
    data, _ = stat("--", path, "threads", "200000")
    between(function(data, "hot"), 1600000, 1600040, "instructions of hot in four threads")
    equal(data["runs"][0]["threads"], 5)
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
    result = assay("ab", "--exact", "-r", "3", f"{path} call 10000", f"{path} call 20000", check=0,
                   timeout=250)
    contains(result.stdout, "exact:machine-syscalls")
    contains(result.stdout, "__x64_sys_getppid")
    lacks(result.stdout, "wall")


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
    result = assay("stat", "--exact", "--", "/bin/true", check=125, env={"PATH": str(empty)})
    contains(result.stderr, "qemu-system-x86")


@test
def a_killed_emulator_is_noticed():
    path = program()
    measured = subprocess.Popen([ASSAY, "stat", "--exact", "--", path, "hot", "100000000000"], text=True,
                                stderr=subprocess.PIPE)
    for _ in range(600):
        text = pathlib.Path(f"/proc/{measured.pid}/task/{measured.pid}/children").read_text().split()
        if text and "qemu" in os.readlink(f"/proc/{text[0]}/exe"):
            break
        time.sleep(0.1)
    time.sleep(1)
    os.kill(int(text[0]), signal.SIGKILL)
    _, errors = measured.communicate(timeout=60)
    equal(measured.returncode, 125)
    contains(errors, "QEMU was killed by signal 9")


main()
