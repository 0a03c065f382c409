# SPDX-License-Identifier: MIT
"""The emulated machine itself: what goes in and comes out, and its words when it fails."""
import kernel
import machine
from guest import guest, run
from harness import *


def fails(function, *words):
    try:
        function()
    except machine.MachineError as error:
        for word in words:
            contains(str(error), word)
        return
    raise AssertionError("no MachineError")


@test
def streams_and_exits_come_back_apart():
    result = run("loop", check=2)
    equal(result.stdout, b"", "standard output")
    contains(result.error_text(), "usage: loop")
    contains(run("assay", "--version").text(), "assay")
    equal(run("assay", "stat", "-o", "/dev/null", "--", "loop", "spin", 10).returncode, 0)


@test
def a_missing_command_is_no_failure_of_the_machine():
    contains(run("nosuch", check=127).error_text(), "nosuch: No such file")


@test
def files_go_in_and_out():
    content = bytes(range(256)) * 1000
    guest().put("/tmp/file", content, 0o640)
    equal(guest().get("/tmp/file") == content, True, "the file came back")
    fails(lambda: guest().get("/tmp/nosuch"), "/tmp/nosuch", "No such file")


@test
def nothing_outlives_its_command():
    # The process beside is still asleep when the command ends.
    run("loop", "beside", 10 ** 12, "probe")
    names = [guest().get(f"/proc/{line}/comm") for line in alive()]
    equal(names.count(b"loop\n"), 0, "left-over processes")


def alive():
    """The numbers of processes, from the control group that they are all in."""
    return guest().get("/sys/fs/cgroup/cgroup.procs").decode().split()


@test
def a_command_without_end_is_ended_with_the_machine():
    first = guest()
    fails(lambda: first.run("loop", "spin", 10 ** 15, timeout_s=2), "did not answer in time")
    equal(first.alive(), False, "alive")
    equal(run("loop", "spin", 1).returncode, 0, "the next machine")


@test
def a_kernel_panic_is_shown():
    guest()  # skips where there is none
    programs = {"/bin/loop": machine.PROGRAMS["/bin/loop"]}  # and no /init
    fails(lambda: machine.Machine(kernel.find(), programs), "exited on its own", "Kernel panic")


main()
