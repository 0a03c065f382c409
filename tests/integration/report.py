# SPDX-License-Identifier: MIT
"""`assay report` on files recorded by the installed perf, beside perf's own report of them."""
import collections
import csv
import io
import json
import os
import re
import shutil
import subprocess

from harness import *
from recordings import *
from terminal import Terminal

FP = ("-g",)


def perf_shares(path, *arguments):
    """(comm, dso, symbol) -> percent, as perf reports it without inlined functions."""
    result = subprocess.run(["perf", "report", "-i", path, "--stdio", "--no-inline",
                             "--no-children", "-g", "none", "-F", "overhead,comm,dso,symbol",
                             "-t", "\x01", "-w", "0,0,0,0", *arguments],
                            text=True, capture_output=True, errors="replace")
    shares = collections.Counter()
    for line in result.stdout.splitlines():
        fields = [field.strip() for field in line.split("\x01")]
        if line.startswith("#") or len(fields) != 4:
            continue
        name = re.sub(r"^\[.\] ", "", fields[3])
        if re.fullmatch(r"0x[0-9a-f]+", name):
            name = hex(int(name, 16))
        shares[fields[1], fields[2], name] += float(fields[0].rstrip("%"))
    if not shares:
        raise AssertionError("perf report gave nothing:\n" + result.stdout + result.stderr)
    return shares


def rows(path, *arguments):
    output = assay("report", path, "--csv", *arguments, check=0).stdout
    return list(csv.DictReader(io.StringIO(output)))


def assay_shares(path, *arguments):
    shares = collections.Counter()
    for row in rows(path, "--no-inline", "-g", "none", *arguments):
        shares[row["comm"], row["dso"], row["symbol"]] += float(row["overhead_percent"])
    return shares


def without_parameters(name):
    """std::sort<int*> of void std::sort<int*>(int*, int*), as newer versions of perf show it."""
    whole = re.sub(r" const$", "", name)
    if not whole.endswith(")") or name.startswith("operator"):
        return name
    depth = 0
    for at in range(len(whole) - 1, 0, -1):
        depth += (whole[at] in ")>") - (whole[at] in "(<")
        if depth == 0:
            break
    head, depth = whole[:at], 0
    for start in range(len(head) - 1, -1, -1):
        depth += (head[start] in ")>") - (head[start] in "(<")
        if head[start] == " " and depth == 0:
            return head[start + 1:]
    return head


def bare(shares):
    """perf leaves the marks of compiler variants out of demangled names."""
    result = collections.Counter()
    for (comm, dso, symbol), share in shares.items():
        symbol = re.sub(r"( \[clone [^]]*\]| \.[a-z]\S*)+$", "", symbol)
        result[comm, dso, without_parameters(symbol)] += share
    return result


def kernel_aliases():
    """The names that the kernel gives to one address (memcpy, __pi_memcpy), each with the first of
    them: which of them is shown is a matter of taste."""
    by_address = collections.defaultdict(list)
    for line in open("/proc/kallsyms"):
        address, _, name = line.split()[:3]
        by_address[address].append(name)
    return {name: sorted(names)[0] for address, names in by_address.items()
            if len(names) > 1 and int(address, 16) for name in names}


def one_name(shares, aliases):
    """Of code without names perf shows single addresses, assay functions: both count as one."""
    result = collections.Counter()
    for (comm, dso, symbol), share in shares.items():
        if re.fullmatch(r"0x[0-9a-f]+|.*\+0x[0-9a-f]+", symbol):
            symbol = "(no name)"
        result[comm, dso, aliases.get(symbol, symbol) if dso.startswith("[") else symbol] += share
    return result


def what_perf_names(expected, actual):
    """perf 6.12 finds no names for processes that were copied by fork, in a chroot: names that only assay has in
    such a file count as what perf has no name for."""
    lost = {key[:2] for key in expected if key[2] == "(no name)"}
    folded = collections.Counter()
    for (comm, dso, symbol), share in actual.items():
        unknown = (comm, dso) in lost and (comm, dso, symbol) not in expected
        folded[comm, dso, "(no name)" if unknown else symbol] += share
    return expected, folded


