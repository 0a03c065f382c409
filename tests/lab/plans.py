# SPDX-License-Identifier: MIT
"""No verb that reads a part of a large store reads all of it: the plans of every statement are
looked at, in PostgreSQL as it logs them (auto_explain) and in SQLite (EXPLAIN QUERY PLAN)."""
import os
import pathlib
import re
import sqlite3
import subprocess
import urllib.request

from harness import *
from large import FILL, SPEC
from server import Server, why_not

# Those that grow with every run, and the one that a search by factor goes through.
BIG = ("run", "value", "series", "disturbance", "factor")

EXPLAIN = """
session_preload_libraries = 'auto_explain'
auto_explain.log_min_duration = 0
autovacuum = off
"""

def use_everything(place):
    """Every verb that reads or adds a part of the store."""
    for words in (["list"], ["list", "--name", "perf7"], ["show", "1000"], ["show", "last", "--csv"],
                  ["show", "perf7", "--json"], ["compare", "v=0", "v=1", "--in", "900"],
                  ["compare", "f900=0", "f900=1"], ["compare", "1000", "1001"],
                  ["answers", "1000"], ["history", "wall", "--name", "perf7"],
                  ["show", "u1234"], ["run", "--fresh", "small.yaml"]):
        result = assay(*words, "--db", place)
        if result.returncode not in (0, 1):
            raise AssertionError(f"{words}: {result.stderr}")
    assay("html", "1000", "1001", "-o", "page.html", "--db", place, check=0)
    assay("db", "export", "one.db", "1000", "--db", place, check=0)
    daemon = subprocess.Popen([ASSAY, "serve", "--db", place, "--port", "0"],
                              stdout=subprocess.PIPE, text=True)
    try:
        root = daemon.stdout.readline().strip()
        for page in ("", "?q=perf7", "e/1000", "e/1000/runs", "e/1000/report",
                     "history?name=perf7"):
            urllib.request.urlopen(root + page, timeout=240).read()
    finally:
        daemon.terminate()
        daemon.wait(60)


def statements(log):
    """The texts of all statements, with their plans."""
    for part in log.split("duration: ")[1:]:
        text = re.search(r"Query Text: (.*?)\n(?=\t)", part, re.S)
        if text and " plan:" in part.splitlines()[0]:
            yield " ".join(text[1].split()), part[text.end():]


@test
def nothing_reads_a_big_table_from_end_to_end():
    if why_not():
        skip(why_not())
    pathlib.Path("small.yaml").write_text(SPEC)
    with Server(EXPLAIN) as server:
        place = server.make("plans")
        assay("run", "-q", "small.yaml", "--db", place, check=0)
        server.sql(FILL.format(count=2000), "plans")
        before = server.log.stat().st_size
        use_everything(place)
        with open(server.log, "rb") as file:
            file.seek(before)
            log = file.read().decode(errors="replace")
    seen = dict(statements(log))
    between(len(seen), 25, 1000, "statements")
    for text, plan in seen.items():
        scanned = re.search(r"Seq Scan on (\w+)", plan)
        if scanned and scanned[1] in BIG:
            raise AssertionError(f"{text}\nreads all of {scanned[1]}:\n{plan}")
    assay("run", "-q", "small.yaml", "--db", "small.db", check=0)
    with sqlite3.connect("small.db") as db:
        for text in seen:
            if "pg_catalog" in text or not text.startswith(("SELECT", "UPDATE", "DELETE")):
                continue
            text = re.sub(r"\$(\d+)", r"?\1", text)
            count = max([0, *map(int, re.findall(r"\?(\d+)", text))])
            for row in db.execute("EXPLAIN QUERY PLAN " + text, [None] * count):
                scanned = re.match(r"SCAN (\w+)(?! .*INDEX)", row[3])
                aliases = dict((alias, name) for name, alias in
                               re.findall(r"(?:FROM|JOIN) (\w+) (\w)\b", text))
                if scanned and aliases.get(scanned[1], scanned[1]) in BIG:
                    raise AssertionError(f"SQLite: {text}\n{row[3]}")
    db.close()


main()
