# SPDX-License-Identifier: MIT
"""Profiles of other tools as recordings: pprof and folded stacks in report, diff, html and export."""
import gzip
import json
import os
import pathlib
import shutil
import subprocess

from harness import *

FILES = ROOT / "tests/fuzz/corpus/given"


def varint(number):
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7f | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (1 << 64) - 1)
    return varint(number << 3 | 2) + varint(len(value)) + value


def pprof(stacks, types=(("samples", "count"), ("cpu", "nanoseconds")), packed=True):
    """A profile.proto of {("main", "f"): (3, 30)}, the outermost frame first."""
    strings, out = [""], b""

    def text(word):
        if word not in strings:
            strings.append(word)
        return strings.index(word)
    for kind, unit in types:
        out += field(1, field(1, text(kind)) + field(2, text(unit)))
    names = sorted({name for stack in stacks for name in stack})
    for stack, values in stacks.items():
        ids = [100 + names.index(name) for name in reversed(stack)]
        places = field(1, b"".join(map(varint, ids))) if packed else b"".join(field(1, i) for i in ids)
        amounts = b"".join(field(2, v) for v in values)
        out += field(2, places + amounts + field(3, field(1, text("tid")) + field(3, 7)))
    out += field(3, field(1, 1) + field(5, text("/usr/bin/program")))
    for number, name in enumerate(names):
        out += field(4, field(1, 100 + number) + field(2, 1) + field(3, 4096 + number)
                     + field(4, field(1, 500 + number) + field(2, 10 + number)))
        out += field(5, field(1, 500 + number) + field(2, text(name)) + field(4, text("program.c")))
    return out + b"".join(field(6, word.encode()) for word in strings)


OLD = {("main", "parse", "read"): (30, 300_000_000), ("main", "parse"): (10, 100_000_000), ("main", "write"): (60, 600_000_000)}
NEW = {("main", "parse", "read"): (30, 300_000_000), ("main", "parse"): (10, 100_000_000), ("main", "write"): (160, 1_600_000_000)}


def write(name, stacks, pack=gzip.compress, **how):
    pathlib.Path(name).write_bytes(pack(pprof(stacks, **how)))
    return name


def rows(path, *args):
    report = json.loads(assay("report", path, "--json", *args, check=0).stdout)
    return report["events"][0], {row["symbol"]: row for row in report["rows"]}


@test
def pprof_is_read_with_its_weights():
    for name, pack in (("packed.pb.gz", gzip.compress), ("plain.pb", bytes)):
        for packed in (True, False):
            event, table = rows(write(name, OLD, pack, packed=packed))
            equal((event["name"], event["samples"], event["weight"]), ("cpu", 100, 10**9))
            equal({key: row["samples"] for key, row in table.items() if row["samples"]},
                  {"write": 60, "read": 30, "parse": 10})
            equal(table["write"]["dso"], "program")
    text = assay("report", "--stdio", "packed.pb.gz", check=0).stdout
    contains(text, "60.00%")
    contains(text, "Samples: 100 of event 'cpu'")
    contains(assay("report", "--stdio", "packed.pb.gz", "-s", "srcline", check=0).stdout, "program.c:")


@test
def values_without_samples_and_other_units():
    heap = {("main", "f"): (5, 4096), ("main", "g"): (1, 1 << 20)}
    write("heap.pb.gz", heap, types=(("alloc_objects", "count"), ("alloc_space", "bytes")))
    events = json.loads(assay("report", "heap.pb.gz", "--json", check=0).stdout)["events"]
    equal({e["name"]: e["weight"] for e in events}, {"alloc_objects": 6, "alloc_space": 4096 + (1 << 20)})
    write("wall.pb.gz", {("main",): (7,)}, types=(("wall", "milliseconds"),))
    event, _ = rows("wall.pb.gz")
    equal(event["weight"], 7_000_000)


@test
def two_profiles_are_compared():
    write("old.pb.gz", OLD)
    write("new.pb.gz", NEW)
    report = json.loads(assay("diff", "old.pb.gz", "new.pb.gz", "--json", check=0).stdout)
    contains(json.dumps(report), '"write"')
    text = assay("diff", "old.pb.gz", "new.pb.gz", check=0).stdout
    contains(text, "write")
    assay("html", "old.pb.gz", "new.pb.gz", "-o", "r.html", check=0)
    page = pathlib.Path("r.html").read_text()
    contains(page, "parse")
    assay("html", "old.pb.gz", "-o", "one.html", check=0)