def same_as_perf(path, *arguments, commands=None):
    expected, actual = perf_shares(path, *arguments), assay_shares(path, *arguments)
    if commands:
        expected, actual = ({key: share for key, share in shares.items() if key[0] in commands}
                            for shares in (expected, actual))
        expected, actual = collections.Counter(expected), collections.Counter(actual)
    if "--no-demangle" not in arguments:
        expected, actual = bare(expected), bare(actual)
    aliases = kernel_aliases()
    expected, actual = one_name(expected, aliases), one_name(actual, aliases)
    expected, actual = what_perf_names(expected, actual)
    wrong = [(key, expected[key], actual[key]) for key in set(expected) | set(actual)
             if max(expected[key], actual[key]) > 0.5 and abs(expected[key] - actual[key]) > 0.1]
    if wrong:
        raise AssertionError(f"{len(wrong)} of {len(expected)} differ, perf's share first: "
                             f"{sorted(wrong, key=lambda entry: -entry[1])[:10]}")


def head_number(text, what):
    return int(re.search(rf"{re.escape(what)}: (\d+)", text)[1])


@test
def same_answer_as_perf_for_c():
    same_as_perf(family("shares", 400, *FP), "--no-demangle")


@test
def same_answer_as_perf_without_call_chains():
    same_as_perf(family("shares"), "--no-demangle")


@test
def same_answer_as_perf_for_cpp():
    path = record(*FP, command=(need_target("inlines-fp"), "1500"))
    same_as_perf(path, "--no-demangle")
    same_as_perf(path)


@test
def same_answer_as_perf_for_cpp_with_dwarf():
    path = record("--call-graph", "dwarf", command=(need_target("inlines"), "1000"), frequency=1500)
    same_as_perf(path, "--no-demangle")


@test
def same_answer_as_perf_for_rust():
    same_as_perf(record(*FP, command=(need_target("oxide"), "1500")), "--no-demangle")


@test
def same_answer_as_perf_for_threads():
    same_as_perf(family("threads", 400, *FP), "--no-demangle")


@test
def same_answer_as_perf_for_fork_and_exec():
    same_as_perf(family("forks", 400, *FP), "--no-demangle")


@test
def same_answer_as_perf_for_processes_that_die():
    same_as_perf(family("mayfly", 300, *FP), "--no-demangle")


@test
def same_answer_as_perf_for_libraries_loaded_at_run_time():
    need_target("loads")
    plugin = next((path for path in TARGETS.glob("libplugin.so*") if path.is_file()), None)
    if not plugin:
        skip("tests/targets/plugin was not built")
    path = record(*FP, command=(target("loads"), str(plugin), "100000"))
    same_as_perf(path, "--no-demangle")
    contains(assay("report", path, "-g", "none", check=0).stdout, "plugin_inner")


@test
def same_answer_as_perf_for_everything_that_runs():
    path = record("-a", *FP, command=(need_target("family"), "forks", "500"), frequency=999)
    # Other programs may have replaced their files by now: assay finds some that perf does not.
    same_as_perf(path, "--no-demangle", commands={"family", "exe"})


@test
def same_answer_as_perf_from_a_pipe():
    need_perf()
    path = folder() / "pipe.data"
    with open(path, "wb") as file:
        subprocess.run(["perf", "record", "-q", "-F", "4000", "-g", "-o", "-", "--",
                        need_target("family"), "shares", "200"], stdout=file,
                       stderr=subprocess.DEVNULL)
    expected = perf_shares(str(path), "--no-demangle")
    with open(path, "rb") as file:
        output = assay("report", "-", "--csv", "--no-inline", "--no-demangle", "-g", "none",
                       stdin=file, check=0).stdout
    for row in csv.DictReader(io.StringIO(output)):
        share = float(row["overhead_percent"])
        if share > 0.5:
            between(share, expected[row["comm"], row["dso"], row["symbol"]] - 0.1,
                    expected[row["comm"], row["dso"], row["symbol"]] + 0.1, row["symbol"])


@test
def the_head_says_samples_event_and_count():
    path = family("shares", 400, *FP)
    text = assay("report", path, check=0).stdout
    theirs = subprocess.run(["perf", "report", "-i", path, "--stdio"], text=True,
                            capture_output=True).stdout
    equal(head_number(text, "# Event count (approx.)"), head_number(theirs, "# Event count (approx.)"))
    contains(text, "# Total Lost Samples: 0")
    contains(text, re.search(r"of event '([^']*)'", theirs)[0])
    contains(text, "# Overhead  Command  Shared Object")
    contains(text, "[.] six")


