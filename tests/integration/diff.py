# SPDX-License-Identifier: MIT
"""assay diff on programs whose difference is known."""
import csv
import io
import json
import os
import pathlib
import re
import shutil
import subprocess

from harness import *


def record(name, *command, runs=3):
    """Recordings NAME-1.data, NAME-2.data, …"""
    for i in range(runs):
        result = assay("record", "-q", "-F", "1999", "-g", "-o", f"{name}-{i + 1}.data", "--",
                       *command)
        if result.returncode:
            skip("assay record cannot sample here: " + result.stderr)


def diff(a, b, *options):
    found = json.loads(assay("diff", a, b, "--json", *options, check=0, timeout=600).stdout)
    equal(found["format"], "assay-diff-1")
    for d in found["diffs"]:
        adds_up(d)
    return found["diffs"]


def adds_up(d):
    """Rows and what is not attributed are the whole change."""
    total = sum(row["self"]["change"] for row in d["rows"]) + d["unattributed"]["change"]
    between(total - d["whole"]["change"], -1e-6 * abs(d["whole"]["a"]) - 1e-6,
            1e-6 * abs(d["whole"]["a"]) + 1e-6, "rows and rest less the whole change")


def row(d, name):
    found = [r for r in d["rows"] if r["function"] == name]
    equal(len(found), 1, f"rows called {name}")
    return found[0]


@test
def an_extra_copy_is_found():
    record("base", target("planted"), "base", 30000)
    record("copy", target("planted"), "copy", 30000)
    (d,) = diff("base-*.data", "copy-*.data")
    equal(d["rows"][0]["function"], "memcpy")
    # The loader copies, too: a sample of that may be in either.
    copies = d["rows"][0]["self"]
    if d["rows"][0]["match"] != "only B" and copies["a"] > copies["b"] / 20:
        raise AssertionError(d["rows"][0])
    equal((d["unit"], d["per"]), ("ns", "run"))
    between(d["rows"][0]["self"]["share"], 0.5, 1.5, "share of memcpy")
    between(abs(d["unattributed"]["share"]), 0, 0.15, "unattributed share")
    equal(d["has_interval"], True)
    equal((d["side_a"]["profiled_runs"], d["side_b"]["profiled_runs"]), (3, 3))
    # Most functions are far below what so few samples can tell.
    if not any(r["self"]["below_resolution"] for r in d["rows"]):
        raise AssertionError("no row is below the resolution")
    text = assay("diff", "base-*.data", "copy-*.data", check=0).stdout
    contains(text, "memcpy")
    contains(text, "(unattributed)")
    contains(text, "(the whole change)")
    # In a row of its own, or among those that are folded.
    if "below the resolution" not in text and "less than sampling can resolve" not in text:
        raise AssertionError(text)
    lacks(text, "\033")


@test
def lists_folders_and_patterns_name_recordings():
    record("base", target("planted"), "base", 10000, runs=2)
    record("copy", target("planted"), "copy", 10000, runs=2)
    (d,) = diff("base-1.data,base-2.data", "copy-1.data,copy-2.data")
    equal(d["side_a"]["profiled_runs"], 2)
    os.mkdir("a")
    os.rename("base-1.data", "a/1.data")
    os.rename("base-2.data", "a/2.data")
    (d,) = diff("a", "copy-*.data")
    equal(d["side_a"]["profiled_runs"], 2)
    (d,) = diff("a/1.data", "copy-1.data")
    equal((d["has_interval"], d["rows"][0]["self"]["half_width"]), (False, None))
    contains(assay("diff", "a/1.data", "copy-1.data", check=0).stdout, "No intervals")


@test
def compilers_do_not_break_functions_apart():
    if not pathlib.Path(target("shaped-O0")).exists():
        skip("there is no C++ compiler")
    record("plain", target("shaped-O0"), 4000)
    record("fast", target("shaped-O2"), 4000)
    (d,) = diff("plain-*.data", "fast-*.data")
    stir = row(d, "stir")
    equal((stir["in_a"]["inlined"], stir["in_b"]["inlined"]), (False, True))
    if not (stir["in_a"]["samples"] and stir["in_b"]["samples"]):
        raise AssertionError(stir)
    spin = row(d, "spin_around")
    equal(spin["match"], "same")
    equal((spin["in_a"]["binary"], spin["in_b"]["binary"]), ("shaped-O0", "shaped-O2"))
    between(abs(d["unattributed"]["share"]), 0, 0.15, "unattributed share")
    # main has everything in it, inlined or called.
    main = row(d, "main")["total"]
    between(main["a"], 0.8 * d["whole"]["a"], 1.0001 * d["whole"]["a"])


@test
def a_renamed_function_is_found_by_its_place():
    if not pathlib.Path(target("shaped-O2")).exists():
        skip("there is no C++ compiler")
    record("old", target("shaped-O2"), 4000, runs=2)
    record("new", target("shaped-renamed"), 4000, runs=2)
    (d,) = diff("old-*.data", "new-*.data")
    spin = row(d, "spin_around")
    equal((spin["match"], spin["in_b"]["name"]), ("renamed", "turn_around"))
    contains(assay("diff", "old-*.data", "new-*.data", "--all", check=0).stdout,
             "spin_around → turn_around")


