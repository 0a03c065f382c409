# SPDX-License-Identifier: MIT
"""assay import: files that the real tools wrote (tests/fuzz/corpus/harness), value for value."""
import csv
import gzip
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import xml.etree.ElementTree

from harness import *

FILES = ROOT / "tests/fuzz/corpus/harness"


def place():
    return os.environ.get("ASSAY_DB", "a.db")


def imports(*args, check=0):
    return assay("import", "--db", "a.db", *args, check=check)


def values(label, metric, database="a.db"):
    """The values of a cell in the order of its runs, as the store has them."""
    with sqlite3.connect(database) as db:
        rows = db.execute("SELECT v.value FROM value v JOIN run r ON r.id = v.run JOIN cell c ON c.id = r.cell"
                          " JOIN metric m ON m.id = v.metric WHERE c.label = ? AND m.name = ? ORDER BY r.id",
                          (label, metric)).fetchall()
    return [row[0] for row in rows]


def experiment(column):
    with sqlite3.connect("a.db") as db:
        return db.execute(f"SELECT {column} FROM experiment ORDER BY id DESC").fetchone()[0]


def read(name):
    return json.loads((FILES / name).read_text())


@test
def every_file_is_recognised():
    for path in sorted(FILES.iterdir()):
        said = json.loads(imports("--dry-run", "--json", path).stdout)
        equal(said["values"] > 0, True, path.name)
        tool = {"perf-stat-j": "perf-json", "perf-stat": "perf-csv", "perf-stat-i": "perf-csv",
                "go-bench": "go", "redis": "redis-benchmark", "sysbench-fileio": "sysbench",
                "lkp-matrix": "lkp-json", "criterion": "criterion-text"}
        equal(said["tool"], tool.get(path.stem, path.stem))
    equal(os.path.exists("a.db"), False, "a store after --dry-run")


@test
def google_benchmark():
    imports(FILES / "google-benchmark.json")
    entries = [e for e in read("google-benchmark.json")["benchmarks"] if e["run_type"] == "iteration"]
    for name in ("BM_sort/64", "BM_sort/512"):
        for metric in ("real_time", "cpu_time", "items_per_second", "bytes_per_second", "own"):
            equal(values(f"benchmark={name}", metric), [e[metric] for e in entries if e["name"] == name], metric)
    equal(values("benchmark=BM_ms/threads:2 threads=2", "real_time_ms"),
          [e["real_time"] for e in entries if e["name"] == "BM_ms/threads:2"])
    equal(experiment("name"), "gb")
    equal(experiment("failed_count"), 1)
    shown = assay("show", "--db", "a.db", "last", check=0).stdout
    contains(shown, "1 run failed" if "1 run failed" in shown else "1 runs failed")
    contains(shown, "real_time_ms")
    with sqlite3.connect("a.db") as db:
        equal(db.execute("SELECT output FROM run WHERE status <> 0").fetchall(), [("no such file",)])


@test
def hyperfine():
    imports(FILES / "hyperfine.json")
    for result in read("hyperfine.json")["results"]:
        label = f"benchmark={result['command']} n={result['parameters']['n']}"
        equal(values(label, "wall"), result["times"])


@test
def pytest_benchmark():
    imports(FILES / "pytest-benchmark.json", "--commit", "c0ffee", "--branch", "main")
    for entry in read("pytest-benchmark.json")["benchmarks"]:
        equal(values("benchmark=" + entry["fullname"], "wall"), entry["stats"]["data"])
    equal(experiment("git_commit"), "c0ffee")
    equal(experiment("branch"), "main")