@test
def shares_are_those_the_program_spent():
    shares = {row["symbol"]: float(row["overhead_percent"])
              for row in rows(family("shares", 400, *FP), "--no-inline", "-g", "none")}
    between(shares["six"], 45, 70, "six")
    between(shares["three"], 20, 40, "three")
    between(shares["one"], 4, 18, "one")


@test
def call_trees_from_the_callee():
    text = assay("report", family("shares", 400, *FP), "--no-inline", check=0).stdout
    tree = text[text.index("[.] six"):]
    tree = tree[:tree.index("\n\n")]
    order = [re.search(r"(?:--)?(\w+)$", line)[1] for line in tree.splitlines()[1:]
             if re.search(r"\w$", line)]
    equal(order[:4], ["six", "outer", "shares", "main"])


@test
def call_trees_from_the_caller():
    text = assay("report", family("shares", 400, *FP), "--no-inline", "-g", "caller", check=0).stdout
    tree = text[text.index("[.] six"):]
    tree = tree[:tree.index("\n\n")]
    names = re.findall(r"(\w+)$", tree, re.MULTILINE)
    names = [name for name in names if name in ("six", "outer", "shares", "main")][1:]
    equal(names[:4], ["main", "shares", "outer", "six"])


@test
def trees_look_as_perf_draws_them():
    path = family("shares", 400, *FP)
    ours = assay("report", path, "--no-inline", "--comm", "family", check=0).stdout
    theirs = subprocess.run(["perf", "report", "-i", path, "--stdio", "--no-children",
                             "--no-inline", "--comms", "family"],
                            text=True, capture_output=True).stdout
    block = lambda text: [line.rstrip() for line in
                          text[text.index("[.] six"):].split("\n\n")[0].splitlines()]
    equal(block(ours), block(theirs))


@test
def children_count_recursion_once():
    path = family("deep", 300, *FP)
    table = {row["symbol"]: row for row in rows(path, "--children", "--no-inline")}
    between(float(table["deep"]["children_percent"]), 80, 100, "deep")
    between(float(table["deep"]["self_percent"]), 0, 10, "deep itself")
    equal(round(sum(float(row["self_percent"]) for row in table.values())), 100)
    text = assay("report", path, "--children", "-g", "none", check=0).stdout
    contains(text, "# Children      Self  Command")


@test
def children_are_perfs():
    path = family("shares", 400, *FP)
    theirs = subprocess.run(["perf", "report", "-i", path, "--stdio", "--children", "--no-inline",
                             "-g", "none", "-t", "\x01", "-w", "0,0,0,0,0"], text=True,
                            capture_output=True).stdout
    expected = {}
    for line in theirs.splitlines():
        fields = [field.strip() for field in line.split("\x01")]
        if len(fields) == 5 and not line.startswith("#"):
            expected[re.sub(r"^\[.\] ", "", fields[4])] = float(fields[0].rstrip("%"))
    actual = {row["symbol"]: float(row["children_percent"])
              for row in rows(path, "--children", "--no-inline")}
    for name in ("main", "outer", "shares", "six", "three", "one"):
        between(actual[name], expected[name] - 0.1, expected[name] + 0.1, name)


@test
def every_sort_key_adds_up():
    path = family("threads", 400, *FP)
    for keys in ("comm", "pid", "tid", "dso", "symbol", "srcline", "cpu", "event",
                 "event,comm,tid,dso,symbol,srcline,cpu,pid"):
        table = rows(path, "--sort", keys, "-g", "none")
        between(sum(float(row["overhead_percent"]) for row in table), 99.9, 100.1, keys)
    names = {row["comm"] for row in rows(path, "--sort", "comm", "-g", "none")}
    for name in ("busy", "medium", "lazy"):
        if name not in names:
            raise AssertionError(f"{name} is not among {names}")
    lines = [row["srcline"] for row in rows(path, "--sort", "srcline", "-g", "none")]
    contains(lines[0], "family.c:")


@test
def filters_by_comm_dso_symbol():
    path = family("threads", 400, *FP)
    equal({row["comm"] for row in rows(path, "--comm", "busy,l*")}, {"busy", "lazy"})
    equal({row["dso"] for row in rows(path, "--dso", "family")}, {"family"})
    table = rows(path, "--symbol", "three")
    equal([row["symbol"] for row in table], ["three"])
    between(float(table[0]["overhead_percent"]), 15, 45)
    relative = rows(path, "--symbol", "three", "--percentage", "relative")
    equal(float(relative[0]["overhead_percent"]), 100.0)
    through = {row["symbol"] for row in rows(path, "--through", "run_worker", "--dso", "family")}
    if not {"six", "three", "one"} <= through:
        raise AssertionError(f"--through run_worker gave {through}")


