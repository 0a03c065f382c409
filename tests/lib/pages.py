# SPDX-License-Identifier: MIT
"""Experiments and recordings for the tests of reports: known values, hostile names."""
import hashlib
import json
import os
import pathlib
import shutil
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
    assay("run", "demo.yaml", "--fresh", "--seed", seed, "-q", check=0, timeout=300)
    if not pathlib.Path("assay.db-wal").exists():
        shutil.copy("assay.db", kept)


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
        result = assay("record", "-q", "-g", "-F", "999", "-o", name, "--", *command, timeout=300)
        if result.returncode:
            skip("cannot record here: " + result.stderr.strip().splitlines()[-1])


def all_pages():
    """The pages that the browser looks at, in this folder."""
    experiment()
    assay("html", "-o", "run.html", check=0)
    assay("html", "variant=base", "variant=fast", "-o", "within.html", check=0)
    experiment(("base", "fast", EVIL), "2")
    assay("html", "1", "2", "-o", "two.html", check=0)
    recordings()
    assay("html", "old.data", "new.data", "-o", "profiles.html", check=0, timeout=300)
    assay("html", "2", "new.data", "-o", "evil.html", check=0, timeout=300)


__all__ = ["EVIL", "experiment", "recordings", "all_pages", "ROOT", "target"]