@test
def folded_stacks_are_read():
    pathlib.Path("a.folded").write_text("main;parse;read 30\nmain;parse 10\r\n\nmain;write_[k] 60\n")
    event, table = rows("a.folded")
    equal((event["samples"], event["weight"]), (100, 100))
    equal({key: row["samples"] for key, row in table.items() if row["samples"]}, {"write": 60, "read": 30, "parse": 10})
    pathlib.Path("b.folded").write_text("main;parse;read 30\nmain;parse 10\nmain;write 160\n")
    contains(assay("diff", "a.folded", "b.folded", check=0).stdout, "write")
    pathlib.Path("a.folded.gz").write_bytes(gzip.compress(pathlib.Path("a.folded").read_bytes()))
    equal(rows("a.folded.gz")[0]["weight"], 100)


@test
def they_can_be_exported():
    write("old.pb.gz", OLD)
    assay("export", "old.pb.gz", "--to", "folded", "-o", "out.folded", check=0)
    total = sum(int(line.rpartition(" ")[2]) for line in open("out.folded"))
    equal(total, 10**9)
    assay("export", "old.pb.gz", "--to", "pprof", "-o", "again.pb.gz", check=0)
    equal({k: (r["samples"], r["weight"]) for k, r in rows("again.pb.gz")[1].items()},
          {k: (r["samples"], r["weight"]) for k, r in rows("old.pb.gz")[1].items()})
    assay("export", "old.pb.gz", "--to", "speedscope", "-o", "out.json", check=0)
    contains(assay("export", "old.pb.gz", "--to", "firefox", check=1).stderr, "no times")
    contains(assay("report", "old.pb.gz", "--time", "1,2", check=1).stderr, "have no times")
    contains(assay("import", "--db", "a.db", "old.pb.gz", check=1).stderr, "assay report")


@test
def a_profile_of_go_is_what_go_says():
    path = FILES / "go-cpu.pb.gz"
    event, table = rows(path)
    if not shutil.which("go"):
        skip("go is not installed")
    said = subprocess.run(["go", "tool", "pprof", "-raw", path], capture_output=True, text=True, check=True,
                          env=dict(os.environ, HOME=os.getcwd())).stdout
    lines = said.partition("Samples:\n")[2].partition("Locations")[0].splitlines()[1:]
    values = [list(map(int, line.partition(":")[0].split())) for line in lines if ":" in line and line.strip()[0].isdigit()]
    equal((event["samples"], event["weight"]), (sum(v[0] for v in values), sum(v[1] for v in values)))
    top = subprocess.run(["go", "tool", "pprof", "-top", "-nodecount=1", path], capture_output=True, text=True,
                         check=True, env=dict(os.environ, HOME=os.getcwd())).stdout.splitlines()[-1].split()
    first = max(table.values(), key=lambda row: row["samples"])
    equal(first["symbol"], top[-1])


@test
def what_is_damaged_is_said_with_its_place():
    good = pprof(OLD)
    cases = {
        "cut.pb.gz": (gzip.compress(good)[:-20], "cut short"),
        "cut.pb": (good[:-3], "byte "),
        "values.pb": (pprof({("main",): (1,)}), "sample 1 has 1 values, but there are 2 types"),
        "less.pb": (pprof({("main",): (1, -5)}), "negative value"),
        "none.pb": (pprof({}), "there are no samples"),
        "bad.folded": (b"main;f 12\nmain;g\n", "line 2"),
        "zero.folded": (b"main;f 12\nmain;g\0 3\n", "line 2"),
    }
    for name, (content, words) in cases.items():
        pathlib.Path(name).write_bytes(content)
        said = assay("report", "--stdio", name, check=1).stderr
        contains(said, name + ": ")
        contains(said, words)
    pathlib.Path("text").write_text("hello, this is not a recording, nor a profile of any kind that assay knows of\n" * 4)
    contains(assay("report", "--stdio", "text", check=1).stderr, "is not a perf.data file")


main()