def sample_count(path, *arguments):
    return sum(event["samples"] for event in
               json.loads(assay("report", path, "--json", "-g", "none", *arguments,
                                check=0).stdout)["events"])


@test
def filters_by_cpu_time_pid_tid():
    path = record("-a", *FP, command=(need_target("family"), "forks", "500"), frequency=999)
    whole = sample_count(path)
    cpus = [row["cpu"] for row in rows(path, "--sort", "cpu", "-g", "none")]
    equal(sum(sample_count(path, "--cpu", cpu) for cpu in cpus), whole)
    halves = [sample_count(path, "--time", part) for part in ("0%-50%", "50%-100%")]
    between(sum(halves), whole, whole + 2, "both halves")
    between(min(halves), 1, whole - 1, "a half")
    early, late = sample_count(path, "--time", "+0,+0.1"), sample_count(path, "--time", "+0.1,")
    between(early + late, whole, whole + 2, "before and after 0.1 s")
    tids = [row["tid"] for row in rows(path, "--sort", "tid", "-g", "none")]
    equal(sum(sample_count(path, "--tid", tid) for tid in tids[:3]),
          sample_count(path, "--tid", ",".join(tids[:3])))
    # A task that ends may be sampled when it has no number any more.
    by_pid = rows(path, "--sort", "pid", "-g", "none")
    pids = [row["pid"] for row in by_pid if row["pid"]]
    nameless = sum(int(row["samples"]) for row in by_pid if not row["pid"])
    equal(sample_count(path, "--pid", ",".join(pids)) + nameless, whole)
    equal(sample_count(path, "--pid", "999999999"), 0)


@test
def percent_limit_leaves_out_rows():
    path = family("shares", 400, *FP)
    for row in rows(path, "--percent-limit", "20"):
        between(float(row["overhead_percent"]), 20, 100)
    equal(len(rows(path, "--percent-limit", "100")), 0)


@test
def several_events_have_a_table_each():
    path = record("-e", "cpu-clock", "-e", "page-faults", *FP,
                  command=(need_target("family"), "shares", "300"))
    text = assay("report", path, "-g", "none", check=0).stdout
    equal(len(re.findall("^# Samples: ", text, re.MULTILINE)), 2)
    same_as_perf_events = rows(path, "--sort", "event,symbol", "-g", "none")
    for event in {row["event"] for row in same_as_perf_events}:
        total = sum(float(row["overhead_percent"]) for row in same_as_perf_events
                    if row["event"] == event)
        between(total, 99.9, 100.1, event)
    only = {row["event"] for row in rows(path, "--event", "page-faults*", "-g", "none")}
    equal(len(only), 1)


@test
def json_holds_everything():
    path = family("shares", 400, *FP)
    data = json.loads(assay("report", path, "--json", check=0).stdout)
    equal(data["events"][0]["unit"], "ns")
    equal(sum(row["weight"] for row in data["rows"]), data["events"][0]["weight"])
    equal(sum(row["samples"] for row in data["rows"]), data["events"][0]["samples"])
    six = next(row for row in data["rows"] if row["symbol"] == "six")
    if not six["share_low"] < six["share"] < six["share_high"]:
        raise AssertionError(f"{six}")
    equal([call["symbol"] for call in six["calls"][:2]], ["six", "outer"])
    equal([call["depth"] for call in six["calls"][:2]], [0, 1])


@test
def inlined_functions_show_by_default():
    path = record("--call-graph", "dwarf", command=(need_target("inlines"), "1000"), frequency=1500)
    text = assay("report", path, check=0).stdout
    contains(text, "(inlined)")
    contains(text, "Mixer")
    lacks(assay("report", path, "--no-inline", check=0).stdout, "(inlined)")
    mixing = [row for row in rows(path, "--inline-rows", "-g", "none") if "step" in row["symbol"]]
    between(sum(float(row["overhead_percent"]) for row in mixing), 1, 100, "inlined step")


