# SPDX-License-Identifier: MIT
"""assay html: what is in the file; how it behaves is browser.py's affair."""
import base64
import html.parser
import json
import os
import pathlib
import re
import zlib

from harness import *
from pages import *


def data_of(path):
    text = pathlib.Path(path).read_text()
    element = re.search(r'id="assay-data" data-encoding="deflate">([^<]*)<', text)
    return json.loads(zlib.decompress(base64.b64decode(element[1])))


class Outline(html.parser.HTMLParser):
    """Ids, tags, and attributes that could reach outside."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.tags, self.outside = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.add(value)
            if name in ("src", "href", "action", "data", "style") or name.startswith("on"):
                if not (value or "").startswith(("#", "data:,")):
                    self.outside.append((tag, name, value))


def numbers_of(column):
    """As docs/FORMATS.md has it: digits to the base of 91, the lowest of all numbers first."""
    count = (len(column) - 1) // int(column[0])
    digits = [ord(c) - (36 if c > "\\" else 35) for c in column[1:]]
    return [sum(digits[d * count + i] * 91 ** d for d in range(int(column[0]))) for i in range(count)]


@test
def a_run_becomes_one_page():
    experiment()
    assay("html", "-o", "run.html", check=0)
    text = pathlib.Path("run.html").read_text()
    outline = Outline(text)
    equal(outline.outside, [], "what could be asked for outside")
    for name in ("verdict", "table", "plots", "about", "plot-curve", "plot-ratio", "plot-scaling",
                 "plot-efficiency", "plot-misses", "plot-strip", "plot-ecdf", "plot-percentiles"):
        if name not in outline.ids:
            raise AssertionError(f"there is no #{name}")
    contains(text, "Content-Security-Policy")
    contains(text, "default-src &#39;none&#39;" if "default-src &#39;" in text else "default-src 'none'")
    lacks(text, "unsafe-inline")
    contains(text, "is fast faster at every size?")
    contains(text, "assay run --fresh --seed 1 demo.yaml")
    contains(text, "<dt>kernel release</dt>")
    contains(text, "<td>hardware counters</td>")  # the capability record, as a table
    lacks(text, "&quot;findings&quot;")
    # The truth of the program: they cross at 160 bytes, between two sizes that were measured.
    crossing = re.search(r"fast crosses at (\d+) \[(\d+), (\d+)\]", text)
    between(int(crossing[1]), 130, 190, "the crossover")


@test
def the_data_within_is_whole():
    experiment()
    assay("html", "-o", "run.html", check=0)
    data = data_of("run.html")
    equal(data["format"], "assay-html-1")
    stored = json.loads(assay("show", "--json", check=0).stdout)
    kept = data["experiments"][0]
    equal(len(kept["cells"]), len(stored["cells"]), "cells")
    for cell, other in zip(kept["cells"], stored["cells"]):
        for (name, *_), values in zip(kept["metrics"], cell["values"]):
            pairs = [[r, v] for r, v in zip(cell["rounds"], values) if v is not None]
            equal(pairs, other["values"].get(name, []), f"{cell['label']}, {name}")
    equal(len(kept["runs"]["cell"]), 16 * 8, "runs")


@test
def two_pages_are_compared_as_their_experiments_are():
    experiment()
    experiment(seed="2")
    assay("html", "1", "-o", "a.html", check=0)
    assay("html", "2", "-o", "b.html", check=0)
    pages = json.loads(assay("compare", "a.html", "b.html", "--json", "--all", check=0).stdout)
    store = json.loads(assay("compare", "1", "2", "--json", "--all", check=0).stdout)
    equal(pages["rows"], store["rows"], "rows")
    again = assay("html", "a.html", "b.html", "-o", "c.html", check=0)
    equal(again.stderr, "")
    equal([e["id"] for e in data_of("c.html")["experiments"]], [1, 2])


@test
def metrics_of_two_pages_meet_by_name():
    """Their numbers are those of two stores, and say nothing."""
    needs_file_store("two stores are made side by side")
    for place, names in (("one", ("alpha", "beta")), ("two", ("gamma", "beta", "alpha"))):
        lines = "; ".join(f"echo assay.metric {name} {ord(name[0])} >&$ASSAY_METRICS_FD"
                          for name in names)
        pathlib.Path(f"{place}.yaml").write_text(
            f"name: order\ncommand: sh -c '{lines}'\nrounds: 6\nwarmup: 0\n"
            f"metrics: {{{', '.join(f'{name}: {{better: lower}}' for name in names)}}}\n")
        assay("run", "--db", f"{place}.db", f"{place}.yaml", check=0)
        assay("html", "--db", f"{place}.db", "-o", f"{place}.html", check=0)
    rows = json.loads(assay("compare", "one.html", "two.html", "--json", "--all", check=0).stdout)["rows"]
    found = {row["metric"]: (row["base"]["median"], row["new"]["median"]) for row in rows}
    equal((found["alpha"], found["beta"]), ((97, 97), (98, 98)))


@test
def what_ab_wrote_becomes_a_page():
    assay("ab", "--rounds", "8", "--json=ab.json", target("empty"), "true", check=0)
    assay("html", "ab.json", "-o", "ab.html", check=0)
    contains(pathlib.Path("ab.html").read_text(), 'id="plot-strip"')
    rows = json.loads(assay("compare", "ab.json", "ab.html", "--json", check=0).stdout)["rows"]
    equal({row["estimate"] for row in rows if row["metric"] == "wall"}, {1}, "ratio to itself")


@test
def commands_that_begin_alike_have_different_names_in_pictures():
    commands = [f"true --of-a-program-with-a-long-name --mode={mode}" for mode in ("fast", "slow", "other")]
    assay("ab", "-r", "8", "-w", "0", "--json=ab.json", *commands, check=0)
    assay("html", "ab.json", "-o", "ab.html", check=0)
    text = pathlib.Path("ab.html").read_text()
    for kind, most in (("forest", 2), ("strip", 3)):
        figure = re.search(rf'<figure[^>]*data-kind="{kind}">.*?</figure>', text, re.S)[0]
        names = set(re.findall(r">([^<]*true[^<]*…[^<]*=\w+)</text>", figure))
        equal({name.rpartition("=")[2] for name in names if not name.startswith("same")} >= {"slow", "other"}, True, kind)
        equal(len(names) >= most, True, f"{kind}: {names}")


@test
def what_another_metric_can_tell_is_said_in_sentences():
    assay("ab", "-r", "10", "-w", "0", "--json=ab.json", *(f"true {n}" for n in range(5)), check=0)
    document = json.loads(pathlib.Path("ab.json").read_text())
    for metric in document["metrics"]:
        for index, command in enumerate(metric["commands"]):
            if metric["name"] == "wall":  # as noisy as can be
                command["values"] = [10**6 * (1 + (7 * k + index) % 10) ** 2 for k in range(10)]
            elif metric["name"] == "cpu":
                command["values"] = [10**6 * (1 + index) + k for k in range(10)]
    pathlib.Path("ab.json").write_text(json.dumps(document))
    assay("html", "ab.json", "-o", "ab.html", check=0)
    text = pathlib.Path("ab.html").read_text()
    lacks(text, "\\x0a")
    said = re.findall(r'<p class="lead instead">(.*?)</p>', text)
    equal(len(said), 2, "sentences")
    for sentence in said:
        if not re.fullmatch(r"wall cannot tell true \d from true 0, but cpu can: [\d.]+× more \[[\d., ]+\][^\\]*\.", sentence):
            raise AssertionError(sentence)
    contains(text, "So it is with 2 more cells.")
    # A picture has room for the verdict only.
    words = re.findall(r'class="w">(.*?)</text>', text)
    equal(set(words), {"too noisy to tell"}, "words of the picture")


@test
def a_mean_tells_of_cells_that_have_no_values():
    pathlib.Path("s.yaml").write_text("""name: broken at large
