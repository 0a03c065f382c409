# SPDX-License-Identifier: MIT
"""assay bench with other harnesses and languages, and other verbs with benchmarks."""
import json
import os
import pathlib
import shutil
import subprocess

from harness import *

INCLUDE = ROOT / "include"
CC = os.environ.get("CC", "cc")
# Short, and none of the tests asks how long something took.
QUICK = ["-t", "20ms", "-r", "2"]

GOOD = r"""
#include <assay.h>
static uint64_t work(uint64_t x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        ASSAY_KEEP(x);
    }
    return x;
}
ASSAY_BENCH(steady)
{
    uint64_t x = 1;
    ASSAY_LOOP { x = work(x, WORK); }
    ASSAY_CHECK(x != 0);
}
ASSAY_BENCH(sized, ASSAY_RANGE(n, 8, 100, 4), ASSAY_LIST(kind, 1, 2))
{
    uint64_t x = (uint64_t)kind;
    ASSAY_LOOP { x = work(x, n); }
    ASSAY_ITEMS(n);
    ASSAY_BYTES(n * 8);
    ASSAY_COUNTER("answer", 42);
}
ASSAY_BENCH(not_here) { ASSAY_SKIP("no such hardware"); ASSAY_LOOP {} }
"""


def build(source, name="prog", flags=(), compiler=CC, suffix=".c"):
    path = pathlib.Path(name.replace(".so", "") + "_source" + suffix)
    path.write_text(source)
    shared = ["-shared", "-fPIC"] if name.endswith(".so") else []
    result = subprocess.run([*compiler.split(), "-O2", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", *flags,
                             *shared, str(path), "-o", name, "-pthread"], text=True, capture_output=True)
    if result.returncode:
        raise AssertionError(result.stderr)
    return "./" + name


def body(text, head="#include <assay.h>\n"):
    return head + text + "\nASSAY_MAIN\n"


WORK_LOOP = "for (int i = 0; i < WORK; i++) { x = x * 3 + 1; __asm__ volatile(\"\" : \"+r\"(x)); }"
GOOGLE = """
#include <benchmark/benchmark.h>
static void steady(benchmark::State &s) { unsigned x = 1; for (auto _ : s) { LOOP } }
BENCHMARK(steady);
static void other(benchmark::State &s) { for (auto _ : s) { unsigned x = 1; benchmark::DoNotOptimize(x); } }
BENCHMARK(other)->Arg(8);
BENCHMARK_MAIN();
""".replace("LOOP", WORK_LOOP)
CATCH = """
#define CATCH_CONFIG_MAIN
#define CATCH_CONFIG_ENABLE_BENCHMARKING
#include <catch2/catch.hpp>
extern int work;
TEST_CASE("all", "[!benchmark]") { BENCHMARK("steady < work") { unsigned x = 1; LOOP return x; }; }
""".replace("LOOP", WORK_LOOP.replace("WORK", "10 * work"))
GO = """package b
import "testing"
var sink int
func BenchmarkSteady(b *testing.B) { for i := 0; i < b.N; i++ { x := sink; for k := 0; k < WORK; k++ { x = x*1103515245 + 12345 }; sink = x } }
func BenchmarkSub(b *testing.B) { b.Run("one", func(b *testing.B) { for i := 0; i < b.N; i++ { sink++ } }) }
"""


def foreign(build_one, names, harness, flags=()):
    """Two versions, the second with thrice the work in the first of the names."""
    old, new = build_one(300, "old"), build_one(900, "new")
    equal(assay("bench", "-l", *flags, old, check=0).stdout.split("\n")[:-1], names)
    report = json.loads(assay("bench", "-r", "8", "--json", *flags, "-b", names[0].replace("[", "?"), old, new,
                              check=0).stdout)
    row = report["benchmarks"][0]
    equal((row["name"], row["rounds"]), (names[0], 8))
    between(row["comparison"]["time"]["estimate"], 1.1, 30, "thrice the work")
    contains(assay("bench", "-r", "1", *flags, "--harness", harness, old, check=0).stdout, names[0])