@test
def texts_of_go_sysbench_pgbench_and_redis():
    for name in ("go-bench.txt", "sysbench.txt", "pgbench.txt", "redis.csv"):
        imports(FILES / name)
    lines = [line.split() for line in (FILES / "go-bench.txt").read_text().splitlines()]
    equal(values("benchmark=Sum procs=2", "time"), [float(w[2]) for w in lines if w and w[0] == "BenchmarkSum-2"])
    equal(values("benchmark=Alloc procs=2", "allocations"), [1.0] * 3)
    equal(values("benchmark=Alloc procs=2", "widgets/op"), [3.5] * 3)
    equal(values("benchmark=cpu threads=1", "events"), [514.12])
    equal(values("benchmark=cpu threads=1", "interval.events"), [573.04, 455.51])
    label = "benchmark=<builtin: TPC-B (sort of)> scale=1 mode=simple clients=2 threads=1"
    equal(values(label, "tps"), [324.128323])
    equal(values(label, "interval.tps"), [379.4, 265.1])
    for row in csv.DictReader(open(FILES / "redis.csv")):
        equal(values("benchmark=" + row["test"], "rps"), [float(row["rps"])])
        equal(values("benchmark=" + row["test"], "latency.p99"), [float(row["p99_latency_ms"])])


@test
def catch2_and_stress_ng():
    imports(FILES / "catch2.xml", FILES / "stress-ng.yaml")
    tree = xml.etree.ElementTree.parse(FILES / "catch2.xml")
    for result in tree.iter("BenchmarkResults"):
        equal(values("benchmark=fib: " + result.get("name"), "mean"),
              [float(result.find("mean").get("value"))], result.get("name"))
    equal(values("benchmark=cpu", "bogo-ops.real"), [113.233833])
    equal(values("benchmark=vm", "peak-rss"), [263820])


@test
def fio_and_iperf3():
    imports(FILES / "fio.json", FILES / "iperf3.json")
    job = read("fio.json")["jobs"][0]
    equal(values("benchmark=seq rw=randrw bs=4k", "read.iops"), [job["read"]["iops"]])
    equal(values("benchmark=seq rw=randrw bs=4k", "write.latency.p99"),
          [job["write"]["clat_ns"]["percentile"]["99.000000"]])
    intervals = [i["sum"]["bits_per_second"] for i in read("iperf3.json")["intervals"]]
    equal(values("benchmark=TCP streams=1 blksize=131072", "throughput"), intervals)


@test
def perf_stat():
    imports(FILES / "perf-stat.csv")
    equal(values("benchmark=perf stat", "page-faults"), [51])
    equal(values("benchmark=perf stat", "cycles"), [], "what is not supported has no values")
    imports(FILES / "perf-stat-i.csv")
    equal(values("benchmark=perf stat", "page-faults"), [51, 77, 0])
    imports(FILES / "perf-stat-j.txt")
    pathlib.Path("groups.csv").write_text("5,,page-faults,a/b,100,100.00,,\n7,,page-faults,/,100,100.00,,\n")
    imports("groups.csv")
    equal((values("benchmark=a/b where=a/b", "page-faults"), values("benchmark=/ where=/", "page-faults")), ([5], [7]))


@test
def jmh_pyperf_nanobench_and_divan():
    for name in ("jmh.json", "pyperf.json", "nanobench.json", "divan.txt"):
        imports(FILES / name)
    equal(values("benchmark=org.example.Parse.small mode=avgt size=64", "score"),
          [101.25, 102.5, 104.0, 105.0, 103.25, 105.0])
    equal(values("benchmark=timeit", "wall"), [1.125e-08, 1.25e-08, 1.0625e-08])
    equal(values("benchmark=fnv", "elapsed"), [2e-08, 2.5e-08, 1.5e-08])
    equal(values("benchmark=fibonacci/iterative/20", "median"), [5.5e6])
    equal(values("benchmark=fibonacci/rec", "fastest"), [1e9])


@test
def criterions_directory():
    for name, times in {"sum 20": [100, 210], "grp/f/10": [50, 110]}.items():
        new = pathlib.Path("target/criterion", name, "new")
        new.mkdir(parents=True)
        (new / "benchmark.json").write_text(json.dumps({"group_id": name, "full_id": name,
                                                         "throughput": None, "directory_name": name}))
        (new / "sample.json").write_text(json.dumps({"sampling_mode": "Linear", "iters": [10.0, 20.0],
                                                      "times": times}))
    imports("target/criterion")
    equal(values("benchmark=sum 20", "time"), [10.0, 10.5])
    equal(values("benchmark=grp/f/10", "time"), [5.0, 5.5])


