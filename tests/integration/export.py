# SPDX-License-Identifier: MIT
"""`assay export`: every format is read by a program that people use for it."""
import collections
import contextlib
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

from harness import *
from recordings import *

FP = ("-g",)
FLAMEGRAPH = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"
PACKAGES = {"speedscope": "1.25.0", "@firefox-devtools/profiler-cli": "0.10.0"}


def export(path, kind, *arguments):
    output = f"out.{kind}"
    assay("export", path, "--to", kind, "-o", output, *arguments, check=0)
    return output


def profile():
    return family("shares", 400, *FP)


def event(path):
    return json.loads(assay("report", path, "--json", check=0).stdout)["events"][0]


def total_weight(path):
    return event(path)["weight"]


def npm_package(name):
    """The folder of an npm package, fetched once into a cache folder."""
    if SANITIZED:
        skip("done with the plain build; npm's programs are not ours to sanitize")
    if not shutil.which("npm") or not shutil.which("node"):
        skip("npm is not installed")
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or
                         pathlib.Path.home() / ".cache") / "assay" / "test-npm"
    folder = cache / "node_modules" / name
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        result = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--fetch-retries=0",
                                 "--prefix", cache,
                                 f"{name}@{PACKAGES[name]}"],
                                text=True, capture_output=True, timeout=480)
        if result.returncode or not folder.exists():
            skip(f"npm cannot fetch {name} here: {result.stderr.strip()[-200:]}")
    return folder


def folded_weights(path):
    weights = collections.Counter()
    for line in open(path):
        stack, _, weight = line.rpartition(" ")
        weights[stack] += int(weight)
    return weights


@test
def chains_of_a_stripped_program_are_not_called_cut():
    """Its entry has no name, but what the entry calls has."""
    shutil.copy(need_target("family"), "bare")
    subprocess.run(["strip", "bare"], check=True)
    result = assay("record", "-q", "-g", "dwarf", "--portable", "-o", "bare.data", "./bare",
                   "shares", "300")
    if result.returncode:
        skip("assay record cannot sample here: " + result.stderr)
    chains = json.loads(assay("report", "bare.data", "--json", check=0).stdout)["chains"]
    between(chains["ending_early"], 0, 0.05 * chains["samples"], "chains without a beginning")


@test
def a_portable_recording_opens_the_same_without_its_binaries():
    if not shutil.which("gcc"):
        skip("gcc is not installed")
    with open("gone.c", "w") as file:
        file.write("static volatile unsigned long sink;\n"
                   "static inline __attribute__((always_inline)) void add(unsigned long i) "
                   "{ sink += i; }\n"
                   "__attribute__((noinline)) void turn(long n) "
                   "{ for (long i = 0; i < n; i++) add((unsigned long)i); }\n"
                   "int main(void) { for (int i = 0; i < 100; i++) { turn(1000000); sink++; } "
                   "return 0; }\n")
    subprocess.run(["gcc", "-O2", "-g", "gone.c", "-o", "gone"], check=True)
    assay("record", "-q", "-g", "dwarf", "-o", "own.data", "./gone", check=0)
    assay("record", "-q", "-g", "dwarf", "--portable", "-o", "portable.data", "./gone", check=0)
    assay("export", "--to", "portable", "-o", "exported.data", "own.data", check=0)

    def views(path, **environment):
        return [[line for line in assay("report", path, "--stdio", *options, check=0,
                                        env=dict(os.environ, **environment)).stdout.splitlines()
                 if not line.startswith("#")]
                for options in ((), ("-s", "srcline,symbol", "-g", "none"), ("--children",))]

    own, portable = views("own.data"), views("portable.data")
    equal(views("exported.data"), own, "the exported recording")
    os.unlink("gone")
    os.unlink("gone.c")
    away = {"ASSAY_NO_CACHE": "1", "HOME": "/nowhere", "XDG_CACHE_HOME": "/nowhere"}
    equal(views("exported.data", **away), own, "the exported recording without the program")
    equal(views("portable.data", **away), portable, "the portable recording without the program")
    contains("\n".join(portable[0]), "turn")
    contains("\n".join(portable[1]), "gone.c:")
    if shutil.which("perf"):
        theirs = subprocess.run(["perf", "script", "-i", "exported.data"], text=True,
                                capture_output=True)
        equal(theirs.returncode, 0, theirs.stderr)
        contains(theirs.stdout, "libc.so.6")
    result = assay("export", "--to", "portable", "own.data", check=2)
    contains(result.stderr, "add -o FILE")
    result = assay("export", "--to", "portable", "-o", "x.data", "--pid", "1", "own.data", check=2)
    contains(result.stderr, "leave the filters out")