@test
def allocators_line_up():
    record("libc", target("allocates"), 100000, runs=2)
    record("own", target("allocates-own"), 100000, runs=2)
    (d,) = diff("libc-*.data", "own-*.data")
    malloc = row(d, "malloc")
    equal((malloc["match"], malloc["in_b"]["name"]), ("alias", "tc_malloc"))
    if not (malloc["in_a"]["samples"] and malloc["in_b"]["samples"]):
        raise AssertionError(malloc)


@test
def perfs_own_files_are_compared():
    perf = shutil.which("perf")
    if not perf:
        skip("perf is not installed")
    for name, cause in (("a", "base"), ("b", "copy")):
        result = subprocess.run([perf, "record", "-q", "-e", "cpu-clock", "-F", "1999", "-o",
                                 f"{name}.data", target("planted"), cause, "20000"],
                                capture_output=True, text=True)
        if result.returncode:
            skip("perf cannot record here: " + result.stderr)
    (d,) = diff("a.data", "b.data")
    equal(d["rows"][0]["function"], "memcpy")
    equal(d["has_interval"], False)
    contains(assay("diff", "a.data", "b.data", check=0).stdout, "No intervals: one recording")


@test
def tables_for_programs_and_papers():
    record("base", target("planted"), "base", 10000, runs=2)
    record("copy", target("planted"), "copy", 10000, runs=2)
    rows = list(csv.DictReader(io.StringIO(
        assay("diff", "base-*.data", "copy-*.data", "--csv", check=0).stdout)))
    equal(rows[0]["function"], "memcpy")
    equal([r["function"] for r in rows[-2:]], ["(unattributed)", "(whole)"])
    total = sum(float(r["self_change"]) for r in rows[:-1])
    between(total / float(rows[-1]["self_change"]), 0.999999, 1.000001)
    markdown = assay("diff", "base-*.data", "copy-*.data", "--markdown", "-n", "2", check=0).stdout
    heads = re.match(r"\| A self, (\S+) \| B self, (\S+) \| change, (\S+) \| share \| total A → B, (\S+) \| function \|\n",
                     markdown)
    if not heads or len(set(heads.groups())) != 1:
        raise AssertionError(f"every column of costs names its unit: {markdown}")
    shown = assay("diff", "base-*.data", "copy-*.data", check=0).stdout
    unit = heads.group(1)
    if not re.search(rf"^ *A self, {unit}  +B self, {unit}  +change, {unit}  +share"
                     rf"  +total A → B, {unit}  function$", shown, re.M):
        raise AssertionError(shown)
    contains(markdown, "other functions")
    equal(len([line for line in markdown.splitlines() if line.startswith("|")]), 2 + 2 + 3)


SPEC = """name: planted
command: PLANTED {cause} {ops}
factors: {cause: [base, copy], ops: [20000, 40000]}
metrics: {ops: {unit: op}}
work: ops
rounds: 8
warmup: 0
baseline: {cause: base}
profile: all
"""


@test
def profiled_cells_of_the_store_are_compared():
    pathlib.Path("s.yaml").write_text(SPEC.replace("PLANTED", target("planted")))
    result = assay("run", "s.yaml", check=0, timeout=800)
    if "no profile of" in result.stderr:
        skip("assay record cannot sample here: " + result.stderr)
    diffs = diff("cause=base", "cause=copy")
    equal([d["cell"] for d in diffs], ["ops=20000", "ops=40000"])
    for d in diffs:
        equal(d["rows"][0]["function"], "memcpy")
        equal((d["per"], d["scaled_to_measured_runs"]), ("op", True))
        equal((d["side_a"]["measured_runs"], d["side_a"]["profiled_runs"]), (8, 5))
        between(abs(d["unattributed"]["share"]), 0, 0.15, "unattributed share")
    (d,) = diff("1 cause=base,ops=40000", "1 cause=copy,ops=40000")
    equal(d["whole"]["change"], diffs[1]["whole"]["change"])
    equal(len(diff("cause=base", "cause=copy", "--in", "planted")), 2)
    contains(assay("diff", "1", "1", check=1).stderr, "both are experiment 1")
    contains(assay("diff", "cause=base", "cause=nothing", check=1).stderr, "has a partner")


@test
def cells_without_a_profile_are_named():
    pathlib.Path("s.yaml").write_text(
        SPEC.replace("PLANTED", target("planted")).replace("profile: all", "profile: none"))
    assay("run", "s.yaml", "-q", check=0, timeout=800)
    contains(assay("diff", "cause=base", "cause=copy", check=1).stderr, "has no profile of cell")


@test
def wrong_words_are_explained():
    contains(assay("diff", "a.data", "b.data", check=1).stderr, "there is no recording 'a.data'")
    contains(assay("diff", "a", "b", check=1).stderr, "'a' is not a file: there is no store")
    pathlib.Path("a.data").write_bytes(b"PERFILE2 but not really")
    contains(assay("diff", "a.data", "b.data", check=1).stderr, "no file 'b.data'")
    assay("diff", "a.data", "a.data", check=1)
    assay("diff", "a.data", check=2)
    assay("diff", "a.data", "a.data", "--json", "--csv", check=2)
    contains(assay("diff", "--help", check=0).stdout, "usage: assay diff")


@test
def an_event_that_is_not_there_is_refused():
    record("base", target("planted"), "base", 5000, runs=1)
    contains(assay("diff", "base-1.data", "base-1.data", "-e", "cycles:u", check=1).stderr,
             "no samples of cycles:u")


main()
