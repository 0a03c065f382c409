# SPDX-License-Identifier: MIT
"""assay explain on pairs of programs whose difference is known: what it says is right, or it says that
it cannot tell.  These are a few of the pairs; ./dev truths tries all of them."""
import json
import os
import pathlib
import subprocess

import truths
from harness import *


def explained(name, *options):
    pair = next(p for p in truths.PAIRS if p.name == name)
    if truths.missing(pair):
        skip(truths.missing(pair))
    paranoid = int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    if pair.kernel and os.geteuid() != 0 and paranoid > 1:
        skip(f"perf_event_paranoid is {paranoid}: the kernel's part of stacks is hidden")
    try:
        told, e = truths.try_pair(pair, ASSAY, os.getcwd(), "--profiles", "4", *options)
    except RuntimeError as error:
        if "cannot sample" in str(error):
            skip(f"assay record cannot sample here: {error}")
        raise
    if told.verdict == "wrong":
        raise AssertionError(f"truth {told.truth_ms:+.2f} ms, told {told.told_ms:+.2f} "
                             f"±{told.half_ms:.2f} ms: {told.words}")
    return told, e


@test
def a_change_in_one_caller_of_an_inlined_helper():
    explained("inlined")


@test
def a_removed_path():
    explained("removed")


@test
def a_sleep():
    told, e = explained("sleeps")
    if told.verdict == "right":
        equal(e["reasons"][0]["kind"], "wait")


@test
def a_lambda_in_one_of_two_functions():
    explained("lambdas")


@test
def two_causes_in_stripped_builds():
    told, e = explained("stripped-two")
    if told.verdict == "right":
        contains(e["reasons"][0]["name"], "stripped-two-new+0x")
        contains(e["reasons"][0]["name"], "(stripped-two-base+0x")


@test
def work_beside_a_thread_that_sleeps():
    """The thread that sleeps sleeps longer, too, and nothing waits for it until the end."""
    explained("beside")


@test
def only_a_thread_that_nothing_waits_for_sleeps_longer():
    explained("same-beside")


@test
def a_function_in_the_place_of_another():
    explained("replaced")


@test
def a_function_that_was_divided_is_no_slower_or_faster():
    explained("divided")


@test
def a_wait_that_only_its_time_limit_ends():
    explained("forgets")


@test
def functions_of_the_unwinder_are_told_with_the_function_that_throws():
    told, e = explained("throws")
    if told.verdict == "right":
        equal([o["name"] for o in e["owners"]][:1], ["parse_number"])


@test
def a_program_and_itself():
    explained("same")


@test
def a_function_called_through_a_pointer_that_leaves_no_frame():
    explained("jumps")


@test
def a_function_called_through_a_pointer_that_could_have_come_by_others():
    explained("points")


@test
def functions_of_a_library_are_told_with_the_function_that_they_work_for():
    explained("formats")


@test
def work_scattered_over_a_library_is_told_for_the_function_that_wants_it():
    told, e = explained("scatters")
    if told.verdict == "right":
        equal([o["name"] for o in e["owners"] if o["is_scattered"]], ["load_rows"])
        change, whole = (e[what]["change"] for what in ("cpu", "whole"))
        between(e["owners"][0]["cpu"]["change"], 0.7 * change, 1.3 * change)
        equal(e["owners"][0]["cpu"]["share"] > 0.5, True, f"{change} of {whole}")


@test
def children_of_another_program():
    """Whatever the reasons are called: the programs that the change is in are told."""
    told, e = explained("spawns")
    if told.verdict == "right":
        itself, = (p for p in e["programs"] if p["is_itself"])
        others = [p for p in e["programs"] if not p["is_itself"]]
        grown = [p for p in others if p["new_processes"] > p["base_processes"]]
        contains([(p["base_processes"], p["new_processes"]) for p in grown], (2, 25))
        total = sum(p["cpu"]["change"] for p in e["programs"])
        close = abs(total - e["cpu"]["change"]) <= 0.02 * abs(e["cpu"]["change"])
        equal(close, True, f"{total} of {e['cpu']['change']}")
        between(itself["cpu"]["b"], 0, e["cpu"]["b"])


SWAPPED = """volatile unsigned long out;
#define FIRST __attribute__((noinline, noclone)) static void \\
    first(unsigned long x, unsigned long n) \\
    { for (unsigned long i = 0; i < n; i++) { x = x * 3 + 1; x ^= x >> 7; } out = x; }
#define SECOND __attribute__((noinline, noclone)) static void \\
    second(unsigned long x, unsigned long n) \\
    { for (unsigned long i = 0; i < n; i++) { x = x * 5 + 1; x ^= x >> 9; } out = x; }
#ifdef NEW
SECOND FIRST
#else
FIRST SECOND
#endif
int main(int c, char **v)
{
    (void)v;
    first((unsigned long)c, 10000000);
    second((unsigned long)c, MORE);
    return 0;
}
"""


@test
def stripped_functions_that_changed_places_are_not_taken_for_each_other():
    """In both builds a function of the same size is at the same address: another one."""
    pair = next(p for p in truths.PAIRS if p.name == "stripped-inlined")
    if truths.missing(pair):
        skip(truths.missing(pair))
    pathlib.Path("prog.c").write_text(SWAPPED)
    places = {}
    for side, flags in (("old", ["-DMORE=10000000"]), ("new", ["-DNEW", "-DMORE=20000000"])):
        pathlib.Path(side).mkdir()
        subprocess.run(["gcc", "-O1", "-fno-toplevel-reorder", *flags, "-o", f"{side}/prog", "prog.c"],
                       check=True)
        for line in subprocess.run(["nm", f"{side}/prog"], capture_output=True, text=True,
                                   check=True).stdout.splitlines():
            if line.split()[-1] in ("first", "second"):
                places[side, line.split()[-1]] = f"prog+0x{int(line.split()[0], 16):x}"
        subprocess.run(["strip", f"{side}/prog"], check=True)
    equal(places["old", "first"], places["new", "second"], "the premise")
    result = assay("explain", "--force", "--json", "--no-sim", "--profiles", "4", "old/prog", "new/prog")
    if result.returncode and "cannot sample" in result.stderr:
        skip("assay record cannot sample here: " + result.stderr)
    equal(result.returncode, 0, result.stderr)
    (e,) = json.loads(result.stdout)["explanations"]
    first = e["reasons"][0]
    equal(first["name"], f"{places['new', 'second']} ({places['old', 'second']} in the base)")
    between(first["cost"]["change"], 0, 1e12)


main()