@test
def perf_script_has_the_fields_of_tracepoints():
    if os.geteuid():
        skip("a tracepoint needs root")
    assay("record", "-q", "-e", "sched:sched_process_exec", "-o", "tp.data", "--", "sh", "-c",
          "ls >/dev/null; ls >/dev/null", check=0)
    text = assay("export", "--to", "perf-script", "tp.data", check=0).stdout
    equal(len(re.findall(r"sched:sched_process_exec: filename=\S+ pid=\d+ old_pid=\d+\n", text)), 3,
          text)
    if shutil.which("perf"):
        theirs = subprocess.run(["perf", "script", "-i", "tp.data"], text=True, capture_output=True)
        equal([line.split(": ", 1)[1] for line in text.splitlines()],
              [line.split(": ", 1)[1] for line in theirs.stdout.splitlines()], "fields beside perf's")


@test
def folded_stacks_have_the_whole_weight():
    weights = folded_weights(export(profile(), "folded", "--no-inline"))
    equal(sum(weights.values()), total_weight(profile()))
    six = sum(weight for stack, weight in weights.items()
              if stack.endswith(";main;shares;outer;six"))
    between(six / sum(weights.values()), 0.4, 0.7, "share of six")
    if not all(stack.startswith("family;") or stack.split(";")[0] in ("perf-exec", "perf")
               for stack in weights):
        raise AssertionError(f"stacks must begin with the command: {list(weights)[:3]}")


@test
def what_was_exported_is_read_again():
    def rows(path):
        return {row["symbol"]: row["samples"] for row in json.loads(assay("report", path, "--json", check=0).stdout)["rows"]
                if not row["symbol"].startswith("0x")}
    for kind in ("pprof", "folded"):
        path = export(profile(), kind)
        again = event(path)
        equal(again["weight"], total_weight(profile()), kind)
        if kind == "pprof":
            equal(rows(path), rows(profile()))


@test
def folded_counts_samples_when_told():
    weights = folded_weights(export(profile(), "folded", "--samples"))
    equal(sum(weights.values()), event(profile())["samples"])


@test
def flamegraph_draws_it():
    if not os.path.exists(FLAMEGRAPH):
        skip("flamegraph.pl is not installed (Debian: libdevel-nytprof-perl)")
    path = export(profile(), "folded", "--no-inline")
    result = subprocess.run(["perl", FLAMEGRAPH, path], text=True, capture_output=True)
    equal(result.returncode, 0, result.stderr)
    contains(result.stdout, "</svg>")
    shown = re.search(r"<title>all \(([\d,]+) samples, 100%\)", result.stdout)
    equal(int(shown[1].replace(",", "")), total_weight(profile()))
    contains(result.stdout, "<title>six (")


@test
def folded_names_cannot_break_the_format():
    for line in open(export(profile(), "folded")):
        if not re.fullmatch(r"[^;]+(;[^;]+)* \d+\n", line):
            raise AssertionError(repr(line))


@test
def speedscope_fits_its_schema():
    try:
        import jsonschema
    except ImportError:
        skip("python3-jsonschema is not installed")
    package = npm_package("speedscope")
    schema = json.load(open(package / "dist/release/file-format-schema.json"))
    for arguments in ([], ["--merge"]):
        data = json.load(open(export(profile(), "speedscope", *arguments)))
        jsonschema.validate(data, schema)


@test
def speedscope_has_the_whole_weight():
    for path in (profile(), family("threads", 400, *FP)):
        for arguments in ([], ["--merge"]):
            data = json.load(open(export(path, "speedscope", *arguments)))
            equal(data["$schema"], "https://www.speedscope.app/file-format-schema.json")
            weight = 0
            for part in data["profiles"]:
                equal(len(part["samples"]), len(part["weights"]))
                equal(sum(part["weights"]), part["endValue"])
                equal(part["unit"], "nanoseconds")
                weight += part["endValue"]
                for stack in part["samples"]:
                    if not all(0 <= frame < len(data["shared"]["frames"]) for frame in stack):
                        raise AssertionError(f"{stack} points outside the frames")
            equal(weight, total_weight(path))
    names = {part["name"].split(" ")[0]
             for part in json.load(open(export(path, "speedscope")))["profiles"]}
    if not {"busy", "medium", "lazy"} <= names:
        raise AssertionError(f"threads: {names}")


