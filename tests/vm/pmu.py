# SPDX-License-Identifier: MIT
"""Hardware counters for real: the PMU of the emulated machine, and what assay makes of it.

The machine has a cycle counter and six others (cortex-a57), of which QEMU feeds cycles and
instructions.  Under -icount an instruction takes two nanoseconds and a cycle is one of them."""
from guest import guest, run, run_json
from harness import *

# The instructions of tests/vm/loop.c's loops, for each turn, in user mode.
SPIN, CALLS = 6, 4


def probe():
    """What the kernel itself counts, by event."""
    return {line.split()[0]: line.split()[2:] for line in run("probe").text().splitlines()}


@test
def the_emulated_pmu_counts_instructions_and_cycles():
    counted = probe()
    between(int(counted["instructions"][0]), 6_000_000, 6_000_100, "instructions")
    between(int(counted["cycles"][0]), 12_000_000, 12_000_200, "cycles")
    equal(counted["inst-retired"][0], counted["instructions"][0], "the raw event's count")
    equal(counted["cpu-cycles"][0], counted["cycles"][0], "the raw event's count")


@test
def the_emulated_pmu_lacks_branches():
    equal(probe()["branches"][0], "error", "branches")


main()