@test
def criterion_itself():
    """What criterion 0.3.6 left behind and printed (tests/fuzz/corpus/criterion)."""
    tree = ROOT / "tests/fuzz/corpus/criterion"
    imports(tree)
    found = 0
    for path in sorted(tree.glob("**/new/sample.json")):
        sample = json.loads(path.read_text())
        name = json.loads((path.parent / "benchmark.json").read_text())["full_id"]
        with sqlite3.connect("a.db") as db:
            [label] = [row[0] for row in db.execute("SELECT label FROM cell") if row[0].startswith(f"benchmark={name}")]
        equal(values(label, "time"), [t / i for t, i in zip(sample["times"], sample["iters"])], name)
        found += 1
    equal(found, 4)
    imports(FILES / "criterion.txt")
    for path in sorted(tree.glob("**/new/estimates.json")):
        name = json.loads((path.parent / "benchmark.json").read_text())["full_id"]
        estimates = json.loads(path.read_text())
        exact = (estimates.get("slope") or estimates["mean"])["point_estimate"]
        [printed] = values(f"benchmark={name}", "estimate")
        between(printed / exact, 0.999, 1.001, name)


@test
def a_result_root_of_lkp_can_be_compared_by_commit():
    base = pathlib.Path("result/will-it-scale/brk2-process-2/box/debian.cgz/x86_64-rhel/gcc-12")
    for commit, level in (("aaaa", 1000), ("bbbb", 800)):
        for run in range(8):
            place = base / commit / str(run)
            place.mkdir(parents=True)
            (place / "stats.json").write_text(json.dumps({"will-it-scale.per_process_ops": level + run,
                                                          "vmstat.system.cs": 5 + run % 3}))
    (base / "bbbb/matrix.json").write_text(json.dumps({
        "will-it-scale.per_process_ops": [800 + run for run in range(8)],
        "vmstat.system.cs": [5 + run % 3 for run in range(8)]}))
    imports("result")
    text = assay("compare", "--db", "a.db", "commit=aaaa", "commit=bbbb", "--lkp", check=0).stdout
    contains(text, "will-it-scale.per_process_ops")
    contains(text, "-19.9%")


@test
def what_is_imported_can_be_shown_compared_and_followed():
    imports(FILES / "go-bench.txt", "--name", "go", "--date", "2026-01-01T00:00:00Z")
    imports(FILES / "go-bench.txt", "--name", "go", "--date", "2026-01-02T00:00:00Z")
    contains(assay("list", "--db", "a.db", check=0).stdout, "2026-01-0")
    contains(assay("show", "--db", "a.db", "last", check=0).stdout, "benchmark=Sum")
    contains(assay("compare", "--db", "a.db", "1", "2", check=0).stdout, "Sum")
    points = json.loads(assay("history", "--db", "a.db", "time", "--json", check=0).stdout)["histories"]
    equal([len(h["points"]) for h in points], [2, 2, 2])
    assay("html", "--db", "a.db", "last", "-o", "r.html", check=0)


@test
def what_is_imported_is_openmetrics():
    imports(FILES / "go-bench.txt", "--commit", "c0ffee")
    text = assay("show", "--db", "a.db", "--openmetrics", check=0).stdout
    equal(text.endswith("# EOF\n"), True, text[-100:])
    contains(text, "# TYPE assay_time_seconds gauge\n# UNIT assay_time_seconds seconds\n")
    families = dict(openmetrics_families(text))
    lines = [line.split() for line in (FILES / "go-bench.txt").read_text().splitlines()]
    times = sorted(float(w[2]) for w in lines if w and w[0] == "BenchmarkSum-2")
    [(labels, median)] = [(labels, value) for _, labels, value in families["assay_time_seconds"]
                          if labels["factor_benchmark"] == "Sum" and labels["stat"] == "median"]
    between(median / (times[1] * 1e-9), 0.999999, 1.000001, "the median in seconds")
    equal((labels["commit"], labels["metric"]), ("c0ffee", "time"))
    equal({value for _, _, value in families["assay_experiment_runs"]}, {3.0})
    for name in ("google-benchmark.json", "fio.json", "stress-ng.yaml", "lkp-matrix.json"):
        imports(FILES / name)
        openmetrics_families(assay("show", "--db", "a.db", "--openmetrics", check=0).stdout)
    pathlib.Path("odd.txt").write_text('Benchmarka"b\\c-2 1 5 ns/op 3 odd/unit\n')
    imports("odd.txt", "--name", 'x"y\\z')
    openmetrics_families(assay("show", "--db", "a.db", "--openmetrics", check=0).stdout)


