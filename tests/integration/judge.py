# SPDX-License-Identifier: MIT
"""One judge: whatever prints a pair of cells gives the same verdict, ratio, interval and word.

Experiments of every kind are put into a store at random (paired, apart, by node, with failed runs,
with zeros; speeds, counts, amounts; lower, higher and neither way better), and what `show`,
`compare` in all its formats and `html` say of them is compared.
"""
import csv
import html
import io
import json
import pathlib
import random
import re
import sqlite3

from harness import *

# name, unit, better (0 lower, 1 higher, 2 neither), kind, traits (1 speed, 2 count), middle
METRICS = [("wall", "ns", 0, "time", 1, 2e7),
           ("ops", "op/s", 1, "metric", 1, 5e5),
           ("heap", "bytes", 0, "metric", 0, 3e6),
           ("context-switches", "", 0, "counter", 2, 900),
           ("score", "", 2, "metric", 0, 40),
           ("sometimes", "", 2, "metric", 0, 0),
           ("vmstat.in", "/s", 2, "monitor", 4, 300),
           ("vmstat.cs", "/s", 2, "monitor", 4, 3000)]
HEADLINES = ["wall", "ops", "context-switches", "score", "sometimes"]
WORDS = {("ns", 0): ("slower", "faster"), ("op/s", 1): ("faster", "slower"),
         ("bytes", 0): ("more", "less"), ("", 0): ("more", "fewer"), ("", 2): ("more", "less"),
         ("/s", 2): ("more", "less")}


class Store:
    def __init__(self, seed):
        self.random = random.Random(seed)
        pathlib.Path("s.yaml").write_text('name: x\ncommand: "true"\nrounds: 1\nwarmup: 0\n')
        pathlib.Path("assay.db").unlink(missing_ok=True)
        assay("run", "s.yaml", "-q", check=0)
        self.db = sqlite3.connect("assay.db")
        self.metrics = {}
        for name, unit, better, kind, traits, _ in METRICS:
            self.db.execute("INSERT OR IGNORE INTO metric (name, unit, better, kind, traits) "
                            "VALUES (?, ?, ?, ?, ?)", (name, unit, better, kind, traits))
            self.metrics[name] = self.db.execute(
                "SELECT id FROM metric WHERE name = ? AND kind = ?", (name, kind)).fetchone()[0]

    def value(self, name, middle, factor, noise):
        if name == "sometimes":
            return float(self.random.choice([0, 0, 1, 2, 5]) + (factor - 1) * 20)
        value = middle * factor * self.random.lognormvariate(0, noise)
        return float(round(value)) if name == "context-switches" else value

    def add(self, shift, variants, nodes=0, failing=0.0, rounds=12, noise=0.02):
        """An experiment whose last variant is `shift` times the first; its id."""
        db, name = self.db, f"e{self.random.randrange(10**9)}"
        experiment = db.execute(
            "INSERT INTO experiment (uuid, name, question, state, selection, baseline, headline,"
            " spec_path, spec_hash, git_commit, seed, started_at_ns, updated_at_ns, ended_at_ns,"
            " owner, cell_count, run_count, failed_count, disturbed_count) VALUES"
            " (?, 'made', '', 'done', '', ?, ?, '', '', '', 1, 1, 1, 1, '', 0, 0, 0, 0)",
            (name, f"variant={variants[0]}", "\n".join(HEADLINES) + "\n")).lastrowid
        for ordinal, factor in enumerate(("size", "variant")):
            db.execute("INSERT INTO factor VALUES (?, ?, ?)", (experiment, ordinal, factor))
        offsets = [self.random.lognormvariate(0, 0.3) for _ in range(max(nodes, 1))]
        ordinal = 0
        for size in ("64", "4096"):
            for variant in variants:
                cell = db.execute(
                    "INSERT INTO cell (experiment, ordinal, label, command, build_id)"
                    " VALUES (?, ?, ?, 'true', '')",
                    (experiment, ordinal, f"size={size} variant={variant}")).lastrowid
                ordinal += 1
                for number, level in enumerate((size, variant)):
                    db.execute("INSERT INTO level VALUES (?, ?, ?)", (cell, number, level))
                self.add_runs(experiment, cell, rounds, nodes, offsets, failing, noise,
                              shift if variant == variants[-1] else 1)
        db.execute("UPDATE experiment SET cell_count = ? WHERE id = ?", (ordinal, experiment))
        db.commit()
        return str(experiment)

    def add_runs(self, experiment, cell, rounds, nodes, offsets, failing, noise, shift):
        for number in range(rounds):
            failed = self.random.random() < failing
            node = number % nodes if nodes else 0
            run = self.db.execute(
                "INSERT INTO run (experiment, cell, round, attempt, position, started_at_ns,"
                " wall_ns, status, disturbed, layout) VALUES (?, ?, ?, 0, 0, 1, 1, ?, 0, ?)",
                (experiment, cell, number, 256 if failed else 0,
                 f"node=n{node}" if nodes else "")).lastrowid
            if failed:
                continue
            for name, _, _, _, _, middle in METRICS:
                self.db.execute("INSERT INTO value (run, metric, value) VALUES (?, ?, ?)",
                                (run, self.metrics[name],
                                 self.value(name, middle, shift * offsets[node], noise)))


def read_json(*words):
    result = json.loads(assay("compare", *words, "--json", "--all", check=0).stdout)
    return {(row["metric"], row["cell"]): row for row in result["rows"]}