@test
def dwarf_chains_reach_main():
    path = record("--call-graph", "dwarf", command=(need_target("inlines"), "1000"), frequency=1500)
    table = {row["symbol"]: float(row["children_percent"])
             for row in rows(path, "--children", "--comm", "inlines")}
    between(table["main"], 90, 100, "share of main with its callees")


@test
def names_are_demangled_unless_told():
    path = record(*FP, command=(need_target("inlines-fp"), "1500"))
    contains(assay("report", path, "-g", "none").stdout, "[.] shapes::hash_words\n")
    contains(assay("report", path, "-g", "none", "--full-names").stdout, "shapes::hash_words(std::")
    contains(assay("report", path, "-g", "none", "--no-demangle").stdout, "_ZN6shapes10hash_words")


@test
def few_samples_say_what_they_cannot_tell():
    path = record(command=(need_target("family"), "shares", "30"), frequency=300)
    text = assay("report", path, check=0).stdout
    count = head_number(text, "# Samples")
    between(count, 1, 60, "samples")
    contains(text, f"# Only {count} sample")
    contains(text.replace("\n# ", " "), "95 % interval")


@test
def broken_call_chains_are_counted():
    path = record(*FP, command=(need_target("inlines"), "1500"))
    text = assay("report", path, check=0).stdout.replace("\n# ", " ")
    data = json.loads(assay("report", path, "--json", check=0).stdout)
    between(data["chains"]["broken"] + data["chains"]["ending_early"], 1,
            data["chains"]["samples"], "broken chains")
    contains(text, "-g dwarf")
    if not re.search(r"\d\.\d % of the samples", text):
        raise AssertionError(text[:2000])
    whole = json.loads(assay("report", family("shares", 400, *FP), "--json", check=0).stdout)
    between(whole["chains"]["broken"], 0, 0.02 * whole["chains"]["samples"], "with frame pointers")


@test
def variants_of_a_function_can_be_folded():
    compiler = shutil.which("gcc") or skip("gcc is not installed")
    with open("variants.c", "w") as file:
        file.write("""
            #include <stdlib.h>
            static __attribute__((noinline)) long work(long count, long factor, long unused)
            {
                long sum = 1;
                (void)unused;
                for (volatile long i = 0; i < count; i++) sum = sum * factor + i;
                return sum;
            }
            int main(int argc, char **argv)
            {
                return (int)(work(atol(argv[1]), 31, argc) + work(atol(argv[1]), 31, 2));
            }""")
    subprocess.run([compiler, "-O2", "-g", "variants.c", "-o", "variants"], check=True)
    names = subprocess.run(["nm", "variants"], text=True, capture_output=True).stdout
    variant = re.search(r" t (work\.\S+)", names)
    if not variant:
        skip("this gcc makes no variant of the function")
    path = record(command=(os.path.abspath("variants"), "60000000"))
    contains(assay("report", path).stdout, f"[.] {variant[1]}\n")
    contains(assay("report", path, "--fold-variants").stdout, "[.] work\n")


@test
def hostile_names_cannot_disturb_a_terminal():
    compiler = shutil.which("gcc") or skip("gcc is not installed")
    with open("hostile.c", "w") as file:
        file.write(r"""
            #include <stdlib.h>
            #include <sys/prctl.h>
            void evil_abcdefg(long);
            __attribute__((noinline)) void evil_abcdefg(long n)
            {
                for (volatile long i = 0; i < n; i++);
            }
            int main(int c, char **v)
            {
                prctl(PR_SET_NAME, "\033]0;x\007");
                evil_abcdefg(atol(v[1]));
            }
            """)
    subprocess.run([compiler, "-O1", "hostile.c", "-o", "hostile"], check=True)
    binary = open("hostile", "rb").read()
    with open("hostile", "wb") as file:
        file.write(binary.replace(b"evil_abcdefg", b"evil\x1b[31m\x07\xff\xff"))
    path = record(command=(os.path.abspath("hostile"), "90000000"))
    for arguments in ([], ["--children"], ["-g", "caller"], ["--sort", "symbol"]):
        text = assay("report", path, *arguments, check=0).stdout
        contains(text, r"evil\x1b[31m\x07\xff\xff")
        lacks(text, "\033")
        lacks(text, "\a")
    json.loads(assay("report", path, "--json", check=0).stdout)
    lacks(assay("annotate", "evil\033[31m\a", path, check=1).stderr, "\033")