@test
def versions_that_are_not_known_are_refused_by_name():
    for name, old, new, words in (("fio.json", "fio-3.33", "fio-4.1", "fio 4.1"),
                                  ("pytest-benchmark.json", '"version": "3.2.2"', '"version": "9.1"',
                                   "pytest-benchmark 9.1"),
                                  ("sysbench.txt", "sysbench 1.0.20", "sysbench 0.4.12", "sysbench 0.4.12"),
                                  ("jmh.json", '"1.37"', '"2.0"', "JMH 2.0"),
                                  ("pyperf.json", '"version": "1.0"', '"version": "7.0"', "7.0")):
        text = (FILES / name).read_text()
        equal(old in text, True, name)
        pathlib.Path("f").write_text(text.replace(old, new))
        contains(imports("f", check=1).stderr, words)
    equal(pathlib.Path("a.db").exists(), False)  # nor is an empty store left behind


@test
def what_is_wrong_is_said_with_file_place_and_remedy():
    for content, words in ((b"", "the file is empty"), (b"hello\n", "'assay import --list'"),
                           (b"{\"a\": ", "line 1, column"), (b"{}", "does not know this format"),
                           (b"\0\1\2", "binary"), (b"{\"context\": {}, \"benchmarks\": []}", "no values"),
                           (b"{\"context\": {}, \"benchmarks\": [{\"name\": \"a\"}]}", "benchmarks[0] ('a')"),
                           (b"\"test\",\"rps\",\"x\"\n\"SET\",\"abc\",\"1\"\n", "line 2, field 2")):
        pathlib.Path("bad").write_bytes(content)
        said = imports("bad", check=1).stderr
        contains(said, words)
        contains(said, "bad: ")
    contains(imports("missing.json", check=1).stderr, "missing.json: No such file")
    contains(imports("--format", "goggle-benchmark", "bad", check=1).stderr, "google-benchmark")
    contains(imports("--format", "fio", FILES / "hyperfine.json", check=1).stderr, "this is not fio")
    os.mkdir("empty")
    contains(imports("empty", check=1).stderr, "criterion's and LKP's")
    contains(imports(check=2).stderr, "give a file")
    contains(imports("--date", "yesterday", FILES / "fio.json", check=2).stderr, "not a time")


@test
def benchmarks_of_one_name_are_told_apart():
    """Values of different benchmarks never become repetitions of one."""
    pathlib.Path("go.txt").write_text("pkg: example.org/a\nBenchmarkSum 10 5 ns/op\nBenchmarkSum-2 10 3 ns/op\n"
                                      "BenchmarkSum-2 10 4 ns/op 7 odd/op\nBenchmarkSum-2 10 5 ns/op NaN odd/op\nPASS\n"
                                      "pkg: example.org/b\nBenchmarkSum-2 10 90 ns/op\n")
    imports("go.txt")
    equal(values("benchmark=Sum package=example.org/a", "time"), [5])
    equal(values("benchmark=Sum package=example.org/a procs=2", "time"), [3, 4, 5])
    equal(values("benchmark=Sum package=example.org/b procs=2", "time"), [90])
    with sqlite3.connect("a.db") as db:
        equal(db.execute("SELECT r.round, v.value FROM value v JOIN run r ON r.id = v.run JOIN metric m"
                         " ON m.id = v.metric WHERE m.name = 'odd/op'").fetchall(), [(1, 7.0)], "the second repetition")
    pathlib.Path("c.xml").write_text(
        '<?xml version="1.0"?><Catch2TestRun name="p" catch2-version="3.4.0" xml-format-version="2">'
        '<TestCase name="sort &lt;a> b" tags="[!benchmark]">' + "".join(
            f'<Section name="{s}"><BenchmarkResults name="x > y" samples="1"><mean value="{v}"/></BenchmarkResults></Section>'
            for s, v in (("small", 10), ("large", 20), ("large", 30))) +
        '<BenchmarkResults name="x > y"><mean value="40"/></BenchmarkResults></TestCase></Catch2TestRun>')
    imports("c.xml")
    for place, value in (("/small: x > y", 10), ("/large: x > y", 20), ("/large: x > y #2", 30), (": x > y", 40)):
        equal(values("benchmark=sort <a> b" + place, "mean"), [value], place)