@test
def google_benchmarks_are_paired():
    if not os.path.exists("/usr/include/benchmark/benchmark.h"):
        skip("libbenchmark-dev is not installed")

    def one(work, name):
        path = pathlib.Path(name + ".cc")
        path.write_text(GOOGLE)
        subprocess.run(["g++", "-O2", f"-DWORK={work}", path, "-o", name, "-lbenchmark", "-lpthread"], check=True)
        return "./" + name
    foreign(one, ["steady", "other/8"], "google-benchmark")
    # It tells CPU time, too.
    report = json.loads(assay("bench", "-r", "8", "--json", "-b", "steady", "./old", "./new", check=0).stdout)
    between(report["benchmarks"][0]["comparison"]["cpu"]["estimate"], 1.1, 30, "thrice the work")
    sample = report["benchmarks"][0]["versions"][0]["samples"][0]
    between(sample["cpu_ns"], 1, 1e9, "CPU time of an iteration")


@test
def catch2_benchmarks_are_paired():
    if not os.path.exists("/usr/include/catch2/catch.hpp"):
        skip("catch2 version 2 is not installed")

    pathlib.Path("catch.cc").write_text(CATCH)
    subprocess.run(["g++", "-O0", "-c", "catch.cc"], check=True)  # once: it takes a while

    def one(work, name):
        pathlib.Path("work.cc").write_text(f"int work = {work};")
        subprocess.run(["g++", "catch.o", "work.cc", "-o", name], check=True)
        return "./" + name
    foreign(one, ["all: steady < work"], "catch2")


@test
def go_benchmarks_are_paired():
    if not shutil.which("go"):
        skip("go is not installed")

    def one(work, name):
        os.makedirs("b", exist_ok=True)
        pathlib.Path("b/go.mod").write_text("module b\n\ngo 1.18\n")
        pathlib.Path("b/b_test.go").write_text(GO.replace("WORK", str(work)))
        subprocess.run(["go", "test", "-c", "-o", "../" + name], cwd="b", check=True,
                       env=dict(os.environ, GOFLAGS="-mod=mod", GOPROXY="off", GOCACHE=os.path.abspath("gocache")))
        return "./" + name
    foreign(one, ["Steady", "Sub/one"], "go")


@test
def pytest_benchmarks_are_paired():
    path = {"PATH": "/usr/bin:/bin"}  # Debian's Python
    if subprocess.run(["/usr/bin/python3", "-c", "import pytest_benchmark"], capture_output=True).returncode:
        skip("python3-pytest-benchmark is not installed")
    for name, work in (("test_old.py", 3000), ("test_new.py", 9000)):
        pathlib.Path(name).write_text(f"def test_sum(benchmark):\n    benchmark(lambda: sum(range({work})))\n")
    report = json.loads(assay("bench", "-r", "2", "--json", "test_old.py", "test_new.py", env=path, check=0).stdout)
    between(report["benchmarks"][0]["comparison"]["time"]["estimate"], 1.3, 20, "thrice the work")
    # Of two Pythons, the first is not the one that has it.
    os.mkdir("bin")
    for name, text in (("python3", "echo No module named pytest >&2; exit 1"),
                       ("pytest", 'exec /usr/bin/python3 -m pytest "$@"')):
        pathlib.Path("bin", name).write_text("#!/bin/sh\n" + text + "\n")
        os.chmod("bin/" + name, 0o755)
    path = {"PATH": os.path.abspath("bin") + ":/usr/bin:/bin"}
    equal(assay("bench", "-l", "test_old.py", env=path, check=0).stdout, "test_sum\n")
    os.unlink("bin/pytest")
    path = {"PATH": os.path.abspath("bin")}
    contains(assay("bench", "-l", "test_old.py", env=path, check=1).stderr, "No module named pytest")


@test
def catch2_benchmarks_in_tests_of_any_name():
    # What a program of Catch2 prints whose tests have no tag [!benchmark].
    pathlib.Path("program").write_text('''#!/bin/sh
echo '<?xml version="1.0"?><Catch name="program">'
[ "$1" = "[!benchmark]" ] || echo '<TestCase name="all"><BenchmarkResults name="one" samples="10">' \\
    '<mean value="100"/></BenchmarkResults></TestCase>'
echo '</Catch>'
''')
    os.chmod("program", 0o755)
    equal(assay("bench", "-l", "--harness", "catch2", "./program", check=0).stdout, "all: one\n")