def pprof(*arguments):
    if not shutil.which("go"):
        skip("go is not installed (Debian: golang-go)")
    result = subprocess.run(["go", "tool", "pprof", *arguments], text=True, capture_output=True,
                            env=dict(os.environ, HOME=os.getcwd(), PPROF_TMPDIR=os.getcwd()))
    equal(result.returncode, 0, result.stderr)
    return result.stdout


@test
def pprof_shows_the_same_shares():
    path = export(profile(), "pprof", "--no-inline")
    equal(open(path, "rb").read(2), b"\x1f\x8b", "gzip's mark")
    text = pprof("-top", "-unit=ns", path)
    total = re.search(r"of ([\d.]+)ns total", text)
    equal(round(float(total[1])), total_weight(profile()))
    shares = dict((match[2], float(match[1])) for match in
                  re.finditer(r"^\s*\S+\s+([\d.]+)%\s+\S+\s+\S+\s+\S+\s+(\S+)$", text, re.MULTILINE))
    ours = json.loads(assay("report", profile(), "--json", "--no-inline", check=0).stdout)
    for row in ours["rows"][:3]:
        between(shares[row["symbol"]], 100 * row["share"] - 0.1, 100 * row["share"] + 0.1,
                row["symbol"])


@test
def pprof_has_types_mappings_and_inlined_functions():
    path = record("-e", "cpu-clock", "-e", "page-faults", *FP,
                  command=(need_target("family"), "shares", "300"))
    text = pprof("-raw", export(path, "pprof"))
    contains(text, "samples/count")
    contains(text, "/nanoseconds")
    contains(text, "page-faults")
    mappings = text[text.index("Mappings"):].splitlines()
    contains(mappings[1], "/family")
    inlines = record("--call-graph", "dwarf", command=(need_target("inlines"), "1000"),
                     frequency=1500)
    text = pprof("-raw", export(inlines, "pprof"))
    contains(text, "inlines.cc:")
    values = [int(line.split()[1].rstrip(":")) for line in text.splitlines()
              if re.match(r"\s+\d+\s+\d+: ", line)]
    equal(sum(values), total_weight(inlines))


@test
def pprof_names_the_files_of_assembler():
    """Functions in assembler are declared nowhere; their lines say where they stand."""
    if shutil.which("gcc") is None:
        skip("gcc is not installed")
    pathlib.Path("spin.s").write_text(".globl spin\n.type spin, @function\nspin:\n"
                                      "1: dec %rdi\n jnz 1b\n ret\n.size spin, .-spin\n"
                                      '.section .note.GNU-stack,"",@progbits\n')
    pathlib.Path("main.c").write_text("void spin(long);\nint main(void) { spin(300000000); }\n")
    if os.uname().machine != "x86_64":
        skip("the assembler is x86_64's")
    subprocess.run(["gcc", "-g", "-o", "assembled", "main.c", "spin.s"], check=True)
    text = pprof("-raw", export(record(command=(os.path.abspath("assembled"),)), "pprof"))
    if not re.search(r"spin \S*spin\.s:[45]", text):
        raise AssertionError(f"no file for spin:\n{text[-2000:]}")


def profiler_cli(*arguments, check=True):
    package = npm_package("@firefox-devtools/profiler-cli")
    for _ in range(20):
        result = subprocess.run(["node", package / "dist/profiler-cli.js", *arguments], text=True,
                                capture_output=True, timeout=400,
                                env=dict(os.environ, HOME=os.getcwd(), XDG_CONFIG_HOME=os.getcwd(),
                                         PROFILER_CLI_HOME=os.getcwd()))
        # It gives its own daemon half a second to start, which a busy machine does not keep.
        late = re.search(r"did not become ready.*pid (\d+)", result.stdout + result.stderr, re.DOTALL)
        if not late:
            break
        time.sleep(1)
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(late[1]), signal.SIGKILL)
    if result.returncode and "engine" in result.stderr.lower():
        skip(f"this node cannot run profiler-cli: {result.stderr.strip()[-200:]}")
    if check:
        equal(result.returncode, 0, f"{arguments}: {result.stdout}{result.stderr}")
    return result


