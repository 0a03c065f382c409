# SPDX-License-Identifier: MIT
"""Experiments and recordings for the tests of reports: known values, hostile names."""
import hashlib
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import tempfile

from harness import ROOT, assay, skip, target

EVIL = "</script><img src=x onerror=evil()>"

# Its figures follow from its arguments and the round: 'fast' is better at small sizes only.
PROGRAM = """#!/usr/bin/env -S python3 -S -E
import os, sys
variant, size, threads, turn = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
wobble = 1 + (0, 1, -1, 2, -2, 3, -3, 1)[turn % 8] / 500
ns = {'base': 100 + size / 4, 'fast': 60 + size / 2}.get(variant, 150 + size / 4) * wobble
out = int(os.environ['ASSAY_METRICS_FD'])
rate = size / ns * 1000 * threads / (1 + 0.1 * (threads - 1))
os.write(out, f'''assay.metric throughput {rate!r} MB/s
assay.metric latency_p50 {ns!r} ns
assay.metric latency_p99 {3 * ns!r} ns
assay.metric latency_p999 {9 * ns!r} ns
assay.metric steady {5 + turn % 3} x
'''.encode())
"""

SPEC = """name: demo
question: is fast faster at every size?
command: [./program, '{variant}', '{size}', '{threads}', '{round}']
factors:
  variant: [VARIANTS]
  size: [64, 256, 1024, 4096]
  threads: [1, 2]
metrics: {throughput: {unit: MB/s, better: higher, headline: true}, latency_p50: {better: lower}}
rounds: 8
warmup: 0
baseline: {variant: base}
"""


_kept = tempfile.TemporaryDirectory(prefix="assay-pages-")
_done = {}  # folder: what was run into its store, in order


def experiment(variants=("base", "fast"), seed="1"):
    """Runs one into assay.db of this folder; what another test ran before is taken from there."""
    here = os.getcwd()
    _done[here] = (_done.get(here) or "") + f"{variants} {seed};" if pathlib.Path("assay.db").exists() \
        else f"{variants} {seed};"
    kept = pathlib.Path(_kept.name) / hashlib.sha256(_done[here].encode()).hexdigest()
    pathlib.Path("program").write_text(PROGRAM)
    os.chmod("program", 0o755)
    names = ", ".join(map(json.dumps, variants))
    pathlib.Path("demo.yaml").write_text(SPEC.replace("VARIANTS", names))
    if kept.exists() and not pathlib.Path("assay.db-wal").exists():
        shutil.copy(kept, "assay.db")
        return
    assay("run", "demo.yaml", "--fresh", "--seed", seed, "-q", check=0, timeout=600)
    if not pathlib.Path("assay.db-wal").exists():
        shutil.copy("assay.db", kept)


# Its rate is what the file says; the last experiment is long enough for monitors to read a lot.
DRIFT = """#!/bin/sh
sleep $(cat pause)
echo "assay.metric rate $(cat level).$1 x/s" > /proc/self/fd/$ASSAY_METRICS_FD
"""

DRIFT_SPEC = """name: drift
question: did it become faster?
command: ['./drift', '{round}']
metrics: {rate: {unit: x/s, better: higher, headline: true}}
monitors: {interval: 20ms, list: [mpstat, vmstat]}
rounds: 3
warmup: 0
"""


def history():
    """Twelve experiments of one name; from the seventh on the rate is half as much again."""
    pathlib.Path("drift").write_text(DRIFT)
    os.chmod("drift", 0o755)
    pathlib.Path("drift.yaml").write_text(DRIFT_SPEC)
    for number in range(12):
        pathlib.Path("level").write_text(str((100 if number < 6 else 150) + number % 3))
        pathlib.Path("pause").write_text("1" if number == 11 else "0.02")
        assay("run", "drift.yaml", "--fresh", "-q", check=0, timeout=600)