LAYOUT = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
static int first(void) { return 1; }
int (*volatile one)(void) = first;
static int second(void) { return 2; }
int (*volatile two)(void) = second;
int main(int argc, char **argv)
{
    FILE *out = fdopen(atoi(getenv("ASSAY_METRICS_FD")), "w");
    uintptr_t stack = (uintptr_t)__builtin_frame_address(0);
    double cost = argc > 1 && *argv[1] == 's' ? 100 + (double)(stack >> 4 & 15)
                  : argc > 1 ? 100 + 10 * ((uintptr_t)one < (uintptr_t)two) : 100;
    fprintf(out, "assay.metric cost %g\n", cost);
    fclose(out);
    return one() + two() - 3;
}
"""


@test
def layouts_of_commands():
    # Figures that follow from addresses alone: no clock has a say.
    program = build(LAYOUT, "where", ["-ffunction-sections"])
    quick = ["ab", "--layouts", "20", "-t", "0.01", "-w", "0", "-e", "none", "--metric", "cost", "--json"]
    result = json.loads(assay(*quick, program + " flat 0", program + " stack", check=0).stdout)
    row = result["layouts"][1]
    equal((result["layouts"][0], row["count"] >= 20, len(result["runs"]) >= 80), (None, True, True))
    for run in result["runs"]:
        equal(run["layout"], run["round"] // 2)
    still = {r["round"] for r in result["runs"] if r["still"]}
    equal(len(still) * 2, result["rounds"])
    own = [c for m in result["metrics"] if m["name"] == "cost" for c in m["commands"]][1]
    equal(own["n"], row["count"], "still rounds take no part in the verdict")
    if any("does not let assay keep addresses" in n["text"] for n in result["notes"]):
        equal(row["share"], None)
    else:
        costs = {c["value"] for r in result["runs"] if r["still"] and r["command"] == 1 for c in r["metrics"]}
        equal(len(costs), 1, "one layout")
        equal((row["share"], row["is_noise"]), (1, False))


@test
def layouts_by_linking():
    if not shutil.which("ld.gold"):
        skip("no gold, which orders sections by a file (Debian 13: binutils-gold)")
    # The order of the functions decides, and only that: two rounds of one layout are one value.
    program = build(LAYOUT, "where", ["-ffunction-sections"])
    quick = ["ab", "--layouts", "20", "-t", "0.01", "-w", "0", "-e", "none", "--metric", "cost", "--json"]
    os.mkdir("linked")
    compiled = subprocess.run([CC, "-O2", "-ffunction-sections", "-c", "where_source.c", "-o", "where.o"])
    equal(compiled.returncode, 0)
    link = "cc -fuse-ld=gold -Wl,--section-ordering-file=$ASSAY_SECTIONS where.o -o $ASSAY_OUT"
    result = json.loads(assay(*quick, "--link", link, "--link", link, program, program + " order",
                              env={"TMPDIR": os.path.abspath("linked")}, check=0).stdout)
    own = [c for m in result["metrics"] if m["name"] == "cost" for c in m["commands"]][1]
    equal((own["n"], sorted(set(own["values"]))), (20, [100, 110]))
    equal((result["layouts"][1]["share"], result["layouts"][1]["is_noise"]), (1, False))
    equal(os.listdir("linked"), [], "left behind")
    text = assay(*quick[:-1], "--link", link, "--link", link, program, program + " order", check=0).stdout
    contains(" ".join(text.split()), "Layout is 100 % of that variation, noise the rest.")


@test
def layouts_of_commands_are_refused():
    for words, message in ((["--layouts", "9"], "must be between 10 and 1000"),
                           (["--link", "true"], "--link goes with --layouts"),
                           (["--layouts", "10", "-r", "5"], "--layouts and --rounds cannot be used together"),
                           (["--layouts", "10", "--duet"], "--layouts and --duet cannot be used together"),
                           (["--layouts", "10", "--link", "true"], "--link is given 1 time for 2 commands")):
        contains(assay("ab", *words, "true", "true 1", check=2).stderr, message)
    two = ["--layouts", "10", "--link", "false", "--link", "false"]
    contains(assay("ab", *two, "true | cat", "true", check=125).stderr, "a shell runs 'true | cat'")
    program = build(LAYOUT, "where2", ["-ffunction-sections"])
    contains(assay("ab", *two, program, program, check=125).stderr, "--link: 'false' exited with 1")


@test
def layouts_are_linked_and_told():
    for name, work in (("old", 100), ("new", 300)):
        build(body(GOOD, ""), name, flags=[f"-DWORK={work}", "-ffunction-sections"])
        subprocess.run([CC, "-O2", f"-I{INCLUDE}", f"-DWORK={work}", "-ffunction-sections", "-c",
                        f"{name}_source.c", "-o", f"{name}.o"], check=True)
    os.mkdir("layouts")
    link = ("sort $ASSAY_SECTIONS > $ASSAY_LAYOUT.sorted; cp $ASSAY_SECTIONS $ASSAY_LAYOUT.order; "
            "test $(wc -l < $ASSAY_SYMBOLS) = $(wc -l < $ASSAY_SECTIONS) && %s -pthread {}.o -o $ASSAY_OUT" % CC)
    if shutil.which("ld.gold"):
        link += " -fuse-ld=gold -Wl,--section-ordering-file=$ASSAY_SECTIONS"
    result = json.loads(assay("bench", "--layouts", "10", "-t", "0.1", "-b", "steady", "--json", "--link",
                              link.format("old"), "--link", link.format("new"), "./old", "./new",
                              env={"TMPDIR": os.path.abspath("layouts")}, check=0).stdout)
    row = result["benchmarks"][0]
    equal((row["rounds"], row["layouts"]["count"]), (10, 10))
    between(row["comparison"]["time"]["estimate"], 1.1, 30, "thrice the work")
    equal(row["layouts"]["low"] <= row["comparison"]["time"]["estimate"] <= row["layouts"]["high"], True, row["layouts"])
    between(row["layouts"]["share"], 0, 1)
    orders = {pathlib.Path(f"{k}.order").read_text() for k in range(1, 11)}
    equal(len(orders), 10, "orders of functions")
    equal(len({pathlib.Path(f"{k}.sorted").read_text() for k in range(1, 11)}), 1, "the same functions")
    equal(os.listdir("layouts"), [], "left behind")
    text = assay("bench", "--layouts", "10", "-t", "0.1", "-b", "steady", "./old", "./new", check=0).stdout
    contains(text, "steady: over 10 layouts new takes +")
    contains(text, "one layout alone says between")
    for words, args in (("must be between 10", ["--layouts", "3"]), ("goes with --layouts", ["--link", "x"]),
                        ("cannot be used together", ["--layouts", "10", "-r", "10"]),
                        ("give --link for each version", ["--layouts", "10", "--link", "x"])):
        contains(assay("bench", *args, "./old", "./new", check=2).stderr, words)
    for words, link in (("exited with 3", "exit 3"), ("did not make $ASSAY_OUT", "true")):
        contains(assay("bench", "--layouts", "10", "--link", link, "./old", check=125).stderr, words)


@test
def old_criterion_is_called_with_whole_seconds():
    """As criterion 0.3: it refuses fractions, and writes into the directory that CRITERION_HOME names."""
    pathlib.Path("old").write_text("""#!/bin/sh
