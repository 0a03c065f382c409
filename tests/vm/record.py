# SPDX-License-Identifier: MIT
"""Sampling on hardware events: the emulated machine's counters overflow where they should.

A turn of loop's spin is six instructions, and a cycle is half an instruction (see pmu.py), so that
the number of samples is known: count over period."""
from guest import guest, run
from harness import *
from perfdump import assay_dump, perf_dump

TURNS = 10_000_000
INSTRUCTIONS, CYCLES = 6 * TURNS, 12 * TURNS


def record(*options, command=("loop", "spin", TURNS)):
    """Records in the machine and brings the file here; returns what the reader finds in it."""
    result = run("assay", "record", *options, "-o", "/tmp/perf.data", "--", *command)
    with open("perf.data", "wb") as file:
        file.write(guest().get("/tmp/perf.data"))
    dump = assay_dump("perf.data")
    equal(dump.trouble, "", "trouble")
    dump.said = result.error_text()
    return dump


@test
def samples_are_count_over_period():
    # QEMU notices only with the timer, every 4 ms, that a counter other than that of cycles ran
    # over; so fewer samples of instructions are asked for.
    for event, count, samples in (("cycles:u", CYCLES, 10), ("cycles:u", CYCLES, 120),
                                  ("cycles:u", CYCLES, 1000), ("instructions:u", INSTRUCTIONS, 10),
                                  ("instructions:u", INSTRUCTIONS, 30)):
        dump = record("-e", event, "-c", count // samples)
        # Start and end of the program are some ten thousand instructions more.
        between(len(dump.samples), samples, samples + 1, f"samples of {event}")
        equal({sample.period for sample in dump.samples}, {count // samples}, "periods")


@test
def they_are_where_the_work_is():
    dump = record("-e", "cycles:u", "-c", CYCLES // 300)
    places = [sample.ip for sample in dump.samples]
    in_loop = max(sum(1 for ip in places if start <= ip < start + 24) for start in set(places))
    between(in_loop / len(places), 0.99, 1, "share of the loop's six instructions")


@test
def cycles_are_the_default_here():
    dump = record("-g")
    contains(dump.events[0], "cycles")
    lacks(dump.said, "no hardware PMU")
    # The frequency is reached by changing the period; the periods add up to the count.
    between(sum(sample.period for sample in dump.samples) / CYCLES, 0.8, 1.3, "sum of periods")


@test
def two_events_are_sampled_side_by_side():
    dump = record("-e", "cycles:u,instructions:u", "-c", "1000000")
    counts = {name: sum(1 for sample in dump.samples if sample.event == name)
              for name in dump.events}
    between(counts["cycles:u"], CYCLES // 1000000, CYCLES // 1000000 + 1, "cycles")
    between(counts["instructions:u"], INSTRUCTIONS // 1000000, INSTRUCTIONS // 1000000 + 1,
            "instructions")


@test
def the_kernel_is_sampled_too():
    dump = record("-e", "cycles", "-c", "100000", "-g", command=("loop", "calls", 100_000))
    # Where the kernel holds interrupts off, the sample comes late, perhaps in user mode.
    kernel = [sample for sample in dump.samples if sample.ip >> 63]
    between(len(kernel) / len(dump.samples), 0.1, 1, "share of the kernel")
    if not any(name.startswith("[kernel.kallsyms]") for *_, name in dump.maps):
        raise AssertionError("no map of the kernel")


@test
def stacks_of_another_architecture_are_read():
    dump = record("-e", "cycles:u", "-c", "1000000", "--call-graph", "dwarf,1024")
    equal({sample.stack is not None for sample in dump.samples}, {True}, "stacks")
    contains(dump.info, "arch=aarch64")
    equal(dump.keys(), perf_dump("perf.data").keys(), "samples")


main()