@test
def google_benchmark_with_aggregates_skips_and_numbers_that_are_none():
    def entry(name, aggregate=None, **more):
        return {"name": name + ("_" + aggregate if aggregate else ""), "run_name": name, "real_time": 1.5, "cpu_time": 1.25,
                "run_type": "aggregate" if aggregate else "iteration", "time_unit": "ns",
                **({"aggregate_name": aggregate} if aggregate else {}), **more}
    file = {"context": {"json_schema_version": 1},
            "benchmarks": [entry("a", own=float("nan")), entry("a", own=2.5), entry("a", "median", real_time=9),
                           entry("b", "mean", real_time=8), entry("b", "median", real_time=7), entry("b", "BigO"),
                           entry("c", skipped=True, skip_message="no"), entry("d", big=2**64)]}
    pathlib.Path("g.json").write_text(json.dumps(file))
    contains(pathlib.Path("g.json").read_text(), "NaN")
    imports("g.json")
    equal(values("benchmark=a", "real_time"), [1.5, 1.5])
    equal(values("benchmark=b", "real_time"), [7])
    equal(values("benchmark=d", "big"), [2.0**64])
    with sqlite3.connect("a.db") as db:
        equal(db.execute("SELECT count(*) FROM cell").fetchone()[0], 3)
        equal(db.execute("SELECT r.round FROM value v JOIN run r ON r.id = v.run JOIN metric m ON m.id = v.metric"
                         " WHERE m.name = 'own'").fetchall(), [(1,)])