case " $* " in *" 0."*) echo "error: invalid digit found in string"; exit 1;; esac
[ -d "$CRITERION_HOME" ] || exit 2
mkdir -p "$CRITERION_HOME/sum/new"; echo "$CRITERION_HOME" >> homes
echo "sum                     time:   [10.100 ns 10.200 ns 10.300 ns]"
""")
    os.chmod("old", 0o755)
    equal(assay("bench", "-l", "--harness", "criterion", "./old", check=0).stdout, "sum\n")
    report = json.loads(assay("bench", "-r", "8", "--json", "--harness", "criterion", "./old", check=0).stdout)
    equal(report["benchmarks"][0]["versions"][0]["metrics"]["time"]["median"], 10.2)
    for home in pathlib.Path("homes").read_text().split():
        equal(os.path.exists(home), False, "what criterion wrote is removed")


@test
def both_versions_in_one_process():
    old, new = build(GOOD, "old.so", flags=["-DWORK=300"]), build(GOOD, "new.so", flags=["-DWORK=900"])
    report = json.loads(assay("bench", "--one-process", "-r", "8", "-t", "0.1", "--json", "-b", "steady", old, new,
                              check=0).stdout)
    between(report["benchmarks"][0]["comparison"]["time"]["estimate"], 1.8, 4.5, "thrice the work")
    equal("one-process" in [note["id"] for note in report["notes"]], True)
    broken = build(GOOD.replace("ASSAY_CHECK(x != 0)", "if (x) __builtin_trap()"), "broken.so", flags=["-DWORK=300"])
    result = assay("bench", "--one-process", *QUICK, "-b", "steady", old, broken, check=1)
    contains(result.stderr, "steady of ./broken.so: crashed: ")
    program = build(GOOD + "ASSAY_MAIN\n", "program", flags=["-DWORK=300"])
    contains(assay("bench", "--one-process", program, program, check=2).stderr, "build them with -shared -fPIC")
    contains(assay("bench", "--one-process", old, check=2).stderr, "goes with two versions")


@test
def other_programs_that_fail():
    pathlib.Path("bad").write_text("#!/bin/sh\necho oh no >&2\nexit 3\n")
    os.chmod("bad", 0o755)
    result = assay("bench", "--harness", "google-benchmark", "./bad", check=1)
    contains(result.stderr, "./bad failed with exit code 3: oh no")
    pathlib.Path("bad").write_text("#!/bin/sh\necho hello\n")
    contains(assay("bench", "--harness", "go", "./bad", check=1).stderr, "run as a program of go test -bench")
    for option in ["--sim"], ["--allocations"], ["--layouts", "10"], ["--iterations", "5"]:
        contains(assay("bench", "--harness", "go", *option, "./bad", check=2).stderr,
                 f"{option[0]} is for programs with assay.h; these are built with go test -bench")
    contains(assay("bench", "./bad", "./missing", check=127).stderr, "missing: No such file")
    contains(assay("bench", "--harness", "nothing", "./bad", check=2).stderr, "not one of auto, assay, google-benchmark")


@test
def a_benchmark_is_explained():
    old = build(GOOD, "old.so", flags=["-DWORK=100", "-g"])
    new = build(GOOD, "new.so", flags=["-DWORK=300", "-g"])
    result = assay("explain", "--bench", "steady", "--no-sim", "-r", "8", "--profiles", "1", old, new, check=0)
    contains(result.stdout, "slower")
    contains(result.stdout, "wall time per iteration: ")
    contains(assay("explain", "--bench", "s*", old, new, check=1).stderr, "7 benchmarks of ./old.so fit, but one is needed")


def git(*args):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *args], check=True,
                   capture_output=True)


# One of two functions has three times the work after a commit; the file is beside the program.
PLANTED = r"""
#include "level.h"
__attribute__((noinline)) static uint64_t steady_part(uint64_t x) { return work(x, 300); }
__attribute__((noinline)) static uint64_t planted_part(uint64_t x)
{
    for (int i = 0; i < LEVEL; i++)
        ASSAY_KEEP(x = x * 31 + 7);
    return x;
}
ASSAY_BENCH(parse, ASSAY_LIST(n, 1, 2))
{
    FILE *input = fopen("input.txt", "r");
    uint64_t x = 1;
    ASSAY_CHECK(input != NULL);
    ASSAY_LOOP
    {
        for (int64_t i = 0; i < n; i++)
            x = steady_part(x) + planted_part(x);
    }
    fclose(input);
}
"""


@test
def a_benchmark_is_bisected_and_explained():
    git("init", "-q", ".")
    os.mkdir("sub")
    pathlib.Path("sub/bench.c").write_text(body(GOOD + PLANTED, "").replace("WORK", "10"))
    pathlib.Path("sub/input.txt").write_text("x\n")
    for number, level in enumerate((100, 600)):
        pathlib.Path("sub/level.h").write_text(f"#define LEVEL {level}\n#define NUMBER {number}\n")
        git("add", "sub/bench.c", "sub/input.txt", "sub/level.h")
        git("commit", "-qm", f"number {number}")
    os.chdir("sub")
    build_it = f"{CC} -g -O2 -I{INCLUDE} bench.c -o prog"
    search = ["bisect", "--good", "HEAD~1", "--min-rounds", "8", "--error", "20%", "--build", build_it, "--run", "./prog", "--bench"]
    result = assay(*search, "parse", check=125, timeout=600)
    contains(result.stderr, "--bench parse: not the name of one benchmark of ./prog; 'assay bench --list' shows them")
    assay("bisect", "--abort", check=0)
    result = assay(*search, "parse n=2", "--json=r.json", check=0, timeout=600)
    contains(result.stdout, "parse:n:2")
    contains(result.stdout, "(number 1)")
    found = json.loads(pathlib.Path("r.json").read_text())
    equal(found["benchmark"], "parse n=2")
    reasons = result.stdout.split("what accounts for it:")[1].split("to measure it again:")[0]
    contains(reasons.split("\n")[2], "planted_part +")
    contains(reasons.split("\n")[2], "/iteration")
    contains(result.stdout, f"--build '{build_it}' --bench 'parse n=2' --run ./prog\n")
    contains(result.stdout, "\n  run: ./prog\n  benchmark: parse n=2\n")
    # What was found is in the journal, too.
    again = assay("bisect", "--continue", check=0).stdout
    equal(again.split("environment:")[0], result.stdout.split("environment:")[0])


@test
def a_benchmark_is_gated():
    git("init", "-q", ".")
    pathlib.Path("bench.c").write_text(body(GOOD, ""))
    pathlib.Path("make.sh").write_text(f"{CC} -O2 -I{INCLUDE} -DWORK=100 bench.c -o prog\n")
    git("add", "bench.c", "make.sh")
    git("commit", "-qm", "base")
    pathlib.Path("make.sh").write_text(f"{CC} -O2 -I{INCLUDE} -DWORK=300 bench.c -o prog\n")
    result = assay("gate", "--base", "HEAD", "--build", "sh make.sh", "-r", "8", "--bench", "steady", "./prog", check=1)
    contains(result.stdout, "| steady |")
    contains(result.stdout, "regression")


def example(name, *commands):
    shutil.copytree(ROOT / "examples" / name, name)
    os.chdir(name)
    for command in commands:
        result = subprocess.run(command, shell=True, text=True, capture_output=True,
                                env=dict(os.environ, CGO_CFLAGS=f"-I{INCLUDE}", GOFLAGS="-mod=mod", GOPROXY="off",
                                         HOME=os.environ.get("HOME", "."), GOCACHE=os.path.abspath("../gocache")))
        if result.returncode:
            raise AssertionError(f"{command}:\n{result.stdout}\n{result.stderr}")


@test
def example_in_c():
    example("bench-c", f"{CC} -O2 -Wall -Wextra -Werror -I{INCLUDE} bench.c -o bench")
    contains(assay("bench", *QUICK, "./bench", check=0).stdout, "table n=4096")


@test
def example_in_cpp():
    if not shutil.which("g++"):
        skip("g++ is not installed")
    example("bench-cpp", f"g++ -O2 -std=c++17 -Wall -Wextra -Werror -I{INCLUDE} bench.cpp -o bench")
    contains(assay("bench", *QUICK, "./bench", check=0).stdout, "find_in_unordered_map")


@test
def example_in_rust():
    if not os.path.exists("/usr/bin/rustc"):
        skip("rustc is not installed")
    example("bench-rust", "/usr/bin/rustc -O --crate-type cdylib bench.rs -o bench.so")
    result = assay("bench", *QUICK, "--json", "bench.so", check=0)
    equal([b["label"] for b in json.loads(result.stdout)["benchmarks"]],
          ["sum_of_squares n=100", "sum_of_squares n=10000", "push_a_string"])


@test
def example_in_go():
    if not shutil.which("go"):
        skip("go is not installed")
    example("bench-go", "go build -buildmode=c-shared -o bench.so .")
    contains(assay("bench", *QUICK, "bench.so", check=0).stdout, "split_fields words=1000")


@test
def example_in_python():
    example("bench-python", f"{CC} -O2 -shared -fPIC -I{INCLUDE} shim.c -o shim.so")
    contains(assay("bench", *QUICK, "./bench.py", check=0).stdout, "loads")



main()