def explanation():
    """e.json, as assay explain --json writes it, with hostile names."""
    cost = {"a": 1, "b": 4, "change": 3, "half_width": 0.8, "resolution": 0.1, "share": 0.72,
            "below_resolution": False, "significant": True}
    reasons = [{"kind": "function", "name": EVIL, "cost": cost, "evidence": "called by copy_again\nx",
                "words": EVIL + " +3.1 ±0.8 ns/op, 72 % of the +4.3 ns/op"},
               {"kind": "system call", "name": "system call read", "evidence": "",
                "cost": dict(cost, significant=False), "words": "system call read +0.1 ±0.8 ns/op"}]
    comparison = {"words": "1.4× slower [1.3, 1.5]"}
    one = {"base": "./old", "new": "./new", "cell": "", "unit": "ns", "per": "op",
           "measured": {"moved": True, "paired": True, "wall": comparison, "cpu": comparison,
                        "new_cpu_ns": [1, 2, 3]},
           "profiled": True, "words": "CPU time and own waits per op: 4.2 → 8.5, +4.3 ±0.1 ns/op",
           "unattributed_words": "+0.1 ns/op, 2 %", "whole": cost, "reasons": reasons,
           "counts": [{"event": "page-faults", "base": 1, "new": 5, "changed": True, "simulated": False}],
           "simulator": None, "notes": "a note"}
    pathlib.Path("e.json").write_text(json.dumps({"format": "assay-explain-1", "seed": 1,
                                                  "explanations": [one]}))


def recordings():
    """old.data and new.data of two programs that differ; the second has a symbol named EVIL."""
    source = pathlib.Path("burn.c")
    source.write_text("""
        #include <stdlib.h>
        volatile unsigned sink;
        __attribute__((noinline)) void shared(unsigned n) { while (n--) sink += n; }
        __attribute__((noinline)) void removed(unsigned n) { while (n--) sink ^= n; }
        __attribute__((noinline)) void added(unsigned n) { while (n--) sink |= n; }
        int main(int argc, char **argv)
        {
            for (int i = 0; i < 60; i++) {
                shared(1000000);
                if (argc > 1) added(2000000); else removed(2000000);
            }
            return argv[0] == NULL;
        }""")
    subprocess.run(["gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-o", "burn", source], check=True)
    # Names from DWARF would hide the one of the symbol.
    subprocess.run(["objcopy", "--strip-debug", f"--redefine-sym=added={EVIL}", "burn", "evil"],
                   check=True)
    for name, command in (("old.data", ["./burn"]), ("new.data", ["./evil", "x"])):
        result = assay("record", "-q", "-g", "-F", "999", "-o", name, "--", *command, timeout=600)
        if result.returncode:
            skip("cannot record here: " + result.stderr.strip().splitlines()[-1])


CHECKED = """
#include <string.h>
volatile unsigned sink;
__attribute__((noinline)) void parse(unsigned n) { while (n--) sink += n; }
__attribute__((noinline)) void checksum(unsigned n) { while (n--) sink ^= n; }
int main(int argc, char **argv)
{
    unsigned more = strcmp(argv[argc - 1], "checked") == 0;
    for (int i = 0; i < 20; i++) {
        parse(1000000);
        checksum(more ? 2500000 : 500000);
    }
    return 0;
}
"""


def reasons():
    """reasons.html: an experiment whose reasons assay explain found: one function takes most of the time."""
    pathlib.Path("checked.c").write_text(CHECKED)
    subprocess.run(["gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-o", "checked", "checked.c"], check=True)
    pathlib.Path("checked.yaml").write_text(json.dumps({
        "name": "checksum", "question": "what does the checksum cost?", "command": ["./checked", "{variant}"],
        "factors": {"variant": ["unchecked", "checked"]}, "rounds": 10, "warmup": 1,
        "baseline": {"variant": "unchecked"}}))
    for _ in range(4):  # a busy machine may hide even this
        assay("run", "--db", "reasons.db", "--fresh", "-q", "checked.yaml", check=0, timeout=600)
        result = assay("explain", "--db", "reasons.db", "--json", "--in", "last", "variant=unchecked", "variant=checked",
                       timeout=600)
        if result.returncode:
            skip("cannot explain here: " + result.stderr.strip().splitlines()[-1])
        if json.loads(result.stdout)["explanations"][0]["outcome"] == "explained":
            break
    assay("html", "--db", "reasons.db", "-o", "reasons.html", check=0)


TROUBLE = """#!/bin/sh
case $1 in
broken) echo "opening data: <b>no such file</b>" >&2; exit 3;;
flaky) [ $(($3 % 3)) = 1 ] && { echo late >&2; exit 7; };;
idle) echo "assay.metric delay 0 ms" > /proc/self/fd/$ASSAY_METRICS_FD; exit;;
esac
echo "assay.metric delay $((100 + $2 + $3 % 4)) ms" > /proc/self/fd/$ASSAY_METRICS_FD
"""