def check_row(row):
    """The verdict, the interval and the word say the same."""
    words, low, high = row["words"], row["low"], row["high"]
    same = 1 if row["scale"] == "ratio" else 0
    differs = row["verdict"] in ("better", "worse", "different")
    outside = low is not None and not low <= same <= high
    equal(differs, outside or words.startswith("same median"), f"{row} is called")
    if row["changed"]:
        equal(differs, True, f"{row} changed and differs")
    if row["headline"] and differs:
        equal(row["changed"], True, f"a headline that differs: {row}")
    if not outside or not row["changed"]:
        return
    facts = next(m for m in METRICS if m[0] == row["metric"])
    up, down = WORDS[(facts[1], facts[2])]
    if row["scale"] == "difference":
        up, down = "more", "fewer" if facts[4] & 2 else "less"
    contains(words, up if row["estimate"] > same else down)
    if row["scale"] == "ratio":
        ratio = max(row["estimate"], 1 / row["estimate"])
        shown = float(re.match(r"([\d.]+)×", words)[1])
        between(shown / ratio, 0.99, 1.01)


def numbers_of(text):
    return [float(number.replace(",", "")) for number in re.findall(r"-?[\d.,]*\d", text)]


def check_formats(rows, *words):
    """All formats of one comparison."""
    table = list(csv.DictReader(io.StringIO(assay("compare", *words, "--csv", "--all").stdout)))
    equal(len(table), len(rows), "rows of the CSV")
    for line in table:
        row = rows[(line["metric"], line["cell"])]
        equal((line["verdict"], line["changed"]),
              (row["verdict"], "yes" if row["changed"] else "no"), f"CSV of {row}")
        for field in ("estimate", "low", "high", "p_adjusted"):
            if row[field] is not None:
                equal(float(line[field]), row[field], f"{field} of {row}")
    text = assay("compare", *words, check=0).stdout
    markdown = assay("compare", *words, "--markdown", check=0).stdout
    lkp = assay("compare", *words, "--lkp", check=0).stdout
    for (metric, cell), row in rows.items():
        if not row["headline"]:
            continue
        contains(text, row["words"])
        name = f"{metric}, {cell}" if cell else metric
        line = next(l for l in markdown.splitlines() if f"| {name} |" in l)
        contains(line, row["words"])
        if row["scale"] == "ratio":
            shown = numbers_of(line.split("|")[3])
            between(shown[0] / row["estimate"], 0.99, 1.01)
        check_lkp(lkp, metric, row)


def check_lkp(text, metric, row):
    base, new = row["base"]["mean"], row["new"]["mean"]
    lines = [l for l in text.splitlines() if re.search(rf"\S*\b{re.escape(metric)}$", l)]
    lines = lines or [l for l in text.splitlines() if l.endswith("time.elapsed_time")]
    change = 100 * (new - base) / base if base else new - base
    found = [l for l in lines if any(abs(number - round(change, 1)) < 0.11 + abs(change) / 1000
                                     for number in numbers_of(l))]
    if not found:
        raise AssertionError(f"no line with {change:+.1f} among {lines}")


def check_page(rows, *words):
    assay("html", *words, "-o", "page.html", check=0)
    page = html.unescape(pathlib.Path("page.html").read_text())
    for row in rows.values():
        if row["headline"]:
            contains(page, row["words"])


def check_show(rows, experiment):
    text = assay("show", experiment, check=0).stdout
    for row in rows.values():
        if row["headline"]:
            contains(text, row["words"])


@test
def one_experiment_says_the_same_everywhere():
    store = Store(1)
    for turn in range(8):
        shift = store.random.choice([1, 1, 1.01, 1.1, 0.8, 2.5])
        made = store.add(shift, ["old one", "new"], failing=store.random.choice([0, 0.2]),
                         rounds=store.random.choice([4, 9, 14]),
                         noise=store.random.choice([0.001, 0.02, 0.3]))
        words = ("--in", made, "variant=old one", "variant=new")
        rows = read_json(*words)
        for row in rows.values():
            equal(row["paired"], True, "paired")
            check_row(row)
        check_formats(rows, *words)
        # Of two variants every cell is beside its baseline: the same pairs, one family.
        check_show(rows, made)
        check_page(rows, made)


@test
def two_experiments_say_the_same_everywhere():
    store = Store(2)
    for turn in range(6):
        shift = store.random.choice([1, 1.02, 1.3])
        nodes = store.random.choice([0, 0, 4])
        rounds = store.random.choice([5, 16])
        base = store.add(1, ["one"], nodes=nodes, rounds=rounds)
        new = store.add(shift, ["one"], nodes=nodes, rounds=rounds)
        rows = read_json(base, new)
        for row in rows.values():
            equal(row["paired"], nodes > 0 and rounds >= 8, "paired by node")
            check_row(row)
        check_formats(rows, base, new)
        check_page(rows, base, new)


@test
def what_ab_says_is_what_its_report_says():
    assay("ab", "-r", "10", "--json=ab.json", "--html", "ab.html", "--markdown=ab.md", "true",
          "sh -c 'for i in 1 2 3 4 5 6 7 8 9; do true; done'", check=0)
    result = json.loads(pathlib.Path("ab.json").read_text())
    pages = [html.unescape(pathlib.Path("ab.html").read_text())]
    assay("html", "ab.json", "-o", "again.html", check=0)
    pages.append(html.unescape(pathlib.Path("again.html").read_text()))
    assay("html", "ab.html", "-o", "third.html", check=0)
    pages.append(html.unescape(pathlib.Path("third.html").read_text()))
    seen = 0
    for metric in result["metrics"]:
        comparison = metric["commands"][1].get("comparison")
        if comparison and metric["is_headline"]:
            seen += 1
            for page in pages:
                contains(page, comparison["text"])
            contains(pathlib.Path("ab.md").read_text(), comparison["text"])
    equal(seen, 1, "headlines")


main()