@test
def texts_in_other_wrappings():
    text = (FILES / "hyperfine.json").read_text()
    pathlib.Path("mark.json").write_bytes(b"\xef\xbb\xbf" + text.encode())
    equal(json.loads(imports("-n", "--json", "mark.json").stdout)["tool"], "hyperfine")
    pathlib.Path("wide.json").write_bytes(text.encode("utf-16"))
    contains(imports("wide.json", check=1).stderr, "UTF-16")
    pathlib.Path("mark.csv").write_bytes(b"\xef\xbb\xbf" + (FILES / "perf-stat.csv").read_bytes())
    imports("mark.csv")
    pathlib.Path("packed.gz").write_bytes(gzip.compress(text.encode()))
    contains(imports("packed.gz", check=1).stderr, "unpack")
    contains(imports("--format", "hyperfine", "packed.gz", check=1).stderr, "gunzip")
    for name in sorted(FILES.iterdir()):  # a file that was cut off anywhere is refused, or read as far as it goes
        whole = name.read_bytes()
        for part in (1, len(whole) // 3, len(whole) // 2, len(whole) - 2):
            pathlib.Path("cut").write_bytes(whole[:part])
            result = assay("import", "-n", "cut")
            equal(result.returncode in (0, 1), True, f"{name.name} cut at {part}: {result.stderr}")
    pathlib.Path("deep.json").write_text("[" * 100000 + "]" * 100000)
    contains(imports("deep.json", check=1).stderr, "deep.json: ")


@test
def many_runs_are_all_there():
    """Runs are written in groups; the last ones, and those that failed, by themselves."""
    for count in (1, 31, 32, 33, 63, 64, 65, 100, 1000):
        times = [i / 7 for i in range(count)]
        pathlib.Path("h.json").write_text(json.dumps({"results": [{"command": f"c{count}", "times": times, "user": 1.5,
                                                                   "memory_usage_byte": [8 * i for i in range(count)]}]}))
        imports("h.json")
        equal(values(f"benchmark=c{count}", "wall"), times)
        equal(values(f"benchmark=c{count}", "peak-rss"), [8.0 * i for i in range(count)])
        equal((values(f"benchmark=c{count}", "user"), experiment("run_count")), ([1.5], count))


@test
def standard_input_and_several_files():
    result = subprocess.run([ASSAY, "import", "--db", "a.db", "-"], stdin=open(FILES / "go-bench.txt"),
                            capture_output=True, text=True)
    equal(result.returncode, 0, result.stderr)
    contains(result.stdout, "-: experiment 1")
    said = imports("missing", FILES / "fio.json", check=1)
    contains(said.stdout, "experiment 2 (fio)")


@test
def numbers_that_json_lacks_are_none_and_a_cut_file_says_where():
    whole = ('{"context": {"executable": "x", "library_build_type": "release"}, "benchmarks": [\n'
             '{"name": "a", "run_name": "a", "run_type": "iteration", "iterations": 1, "real_time": 1.5,'
             ' "cpu_time": 1.5, "time_unit": "ns", "b": NaN, "c": NaN, "d": NaN, "e": NaN, "f": Infinity}\n]}\n')
    pathlib.Path("g.json").write_text(whole)  # as long as with null for each of them
    assay("import", "g.json", check=0)
    pathlib.Path("cut.json").write_text(whole[:-3])
    contains(assay("import", "cut.json", check=1).stderr, "cut.json: line 3, column 0: not JSON: ']' expected near end of file;"
             " the file ends too early")
    pathlib.Path("two.json").write_text(whole + whole)
    contains(assay("import", "two.json", check=1).stderr, "give one document a file")


@test
def a_text_that_was_cut_within_a_figure_is_refused():
    """A number whose last digits are missing is a wrong value."""
    for name, words in (("stress-ng.yaml", "max-rss: "), ("sysbench.txt", "avg: "), ("pgbench.txt", "\ntps = ")):
        whole = (FILES / name).read_text()
        digits = re.search(re.escape(words) + r" *[0-9]{2}|" + re.escape(words) + r" *[0-9]\.", whole)
        pathlib.Path("cut").write_text(whole[:digits.end()])
        contains(imports("cut", check=1).stderr, "the file ends ")
    for end in ("12.5", "12.5 ns/o", "12.5 ns/op 8 B", "12.5 ns/op 8 odd/"):
        pathlib.Path("cut").write_text("BenchmarkA 10 12.5 ns/op 8 odd/op\nBenchmarkA 10 " + end)
        imports("-n", "cut", check=1)
    pathlib.Path("whole").write_text("BenchmarkA 10 12.5 ns/op 8 odd/op\nBenchmarkA 10 12.5 ns/op 9 odd/op")
    equal(json.loads(imports("-n", "-j", "whole").stdout)["values"], 4)


@test
def go_test_json_is_read_as_its_text_is():
    text = (FILES / "go-bench.txt").read_text()
    parts = [part for line in text.splitlines(keepends=True) for part in (line[:12], line[12:])]
    pathlib.Path("go.json").write_text("".join(
        json.dumps({"Action": "output", "Package": "example.com/b", "Output": part}, separators=(",", ":")) + "\n" for part in parts))
    imports("go.json")
    imports("--name", "text", FILES / "go-bench.txt")
    with sqlite3.connect("a.db") as db:
        one, other = (db.execute("SELECT c.label, r.round, m.name, v.value FROM value v JOIN run r ON r.id = v.run JOIN cell c"
                                 " ON c.id = r.cell JOIN metric m ON m.id = v.metric WHERE r.experiment = ? ORDER BY r.id, m.id",
                                 (i,)).fetchall() for i in (1, 2))
    equal((len(one), one), (21, other))


@test
def what_failed_or_has_its_own_figures_is_told():
    pathlib.Path("h.json").write_text(json.dumps({"results": [{"command": "c", "times": [1, 2, 3], "exit_codes": [0, 1, None]}]}))
    contains(imports("h.json").stdout, "2 runs ended with an error and are counted")
    text = (FILES / "stress-ng.yaml").read_text().replace("\n...", "      nanosecs-per-switch: 9300.5\n      calls-per-sec: 17\n\n...")
    pathlib.Path("s.yaml").write_text(text)
    imports("s.yaml")
    with sqlite3.connect("a.db") as db:
        rows = db.execute("SELECT m.name, m.unit, m.better, v.value FROM value v JOIN metric m ON m.id = v.metric"
                          " WHERE m.name LIKE '%-per-s%'").fetchall()
    equal(sorted(rows), [("calls-per-sec", "", 1, 17.0), ("nanosecs-per-switch", "ns", 0, 9300.5)])
    for name, metric in (("pgbench.txt", "interval.tps"), ("sysbench.txt", "interval.events")):
        imports(FILES / name)
        equal(experiment("headline").split()[0], metric)
    text = (FILES / "pgbench.txt").read_text()
    pathlib.Path("p.txt").write_text("".join(l for l in text.splitlines(keepends=True) if not l.startswith("progress: ")))
    imports("p.txt")
    equal(experiment("headline").split()[0], "tps")


@test
def several_runs_in_one_file_are_told_apart():
    """Runs with the same options are repetitions; those with others are benchmarks of their own."""
    for name, option, label in (("pgbench.txt", ("number of clients: 2", "number of clients: 8"), "interval.tps"),
                                ("sysbench.txt", ("Number of threads: 1", "Number of threads: 4"), "events")):
        text = (FILES / name).read_text()
        equal(option[0] in text, True, name)
        pathlib.Path("two").write_text(text + text.replace(*option) + text)
        said = json.loads(imports("-j", "two").stdout)
        with sqlite3.connect("a.db") as db:
            counts = db.execute("SELECT count(*) FROM value v JOIN run r ON r.id = v.run JOIN metric m ON m.id = v.metric"
                                " WHERE r.experiment = ? AND m.name = ? GROUP BY r.cell ORDER BY r.cell",
                                (said["experiment"], label)).fetchall()
        equal((said["benchmarks"], counts[0][0]), (2, 2 * counts[1][0]), name)


@test
def fio_with_words_around_its_document():
    """On standard output fio writes its notes first, and with json,normal its text behind."""
    text = (FILES / "fio.json").read_text()
    note = "note: both iodepth >= 1 and synchronous I/O engine are selected, queue depth will be capped at 1\n"
    pathlib.Path("noted").write_text(note + text + "\na: (groupid=0, jobs=1): err= 0: pid=3\n  read: IOPS=14.8k\n")
    imports("noted")
    equal(values("benchmark=seq rw=randrw bs=4k", "read.iops"), [read("fio.json")["jobs"][0]["read"]["iops"]])
    pathlib.Path("cut").write_text(note + text[:-20])
    contains(imports("cut", check=1).stderr, "cut: line ")
    pathlib.Path("folded").write_text("main;work 12\nmain;rest 3\n")
    contains(imports("folded", check=1).stderr, "this is a profile")


@test
def json_behind_words_and_json_of_assay():
    text = (FILES / "google-benchmark.json").read_text()
    pathlib.Path("both").write_text("2026-11-15T10:00:00+00:00\nRunning ./gb\nRun on (2 X 2445 MHz CPU s)\n" + text)
    equal(json.loads(imports("-n", "-j", "both").stdout)["tool"], "google-benchmark")
    pathlib.Path("own.json").write_text('{"format": "assay-ab-1", "metrics": []}')
    contains(imports("own.json", check=1).stderr, "assay's own JSON (assay-ab-1)")


@test
def one_metric_in_several_units():
    """JMH's score has the unit that a benchmark chose: each of them is shown, compared and a headline."""
    def entry(name, mode, unit, values):
        return {"benchmark": name, "jmhVersion": "1.37", "mode": mode,
                "primaryMetric": {"score": values[0], "scoreUnit": unit, **({"rawData": [values]} if mode != "sample" else {
                    "scorePercentiles": {"50.0": 1.5, "99.9": 7.25}})}}
    pathlib.Path("j.json").write_text(json.dumps([entry("a.x", "avgt", "us/op", [1, 2, 3, 4]), entry("a.y", "avgt", "ms/op", [5, 6, 7, 8]),
                                                  entry("a.z", "thrpt", "ops/s", [9e6, 9.1e6, 9.2e6, 9.3e6]),
                                                  entry("a.s", "sample", "us/op", [4])]))
    imports("j.json", "j.json")
    shown = assay("show", "--db", "a.db", "last", check=0).stdout
    for text in ("us/op", "ms/op", "ops/s"):
        contains(shown, text)
    contains(assay("compare", "--db", "a.db", "1", "2", check=0).stdout, "of 3 headline rows")
    equal(values("benchmark=a.s mode=sample", "score.p99.9"), [7.25, 7.25])


@test
def names_that_are_hard_to_keep():
    pathlib.Path("h.json").write_text(json.dumps({"results": [
        {"command": "a", "times": [1, 2], "parameters": {"benchmark": "x", "": "y"}},
        {"command": "a", "times": [3, 4], "parameters": {"benchmark": "z", "": "y"}}]}))
    imports("h.json")
    equal(values("benchmark=a parameter benchmark=z parameter=y", "wall"), [3, 4])
    pathlib.Path("go.txt").write_text("BenchmarkA-8 10 5 widgets\nBenchmarkA-8 10 6 widgets 7 gadgets\n"
                                      "Benchmarking 10 things today\nBenchmarkB-8 10 5 ns/op\n")
    imports("go.txt")
    equal((values("benchmark=A procs=8", "widgets"), values("benchmark=A procs=8", "gadgets")), ([5, 6], [7]))
    equal(values("benchmark=B procs=8", "time"), [5])
    pathlib.Path("perf.csv").write_text("10,,cpu/event=0xc5,umask=0x1/,100,100.00,,\n"
                                        "20,,cpu/event=0xc5,umask=0x2/u,100,100.00,,\n5,,page-faults,a/b,100,100.00,,\n")
    imports("perf.csv")
    equal([values("benchmark=perf stat", f"cpu/event=0xc5,umask={u}") for u in ("0x1/", "0x2/u")], [[10], [20]])
    equal(values("benchmark=a/b where=a/b", "page-faults"), [5])


@test
def a_run_of_lkp_that_failed_hides_no_other():
    base = pathlib.Path("result/aim7/p/box/fs/kc/gcc/c1")
    for run in (0, 1, 3, 10):
        (base / str(run)).mkdir(parents=True)
        if run:
            (base / str(run) / "stats.json").write_text(json.dumps({"aim7.jobs-per-min": run, "vmstat.x": 2}))
    imports("result")
    equal(values("benchmark=aim7 testcase=aim7 params=p tbox=box rootfs=fs kconfig=kc compiler=gcc commit=c1",
                 "aim7.jobs-per-min"), [1, 3, 10])


@test
def benchmarks_of_one_file_are_no_rivals():
    """That SET answers faster than LRANGE says nothing; commands of hyperfine do compete."""
    imports(FILES / "redis.csv")
    contains(assay("answers", "--db", "a.db", check=0).stdout, "do different things")
    contains(assay("answers", "--db", "a.db", "--variant", "benchmark", check=0).stdout, "GET and SET")
    assay("html", "--db", "a.db", "-o", "a.html", check=0)
    text = pathlib.Path("a.html").read_text()
    contains(text, "do different things")
    lacks(text, "are ahead")
    pathlib.Path("h.json").write_text(json.dumps({"results": [
        {"command": c, "times": [s + i / 1000 for i in range(10)]} for c, s in (("a", 1), ("b", 2))]}))
    imports("h.json")
    contains(assay("answers", "--db", "a.db", check=0).stdout, "a is best with")


main()