@test
def text_fits_the_terminal():
    path = record(*FP, command=(need_target("inlines-fp"), "1500"))
    for columns in (80, 120):
        with Terminal([ASSAY, "report", "--stdio", path], columns=columns) as terminal:
            text = terminal.finish()
        for line in text.splitlines():
            between(len(line), 0, columns, f"length of {line!r}")
        contains(text, "…")


@test
def the_browser_opens_searches_zooms_and_quits():
    path = family("shares", 400, *FP)
    with Terminal([ASSAY, "report", path], columns=100) as terminal:
        terminal.expect("Samples: ")
        terminal.expect("six")
        terminal.send("\n")
        terminal.expect("outer")
        terminal.send("/three\n")
        terminal.send("f")
        terminal.expect("through three")
        terminal.send("\033")
        terminal.send("a")
        terminal.expect("percentages below")
        terminal.send("q")
        terminal.send("h")
        terminal.expect("zoom into the binary")
        terminal.resize(60, 20)
        terminal.send("q")
        terminal.send("q")
        equal(terminal.exit_code(), 0)


@test
def off_cpu_time_is_an_event():
    path = record("--off-cpu", command=("sleep", "0.3"), tool="assay")
    data = json.loads(assay("report", path, "--json", check=0).stdout)
    waits = next((event for event in data["events"] if event["name"] == "off-cpu"), None)
    if not waits:
        raise AssertionError(f"no event off-cpu in {data['events']}")
    between(waits["weight"] / 1e9, 0.25, 60, "seconds off the CPU")
    contains(assay("report", path, check=0).stdout, "off the CPU")


@test
def waits_for_own_children_and_idle_threads_are_left_out_unless_asked_for():
    path = record("--off-cpu", command=("sh", "-c", "sleep 0.3; :"), tool="assay")

    def waits(*options):
        data = json.loads(assay("report", path, "--json", "-e", "off-cpu", *options, check=0).stdout)
        return {row["comm"]: row["weight"] / 1e9 for row in data["rows"]}

    told, everything = waits("-s", "comm"), waits("-s", "comm", "--idle")
    between(everything["sh"], 0.25, 60, "seconds that the shell waited for its child")
    between(told.get("sh", 0), 0, 0.2, "seconds of the shell in the table")
    between(told["sleep"], 0.25, 60, "seconds of the child in the table")
    contains(assay("report", path, "-e", "off-cpu", check=0).stdout, "--idle shows them")


@test
def the_browser_shows_names_in_narrow_terminals_and_goes_back_to_where_it_was():
    path = family("shares", 400, *FP)
    with Terminal([ASSAY, "report", path], columns=40, lines=30) as terminal:
        terminal.expect("[.] six")
        terminal.expect("[.] three")
        terminal.send("/three\n")
        terminal.send("f")
        terminal.expect("three")
        terminal.send("\033")
        terminal.send("a")  # annotates what is selected
        terminal.expect("three")
        terminal.send("q")
        terminal.send("q")
        equal(terminal.exit_code(), 0)


@test
def a_file_cut_short_gives_what_it_holds():
    # perf writes the rings of the CPUs one after another: on one CPU, names come before samples.
    cpu = str(min(os.sched_getaffinity(0)))
    command = ("taskset", "-c", cpu, need_target("family"), "shares", "400")
    whole = open(record(*FP, command=command), "rb").read()
    with open("cut.data", "wb") as file:
        file.write(whole[:len(whole) * 2 // 3])
    result = assay("report", "cut.data", "-g", "none", check=0)
    contains(result.stdout, "[.] six")
    between(head_number(result.stdout, "# Samples"), 10, 10**6, "samples")
    if not re.search(r"the file is truncated", result.stdout):
        raise AssertionError(result.stdout[:800])


@test
def wrong_command_lines_are_explained():
    contains(assay("report", "--sort", "colour", check=2).stderr, "unknown sort key 'colour'")
    contains(assay("report", "-g", "sideways", check=2).stderr, "callee, caller or none")
    contains(assay("report", "--time", "5", check=2).stderr, "START,END")
    contains(assay("report", "a", "b", check=2).stderr, "expected one recording")
    contains(assay("report", "--percentage", "x", check=2).stderr, "not absolute or relative")
    contains(assay("report", check=1).stderr, "assay record")
    contains(assay("report", "/nowhere.data", check=1).stderr, "/nowhere.data")
    contains(assay("report", __file__, check=1).stderr, "perf.data")


main()
