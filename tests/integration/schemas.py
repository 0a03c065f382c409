# SPDX-License-Identifier: MIT
"""Every JSON document fits its schema (schemas/), as a validator has it."""
import base64
import json
import os
import pathlib
import re
import subprocess
import zlib

from harness import *
from schema import SCHEMAS, fits, jsonschema


def said(name, *args, check=0):
    fits(name, json.loads(assay(*args, check=check).stdout))


@test
def schemas_are_schemas_and_every_format_has_one():
    names = {path.name for path in SCHEMAS.iterdir()}
    sources = "".join(path.read_text() for path in ROOT.glob("src/**/*.c"))
    for form in sorted(set(re.findall(r'"(assay-[a-z]+-[0-9]+)"', sources))):
        equal(f"{form}.schema.json" in names, True, form)
    contains((ROOT / "meson.build").read_text(), "install_subdir('schemas'")
    if jsonschema is None:
        skip("python3-jsonschema is not installed")
    for path in SCHEMAS.iterdir():
        schema = json.loads(path.read_text())
        jsonschema.Draft7Validator.check_schema(schema)
        equal(sorted(set(schema) & {"$schema", "title", "description", "type"}),
              ["$schema", "description", "title", "type"], path.name)


@test
def a_wrong_document_does_not_fit():
    document = json.loads(assay("stat", "--json", "--", "true", check=0).stdout)
    fits("assay-stat-1", document)
    for change in ({"runs": 7}, {"format": "assay-stat-2"}):
        try:
            fits("assay-stat-1", {**document, **change})
        except AssertionError:
            continue
        raise AssertionError(f"{change} fits")
    del document["runs"]
    try:
        fits("assay-stat-1", document)
    except AssertionError:
        return
    raise AssertionError("without runs it fits")


@test
def stat_ab_doctor_and_events():
    fits("assay-stat-1", json.loads(assay("stat", "-r", "3", "--json", "--", "true", check=0).stdout))
    said("assay-ab-1", "ab", "-r", "5", "-w", "0", "--json", "true 1", "true 2")
    said("assay-doctor-1", "doctor", "--json")
    said("assay-events", "events", "--json", "fault")


@test
def ab_of_all_kinds():
    """With and without what may be missing: values, set-up, an order, runs at all."""
    said("assay-ab-1", "ab", "-r", "3", "-w", "0", "--setup", "true", "-p", "true", "-C", "true", "-c", "true", "--input",
         "/dev/zero", "--directory", "/tmp", "--metric-regex", "n=([0-9]+)", "--json", "echo 1", "echo 2 ", "false", check=None)
    said("assay-ab-1", "ab", "-r", "3", "-w", "0", "--duet", "--json", "true 1", "true 2")
    assay("ab", "-r", "3", "-w", "0", "--export-hyperfine", "h.json", "true 1", "true 2", check=0)
    said("assay-ab-1", "ab", "--import-hyperfine", "h.json", "--json")


@test
def functions():
    pathlib.Path("b.c").write_text("""#include <assay.h>
        ASSAY_BENCH(sized, ASSAY_LIST(n, 1000, 4000, 16000))
        { ASSAY_LOOP { for (volatile int i = 0; i < n; i++); } ASSAY_COMPLEXITY(n, "n"); ASSAY_COUNTER("c", 1); }
        ASSAY_BENCH(wrong) { ASSAY_LOOP {} ASSAY_CHECK(0); }
        ASSAY_MAIN""")
    subprocess.run([os.environ.get("CC", "cc"), "-O2", f"-I{ROOT}/include", "b.c", "-o", "b", "-pthread"], check=True)
    said("assay-bench-1", "bench", "-t", "50ms", "--json", "./b", check=1)
    said("assay-bench-1", "bench", "-t", "50ms", "-r", "2", "--json", "./b", "./b", check=1)


@test
def the_store():
    for day in range(1, 21):
        level = 100 if day < 11 else 120
        pathlib.Path("go.txt").write_text("".join(f"BenchmarkParse 100 {level + day % 3 + k / 100} ns/op\n" for k in range(3)))
        said("assay-import-1", "import", "--db", "a.db", "--json", "--name", "parse", "--commit", f"c{day:07}",
             "--date", f"2026-01-{day:02}T00:00:00Z", "go.txt")
    said("assay-list", "list", "--db", "a.db", "--json")
    said("assay-show", "show", "--db", "a.db", "--json", "last")
    said("assay-compare-1", "compare", "--db", "a.db", "--json", "1", "20")
    said("assay-answers-1", "answers", "--db", "a.db", "--json", "last")
    said("assay-history-1", "history", "--db", "a.db", "--json", "time")
    assay("history", "--db", "a.db", "time", "--alarm", "cat > alarm.json", check=0)
    fits("assay-alarm-1", json.loads(pathlib.Path("alarm.json").read_text()))
    assay("html", "--db", "a.db", "last", "-o", "r.html", check=0)
    found = re.search(r'id="assay-data"[^>]*data-encoding="(\w+)"[^>]*>(.*?)</script>', pathlib.Path("r.html").read_text(), re.S)
    data = base64.b64decode(found[2].strip()) if found[1] == "deflate" else found[2].encode()
    fits("assay-html-1", json.loads(zlib.decompress(data) if found[1] == "deflate" else data))


@test
def profiles():
    pathlib.Path("a.folded").write_text("main;parse;read 30\nmain;parse 10\nmain;write 60\n")
    pathlib.Path("b.folded").write_text("main;parse;read 30\nmain;parse 10\nmain;write 160\n")
    said("assay-report", "report", "--json", "a.folded")
    said("assay-diff-1", "diff", "--json", "a.folded", "b.folded")


@test
def a_bisection_and_a_gate():
    def git(*args):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *args], check=True,
                       capture_output=True)
    noisy = os.path.abspath(target("noisy"))
    git("init", "-q", ".")
    for number, level in enumerate((100, 100, 130, 130)):
        pathlib.Path("level").write_text(f"{level}\n")
        pathlib.Path("number").write_text(f"{number}\n")
        git("add", "-A")
        git("commit", "-qm", f"number {number}")
    run = f"{noisy} level {os.path.abspath('.git/counter')} 0.01"
    said("assay-bisect-1", "bisect", "--good", "HEAD~3", "--run", run, "--metric", "latency", "--no-explain", "-q", "--json")
    said("assay-gate-1", "gate", "--base", "HEAD~1", "--json", "-r", "10", "--", "true", check=None)
    assay("ab", "-r", "8", "--json=base.json", "true", check=0)
    said("assay-gate-1", "gate", "--baseline", "base.json", "--json", "-r", "10", "--", "true", check=None)
    pathlib.Path("spec.yaml").write_text("name: x\ncommand: 'true {n}'\nfactors: {n: [1, 2]}\n")
    said("assay-gate-1", "gate", "--base", "HEAD~1", "--json", "-r", "8", "spec.yaml", check=None)


main()