def trouble(name, variants, sizes, rounds=8, baseline=True):
    """Runs an experiment of which cells fail, into trouble.db."""
    pathlib.Path("trouble").write_text(TROUBLE)
    os.chmod("trouble", 0o755)
    spec = {"name": name, "question": "what fails?", "rounds": rounds, "warmup": 0,
            "command": ["./trouble", "{variant}", "{size}", "{round}", "{tag}"],
            "factors": {"variant": variants, "size": sizes, "tag": ["x"]},
            "metrics": {"delay": {"unit": "ms", "better": "lower", "headline": True}}}
    if name == "long":
        spec["factors"]["tag"] = ["v" * 5000 + "</td>", "w" * 300]
    if baseline:
        spec["baseline"] = {"variant": variants[0]}
    pathlib.Path(f"{name}.yaml").write_text(json.dumps(spec))
    assay("run", "--db", "trouble.db", f"{name}.yaml", "--fresh", "-q", timeout=300)


def troubled_pages():
    """Pages of experiments that failed, were stopped, have long names, no ratios, or only one cell."""
    trouble("failed", ["plain", "flaky", "broken"], [0, 50])
    assay("html", "--db", "trouble.db", "-o", "failed.html", check=0)
    with sqlite3.connect("trouble.db") as db:
        db.execute("UPDATE experiment SET state = 'stopped'")
    db.close()
    assay("html", "--db", "trouble.db", "-o", "stopped.html", check=0)
    trouble("allfailed", ["broken"], [0, 1], rounds=2, baseline=False)
    assay("html", "--db", "trouble.db", "-o", "allfailed.html", check=0)
    trouble("long", ["plain", "other"], [0], rounds=6)
    assay("html", "--db", "trouble.db", "-o", "long.html", check=0)
    trouble("many", ["plain", "other"], list(range(130)), rounds=2)
    assay("html", "--db", "trouble.db", "-o", "many.html", check=0)
    trouble("zero", ["idle", "plain"], [0])
    assay("html", "--db", "trouble.db", "-o", "zero.html", check=0)
    trouble("one", ["plain"], [0], rounds=3, baseline=False)
    assay("html", "--db", "trouble.db", "-o", "one.html", check=0)


PHASES = """
#include <time.h>
#include <unistd.h>
volatile unsigned sink;
__attribute__((noinline)) void always(unsigned n)
{
    while (n--)
        sink += n;
}
__attribute__((noinline)) void early(unsigned n) { for (unsigned i = 0; i < n; i++) sink ^= i; always(n); }
__attribute__((noinline)) void late(unsigned n) { for (unsigned i = 0; i < n; i++) sink |= i; always(n); }
int main(void)
{
    struct timespec pause = {0, 2000000}, start, now;
    double seconds = 0;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; seconds < 4; i++) {
        if (seconds < 2) early(300000); else late(300000);
        if (i % 50 == 0) nanosleep(&pause, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
        seconds = (double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) / 1e9;
    }
    return 0;
}
"""


def phases():
    """phases.data: two seconds early(), two seconds late(), both calling always(), with a few waits."""
    pathlib.Path("phases.c").write_text(PHASES)
    subprocess.run(["gcc", "-O0", "-g", "-o", "phases", "phases.c"], check=True)
    command = ["record", "-q", "-g", "-F", "999", "-o", "phases.data"]
    if assay(*command, "--off-cpu", "--", "./phases", timeout=600).returncode:
        assay(*command, "--", "./phases", check=0, timeout=600)


def all_pages():
    """The pages that the browser looks at, in this folder."""
    experiment()
    assay("html", "-o", "run.html", check=0)
    assay("html", "variant=base", "variant=fast", "-o", "within.html", check=0)
    experiment(("base", "fast", EVIL), "2")
    assay("html", "1", "2", "-o", "two.html", check=0)
    recordings()
    assay("html", "old.data", "new.data", "-o", "profiles.html", check=0, timeout=600)
    assay("html", "2", "new.data", "-o", "evil.html", check=0, timeout=600)
    phases()
    assay("html", "--source", "phases.data", "-o", "source.html", check=0, timeout=600)
    explanation()
    assay("html", "e.json", "old.data", "new.data", "-o", "why.html", check=0, timeout=600)
    reasons()
    history()
    assay("html", "-o", "time.html", check=0)
    assay("html", "time.html", "-o", "time-again.html", check=0)
    troubled_pages()


__all__ = ["EVIL", "experiment", "recordings", "history", "explanation", "reasons", "trouble",
           "troubled_pages", "all_pages", "ROOT", "target"]