def profiler_cli_load(path):
    """Loads a profile; its daemon gives up after 500 ms, which a busy machine may need."""
    for attempt in range(10):
        session = f"assay-{os.getpid()}-{attempt}"
        result = profiler_cli("load", path, "--session", session, check=False)
        if result.returncode == 0:
            return session
        late = re.search(r"still be running as pid (\d+)", result.stdout + result.stderr)
        if not late:
            raise AssertionError(result.stdout + result.stderr)
        try:
            os.kill(int(late[1]), signal.SIGKILL)
        except ProcessLookupError:
            pass
    skip("profiler-cli's daemon does not start within its 500 ms on this machine")


@test
def firefox_profiler_shows_the_same_shares():
    path = export(profile(), "firefox", "--no-inline")
    session = profiler_cli_load(path)
    try:
        contains(profiler_cli("profile", "info", "--session", session).stdout, "family")
        text = profiler_cli("thread", "samples", "--include-idle", "--session", session).stdout
    finally:
        profiler_cli("stop", session)
    ours = json.loads(assay("report", profile(), "--json", "--children", "--no-inline",
                            "-g", "none", check=0).stdout)
    share = next(row["children_share"] for row in ours["rows"] if row["symbol"] == "outer")
    shown = re.search(r"!outer - total: \S+ \(([\d.]+)%\)", text)
    if not shown:
        raise AssertionError(text)
    # The command also ran under other names, as threads of their own.
    between(float(shown[1]), 100 * share - 1, 100 * share + 1, "outer")


@test
def firefox_has_the_whole_weight():
    for path in (profile(), family("threads", 400, *FP)):
        data = json.load(open(export(path, "firefox")))
        weight = sum(sum(thread["samples"]["weight"]) for thread in data["threads"])
        equal(round(weight * 1e6), total_weight(path))
        shared = data["shared"]
        for name in ("stackTable", "frameTable", "funcTable", "resourceTable"):
            for column, values in shared[name].items():
                if column != "length":
                    equal(len(values), shared[name]["length"], f"{name}.{column}")
        for thread in data["threads"]:
            times = thread["samples"]["time"]
            if times != sorted(times):
                raise AssertionError("samples are not in the order of time")


@test
def perf_script_text_is_perfs():
    path = profile()
    ours = open(export(path, "perf-script", "--no-inline", "--no-demangle")).read()
    theirs = subprocess.run(["perf", "script", "-i", path, "--no-inline", "--no-demangle"],
                            text=True, capture_output=True).stdout

    def samples(text):
        result = []
        for block in filter(None, text.split("\n\n")):
            lines = block.splitlines()
            head = re.match(r"(.*\S)\s+(\d+)\s+(?:\[(\d+)\] )?\s*(\d+\.\d+):\s+(\d+) (\S+):", lines[0])
            result.append((head[1], head[2], head[4], head[5],
                           [line.split()[1].split("+")[0] for line in lines[1:]]))
        return sorted(result)

    mine, perfs = samples(ours), samples(theirs)
    equal(len(mine), len(perfs), "samples")
    equal([entry[:4] for entry in mine], [entry[:4] for entry in perfs])
    same = sum(a[4] == b[4] for a, b in zip(mine, perfs))
    # perf looks a return address up as it is, one byte behind the call; a few functions differ.
    between(same / len(mine), 0.97, 1, "samples with perf's very stack")
    equal(sum(int(entry[3]) for entry in mine), total_weight(path))


@test
def one_event_is_taken_where_the_format_holds_one():
    path = record("-e", "cpu-clock", "-e", "page-faults", *FP,
                  command=(need_target("family"), "shares", "300"))
    result = assay("export", path, "--to", "folded", check=0)
    contains(result.stderr, "holds one event")
    quiet = assay("export", path, "--to", "folded", "-e", "page-faults*", check=0)
    equal(quiet.stderr, "")
    if quiet.stdout == result.stdout:
        raise AssertionError("--event changed nothing")


@test
def nothing_is_left_of_a_failed_export():
    contains(assay("export", "/nowhere.data", "--to", "folded", "-o", "x", check=1).stderr, "nowhere")
    equal(os.path.exists("x"), False)
    contains(assay("export", check=2).stderr, "--to")
    contains(assay("export", "--to", "svg", check=2).stderr, "unknown format 'svg'")
    with open("/dev/full", "w") as full:
        result = subprocess.run([ASSAY, "export", profile(), "--to", "folded"], stdout=full,
                                stderr=subprocess.PIPE, text=True)
    equal(result.returncode, 1, result.stderr)


main()