command: [sh, -c, '[ {variant}{size} != new2 ] || exit 3; echo "assay.metric rate $((1000 + {round})) x/s" > /proc/self/fd/$ASSAY_METRICS_FD']
factors: {variant: [old, new], size: [0, 1, 2]}
metrics: {rate: {unit: x/s, better: higher, headline: true}}
rounds: 8
warmup: 0
baseline: {variant: old}
""")
    assay("run", "s.yaml", "--db", "s.db", "-q")
    assay("html", "--db", "s.db", "-o", "s.html", check=0)
    lead = re.search(r'<p class="lead main">.*?</p>', pathlib.Path("s.html").read_text())[0]
    contains(lead, "geometric mean of 2 cells; 2 of 18 runs failed")


@test
def cells_that_go_both_ways_have_no_winner():
    """A mean of benchmarks of which some are faster and others slower is no verdict."""
    for turn in range(2):
        lines = [f"BenchmarkB{b} 10 {(1 + b) * (1, (0.8, 1.3)[b % 2])[turn] * (1 + i / 1000)} ns/op" for b in range(4) for i in range(10)]
        pathlib.Path("go.txt").write_text("\n".join(lines) + "\n")
        assay("import", "--db", "g.db", "go.txt", check=0)
    assay("html", "--db", "g.db", "1", "2", "-o", "both.html", check=0)
    text = pathlib.Path("both.html").read_text()
    contains(text, "<strong>it depends</strong>")
    contains(text, "better in 2, worse in 2")
    lacks(text, "assay explain 1 2")  # nobody knows the commands


@test
def cells_without_a_partner_are_told():
    for names in ("ab", "bcd"):
        pathlib.Path("h.json").write_text(json.dumps({"results": [
            {"command": c, "times": [1 + i / 1000 for i in range(10)]} for c in names]}))
        assay("import", "--db", "h.db", "h.json", check=0)
    assay("html", "--db", "h.db", "1", "2", "-o", "two.html", check=0)
    contains(pathlib.Path("two.html").read_text(), "Not compared: 1 cell of the base and 2 of the new one")


@test
def failures_of_ab_are_told():
    """How a command ended and what it said, be it by a signal, in a warm-up only, or counted all the same."""
    flaky = "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n; [ $((n % 4)) != 1 ] || { echo lost it >&2; exit 9; }"
    assay("ab", "-r", "8", "-w", "0", "--json=ab.json", flaky, "true", "echo never >&2; exit 7")
    assay("html", "ab.json", "-o", "ab.html", check=0)
    text = pathlib.Path("ab.html").read_text()
    failed = re.search(r'<details class="failures".*?</table>', text, re.S)[0]
    for words in ("2 of 8 (25 %)", "exit code 9", "lost it", "2 of 2 (100 %)", "exit code 7", "never"):
        contains(failed, words)
    contains(text, "Only the runs that succeeded count.")
    assay("ab", "-N", "-r", "8", "-w", "0", "--ignore-failure", "--json=ab.json", "sh -c 'kill -SEGV $$'", "true")
    for source in ("ab.json", "ab.html"):  # and once more from the page
        assay("html", source, "-o", "ab.html", check=0)
        text = pathlib.Path("ab.html").read_text()
        contains(text, "8 of 16 runs failed, in 1 of 2 cells. They count like the others")
        contains(re.search(r'<details class="failures".*?</table>', text, re.S)[0], "signal 11 (Segmentation fault)")


@test
def profiles_are_kept_with_their_stacks():
    recordings()
    assay("html", "old.data", "new.data", "-o", "p.html", check=0)
    text = pathlib.Path("p.html").read_text()
    contains(text, 'id="flame-diff"')
    data = data_of("p.html")
    old, new = data["profiles"]
    samples = json.loads(assay("report", "old.data", "--json", check=0).stdout)
    own = sum(numbers_of(old["samples"]))
    equal(own, samples["events"][0]["samples"] if "events" in samples else own, "samples")
    equal(max(numbers_of(old["name"])) < len(data["names"]["text"]), True, "names have texts")
    names = data["names"]["text"]
    contains(" ".join(names), "removed")
    if EVIL not in names:
        raise AssertionError(f"the symbol is not there: {names}")
    # Read back, and drawn again, without the recordings.
    pathlib.Path("old.data").unlink()
    assay("html", "p.html", "-o", "q.html", check=0)
    equal(data_of("q.html")["profiles"], data["profiles"], "profiles")
    equal(data_of("q.html")["names"], data["names"], "functions, with what was found of them")


@test
def readings_and_history_are_kept():
    history()
    assay("html", "-o", "time.html", check=0)
    data = data_of("time.html")
    (line,) = data["histories"]
    equal(len(line["medians"]), 12, "experiments")
    for name in ("medians", "lows", "highs", "commits", "experiments"):
        equal(len(line[name]), 12, name)
    names = [m["name"] for m in data["monitors"]]
    contains(" ".join(names), "mpstat")
    for monitor in data["monitors"]:
        for trace in monitor["traces"]:
            equal(len(trace["seconds"]), len(trace["values"]), monitor["name"])
            equal(trace["seconds"], sorted(trace["seconds"]), "times")
    assay("html", "time.html", "-o", "again.html", check=0)
    again = data_of("again.html")
    equal((again["monitors"], again["histories"]), (data["monitors"], data["histories"]), "read back")
    contains(pathlib.Path("again.html").read_text(), "changed: ×1.")


@test
def hostile_names_are_text():
    experiment(("base", EVIL, "a\x1b[31mb"))
    assay("html", "-o", "evil.html", check=0)
    text = pathlib.Path("evil.html").read_text()
    lacks(text, "<img")
    lacks(text, "\x1b")
    equal(Outline(text).outside, [], "what could be asked for outside")
    equal(text.count("</script>"), 2, "ends of scripts")


@test
def wrong_sources_are_told():
    result = assay("html", "nothing-such", check=1)
    contains(result.stderr, "assay.db")
    pathlib.Path("x.json").write_text("{}")
    contains(assay("html", "x.json", check=1).stderr, "x.json: not written by assay ab")
    pathlib.Path("x.html").write_text('<script id="assay-data">!!</script>')
    error = assay("html", "x.html", check=1).stderr
    contains(error, "x.html: the data from byte 24 on is damaged")
    contains(error, "copy the file again")
    contains(assay("plot", "x.html", "-o", "x.svg", check=1).stderr, "damaged")
    contains(assay("compare", "x.html", "x.html", check=1).stderr, "damaged")
    experiment()
    contains(assay("html", "variant=base", check=2).stderr, "another value")
    contains(assay("compare", "demo.yaml", "1", check=2).stderr, "two files")
    assay("html", "-o", "no/such/folder.html", check=1)


@test
def the_script_is_made_smaller_without_harm():
    experiment()
    assay("html", "-o", "run.html", check=0)
    script = re.search(r"<script>(.*)</script>", pathlib.Path("run.html").read_text(), re.S)[1]
    sources = {path.name: path.read_text() for path in (ROOT / "web").glob("*.js")}
    for name in ("data.js", "state.js", "table.js", "plots.js", "export.js", "main.js"):
        # What is said to a reader: words in quotes, of code, not of comments.
        code = re.sub(r"(^|\s)//[ ].*", "", sources[name], flags=re.M)
        said = re.findall(r"'([^'\\\n=&]*[a-z] [a-z][^'\\\n=&]*)'", code)
        for words in said:
            contains(script, words)
    contains(script, "'hollow: disturbed'")
    equal(re.findall(r"\s// .*", script), [], "comments")
    lacks(script, "EventSource")  # what only assay serve needs
    lacks(script, "class FlameGraph")


@test
def a_cut_page_is_refused():
    experiment()
    assay("html", "-o", "run.html", check=0)
    text = pathlib.Path("run.html").read_text()
    start = text.index('data-encoding="deflate">') + 24
    pathlib.Path("cut.html").write_text(text[:start + 400] + "</script>")
    error = assay("html", "cut.html", check=1).stderr
    contains(error, f"the data from byte {len(text[:start].encode())} on is damaged or cut off")
    contains(error, "assay html")


@test
def errors_name_the_true_cause():
    """What was meant as a file is not looked for in a store."""
    os.mkdir("folder")
    pathlib.Path("words.txt").write_text("hello\n")
    for word, words in (("nosuch.data", "nosuch.data: no such file"),
                        ("folder/nosuch", "folder/nosuch: no such file"),
                        ("folder", "folder is a directory"),
                        ("words.txt", "words.txt is not a recording")):
        message = assay("html", word, check=1).stderr
        contains(message, words)
        lacks(message, "there is no store")
    message = assay("html", "sorting", check=1).stderr
    contains(message, "'sorting' is not a file")
    contains(message, "the store assay.db does not exist")
    lacks(message, "there is no store")
    for verb in ("list",), ("html", "last"), ("show", "last"):
        contains(assay(*verb, "--db", "folder", check=1).stderr, "folder is a directory, not a store")
    if os.geteuid() != 0:
        pathlib.Path("secret.data").touch(mode=0)
        contains(assay("html", "secret.data", check=1).stderr, "secret.data: Permission denied")


main()
