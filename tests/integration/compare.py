# SPDX-License-Identifier: MIT
"""assay compare and assay answers on experiments whose truth is known."""
import email
import email.policy
import json
import os
import pathlib
import subprocess

from harness import *

# Reports metrics that follow from its arguments and the round.
PROGRAM = """#!/usr/bin/env python3
import os, sys
values = dict(word.split('=') for word in sys.argv[1:])
out = os.open('/dev/null', 1) if 'ASSAY_METRICS_FD' not in os.environ else int(os.environ['ASSAY_METRICS_FD'])
wobble = (0, 1, -1, 2, -2, 3, -3, 1, -2, 2)[int(values['round']) % 10] / 1000
def report(name, value, unit=''):
    os.write(out, f'assay.metric {name} {value!r} {unit}\\n'.encode())
BODY_HERE
"""


def experiment(body, spec, name="e.yaml"):
    pathlib.Path("program").write_text(PROGRAM.replace("BODY_HERE", body))
    os.chmod("program", 0o755)
    pathlib.Path(name).write_text(spec)
    assay("run", name, "--seed", "1", "-q", check=0)


SPEC = """name: demo
command: ./program variant={variant} round={round}
factors: {variant: [old, new]}
metrics: {ops: {unit: op/s, better: higher}}
rounds: 8
warmup: 0
baseline: {variant: old}
"""

BODY = """
new = values['variant'] == 'new'
report('ops', (252151 if new else 129489) * (1 + wobble / 100), 'op/s')
report('soft%', 17.29 + wobble if new else 24.47 + wobble)
report('big', (1.631e8 if new else 1.867e8) * (1 + wobble / 100))
report('same', 5 + wobble)
report('twice', 2 * (252151 if new else 129489) * (1 + wobble / 100))
report('zero', (3 + wobble) if new else 0)
report('noise', hash((values['variant'], values['round'])) % 1000 + 1)
"""


@test
def a_known_difference_is_found():
    experiment(BODY, SPEC)
    result = json.loads(assay("compare", "variant=old", "variant=new", "--json", "--all",
                              check=0).stdout)
    rows = {row["metric"]: row for row in result["rows"]}
    ops = rows["ops"]
    between(ops["estimate"], 1.9472, 1.9474)
    between(1.94727, ops["low"] - 1e-4, ops["high"] + 1e-4)
    equal((ops["verdict"], ops["changed"], ops["headline"], ops["paired"]),
          ("better", True, True, True))
    equal((ops["base"]["n"], ops["new"]["n"]), (8, 8))
    equal(rows["twice"]["same_as"], "ops")
    equal(rows["same"]["changed"], False)
    # No percentage of a base of zero: a difference.
    equal(rows["zero"]["scale"], "difference")
    between(rows["zero"]["estimate"], 2.99, 3.01)
    if not result["tests"] > result["changed"]:
        raise AssertionError(result)


SUITE = """name: suite
command: ./program variant={variant} size={size} round={round}
factors: {variant: [old, new, odd], size: [1, 2, 4, 8]}
metrics: {t: {unit: ms, better: lower}}
rounds: 9
warmup: 0
baseline: {variant: old}
"""

SUITE_BODY = """
factor = {'old': 1, 'new': 2, 'odd': {'1': 4, '2': 0.25, '4': 1, '8': 1}[values['size']]}
report('t', 100 * int(values['size']) * factor[values['variant']] * (1 + wobble / 10), 'ms')
"""


@test
def several_benchmarks_are_summed_up_in_one_line():
    experiment(SUITE_BODY, SUITE)
    text = assay("show", "last", check=0).stdout
    new = next(line for line in text.splitlines() if line.startswith("all 4 of variant=new, t: "))
    contains(new, "2.00")
    contains(new, "(geometric mean); slower: size=1, size=2, size=4, size=8")
    odd = next(line for line in text.splitlines() if line.startswith("all 4 of variant=odd, t: "))
    contains(odd, "; slower: size=1; faster: size=2; no difference: 2")
    for option in [], ["--markdown"]:
        contains(assay("compare", "variant=old", "variant=new", *option, check=0).stdout, new)
    result = json.loads(assay("compare", "variant=old", "variant=new", "--json", check=0).stdout)
    equal(result["suites"], new + "\n")
    # One benchmark is no suite.
    experiment(BODY, SPEC)
    lacks(assay("compare", "variant=old", "variant=new", check=0).stdout, "geometric mean")


@test
def the_table_is_short_and_honest():
    experiment(BODY, SPEC)
    text = assay("compare", "variant=old", "variant=new", check=0).stdout
    contains(text, "1.947× [1.947, 1.947]")
    contains(text, "× faster")
    contains(text, "ops (also twice)")
    contains(text, "Benjamini-Hochberg")
    # The footer counts the headline that is called above it.
    contains(text, "1 of 1 headline row changed; the chance that any of these is an error is at most 5 %")
    lacks(text, "  same\n")
    markdown = assay("compare", "variant=old", "variant=new", "--markdown", check=0).stdout
    contains(markdown, "| base | new | new / base | n | chance | metric | |")
    csv = assay("compare", "variant=old", "variant=new", "--csv", "--all", check=0).stdout
    contains(csv, "same,,")


@test
def a_figure_beyond_its_limit_gets_its_note():
    spec = SPEC.replace("metrics: {ops: {unit: op/s, better: higher}}", """metrics:
  ops: {unit: op/s, better: higher}
  granted: {unit: '%', optional: true, note: {below: 1, say: nothing was granted}}
  heat: {note: {above: 90, say: it was hot}}""")
    experiment("report('ops', 5, 'op/s')\n"
               "if values['variant'] == 'new': report('granted', 0.25, '%')\n"
               "report('heat', 20)\n", spec)
    text = assay("answers", check=0).stdout
    contains(text, "nothing was granted: 0.25 % in the one cell that reports it (granted)")
    lacks(text, "hot")
    for note, words in (("{say: x}", "either 'below' or 'above'"), ("{below: 1}", "needs 'say'"),
                        ("{below: a, say: x}", "'a' is not a number")):
        pathlib.Path("bad.yaml").write_text(spec.replace("{above: 90, say: it was hot}", note))
        contains(assay("run", "bad.yaml", check=1).stderr, words)


@test
def the_robot_names_commits_by_their_subjects():
    def git(*words):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words],
                       check=True, capture_output=True)
    git("init", "-q", ".")
    for subject, ops in (("sort: by hand", 100), ("sort: \x1b[31m by \"library\"", 200)):
        git("commit", "-q", "--allow-empty", "-m", subject)
        experiment(f"report('ops', {ops} + wobble, 'op/s')\nreport('near', {ops} / 1000 + 100)\n",
                   SPEC.replace("factors: {variant: [old, new]}\n", "")
                   .replace("baseline: {variant: old}\n", "").replace("{variant}", "x"))
    text = assay("compare", "1", "2", "--lkp", check=0).stdout
    contains(text, '("sort: by hand")')
    contains(text, 'by "library"")')
    lacks(text, "\x1b")
    contains(text, "demo.ops")
    lacks(text, "demo.near")


@test
def a_mail_is_one_that_mail_programs_read():
    experiment(BODY, SPEC)
    assay("compare", "variant=old", "variant=new", "--mail", "m.eml", check=0,
          env={"EMAIL": "someone@example.org"})
    data = pathlib.Path("m.eml").read_bytes()
    equal(max(len(line) for line in data.split(b"\r\n")) <= 78, True, "short lines")
    equal(data.count(b"\n"), data.count(b"\r\n"))
    message = email.message_from_bytes(data, policy=email.policy.default)
    equal([str(defect) for part in message.walk() for defect in part.defects], [])
    equal(message["From"], "someone@example.org")
    equal(message["Subject"], "demo: ops +94.7 %")
    parts = {part.get_filename(): part.get_content() for part in message.iter_parts()}
    body = parts[None].replace("\r\n", "\n")
    table = assay("compare", "variant=old", "variant=new", "--lkp", check=0).stdout
    contains(body, table)
    contains(body, "testcase: demo")
    contains(parts["spec.yaml"].replace("\r\n", "\n"), "variant: [old, new]")
    contains(parts["reproduce.sh"], "assay run --db reproduce.db")
    assay("compare", "variant=old", "variant=new", "--mail", "m.eml", "--lkp", check=2)
    contains(assay("compare", "variant=old", "variant=new", "--mail", "/nowhere/m", check=1).stderr,
             "/nowhere/m")


@test
def the_robots_layout_to_the_letter():
    experiment(BODY, SPEC)
    text = assay("compare", "variant=old", "variant=new", "--lkp", check=0).stdout
    lines = text.split("\n")
    equal(lines[0], "=" * 89)
    equal(lines[1:6], ["testcase:", "  demo", "", "commit: ", '  variant=old ("variant=old")'])
    start = lines.index("-" * 16 + " " + "-" * 27 + " ")
    equal(lines[start + 1], "         %stddev     %change         %stddev")
    equal(lines[start + 2], "             \\          |                \\  ")
    contains(text, "\n    129489           +94.7%     252151        demo.ops\n")
    contains(text, "\n 1.867e+08           -12.6%  1.631e+08        demo.big\n")
    contains(text, "\n     24.47            -7.2       17.29        demo.soft%\n")
    order = [line[44:] for line in lines[start + 3:] if line.startswith(" ") and "demo." in line]
    equal(order, sorted(order))


@test
def two_experiments_are_compared_cell_by_cell():
    spec = SPEC.replace("[old, new]", "[x, y]").replace("old", "x")
    experiment("report('ops', 100 * (1 + wobble), 'op/s')", spec)
    experiment("report('ops', 100 * (1 + wobble), 'op/s')", spec + "# again\n")
    experiment("report('ops', (150 if values['variant'] == 'y' else 100) * (1 + wobble), 'op/s')",
               spec + "# third\n")
    same = json.loads(assay("compare", "1", "2", "--json", check=0).stdout)
    equal([row["verdict"] for row in same["rows"] if row["headline"]], ["same", "same"])
    equal(same["within_one_experiment"], False)
    other = json.loads(assay("compare", "1", "3", "--json", check=0).stdout)
    verdicts = {row["cell"]: row["verdict"] for row in other["rows"] if row["headline"]}
    equal(verdicts, {"variant=x": "same", "variant=y": "better"})
    contains(assay("compare", "1", "3", check=0).stdout, "8+8")
    contains(assay("compare", "1", "1", check=1).stderr, "both experiment 1")


@test
def commits_name_experiments():
    experiment("report('ops', 100 * (1 + wobble), 'op/s')", SPEC)
    assay("run", "e.yaml", "-q", "--fresh", "--commit", "abcdef0123", check=0)
    assay("run", "e.yaml", "-q", "--fresh", "--commit", "9876fedcba", check=0)
    contains(assay("compare", "abcdef", "9876fe", check=0).stdout, "base: 2 (demo, abcdef012)")


@test
def cells_are_named_as_they_are_labelled():
    experiment(SUITE_BODY, SUITE)
    for between_them in " ", ",", ", ":
        sides = [f"variant={variant}{between_them}size=4" for variant in ("old", "new")]
        rows = json.loads(assay("compare", *sides, "--json", check=0).stdout)["rows"]
        equal([row["metric"] for row in rows if row["metric"] == "t"], ["t"])
    contains(assay("compare", "variant=old,siz=4", "variant=new", check=1).stderr, "no factor 'siz'")
    # A value may have blanks, commas and equals signs of its own.
    values = ["./a -x 1,-y=2", "env A=1 ./b"]
    experiment(BODY.replace("values['variant']", "'old'"), f"""name: odd
command: "true"
factors: {{call: {json.dumps(values)}, size: [1, 2]}}
rounds: 8
warmup: 0
""")
    text = assay("compare", f"call={values[0]} size=2", f"size=2 call={values[1]}", check=0).stdout
    contains(text, f"new:  size=2 call={values[1]}")


@test
def wrong_words_are_explained():
    experiment(BODY, SPEC)
    contains(assay("compare", "variant=old", "variant=newer", check=1).stderr, "has a partner")
    contains(assay("compare", "varant=old", "varant=new", check=1).stderr, "no experiment in the store")
    contains(assay("compare", "variant=old", "2", check=2).stderr, "not one of each")
    contains(assay("compare", "1", "77", check=1).stderr, "no experiment matches '77'")
    assay("compare", "1", check=2)
    assay("compare", "1", "2", "--lkp", "--json", check=2)


@test
def few_runs_say_what_they_assume_and_one_is_not_judged():
    experiment(BODY, SPEC.replace("rounds: 8", "rounds: 3"))
    text = assay("compare", "variant=old", "variant=new", check=0).stdout
    contains(text, "1.95× faster [1.95, 1.95]")  # the same in each round: there is no noise
    lacks(text, "1.95× faster [1.95, 1.95], assuming")
    experiment(BODY.replace("(1 + wobble / 100), 'op/s'", "(1 + new * wobble), 'op/s'"),
               SPEC.replace("rounds: 8", "rounds: 3"))
    text = assay("compare", "variant=old", "variant=new", check=0).stdout
    contains(text, ", assuming log-normal noise")
    experiment(BODY, SPEC.replace("rounds: 8", "rounds: 1"))
    text = assay("compare", "variant=old", "variant=new", check=0).stdout
    contains(text, "too few")
    contains(text, "nothing can be told yet")


MATRIX = """name: cross
question: from which size on is a better?
command: ./program variant={variant} size={size} threads={threads} round={round}
factors:
  variant: [a, b]
  size: %s
  threads: %s
metrics: {rate: {unit: op/s, better: higher}}
work: done
rounds: 8
warmup: 0
baseline: {variant: a}
"""

MATRIX_BODY = """
size, threads = float(values['size']), float(values['threads'])
scale = threads / (1 + 0.05 * (threads - 1) + 0.002 * threads * (threads - 1))
side = 1 if values['variant'] == 'a' else -1
rate = 1000 * scale * (size ** 0.5 if side > 0 else 10 * size ** 0.15)
rate *= 1 + side * wobble + wobble * (threads % 3) / 2
report('rate', rate, 'op/s')
report('done', rate * 2)
"""


@test
def a_crossover_is_found_where_it_is():
    experiment(MATRIX_BODY, MATRIX % ("[64, 256, 1024, 4096]", "[1, 4]"))
    answers = json.loads(assay("answers", "--json", check=0).stdout)["answers"]
    sizes = [a for a in answers if a["kind"] == "crossover" and "size =" in a["text"]]
    equal(len(sizes), 2)
    for a in sizes:
        contains(a["text"], "a overtakes b at size = 7")
        between(a["numbers"]["size"], 700, 740)  # sqrt(s) = 10 s^0.15 at 719.7
    best = [a for a in answers if a["kind"] == "best"]
    contains(best[0]["text"], "a is best in 4 of 8 cells; b is best in 4 of 8 cells")
    few = [a for a in answers if "too few different values" in a["text"]]
    equal(len(few), 1)
    equal(few[0]["certain"], False)
    text = assay("answers", check=0).stdout
    contains(text, "from which size on is a better?")
    contains(text, "At what size does one overtake the other?")
    contains(text, "ns of CPU time for each of done")


@test
def too_few_rounds_say_so_and_how_many_it_takes():
    spec = (MATRIX % ("[64, 4096]", "[1, 4]")).replace("rounds: 8", "rounds: 1")
    experiment(MATRIX_BODY, spec)
    answers = json.loads(assay("answers", "--json", check=0).stdout)["answers"]
    best = [a for a in answers if a["kind"] == "best"]
    contains(best[0]["text"], "4 cells are undecided, 4 of them because there are fewer than 8 rounds")
    contains(best[0]["text"], "--resume 1 --rounds 8")
    contains(best[1]["text"], "too few rounds: 1 of at least 8")
    helping = [a["text"] for a in answers if a["kind"] == "saturation" and "help" in a["text"]]
    equal(set(helping), {"whether more threads help is undecided (too few rounds: 1 of at least 8)"})
    assay("run", "e.yaml", "--seed", "1", "-q", "--resume", "1", "--rounds", "8", check=0)
    contains(assay("answers", check=0).stdout, "a is best in 2 of 4 cells; b is best in 2 of 4 cells")


@test
def what_is_near_says_how_many_rounds_would_tell():
    # The sign changes in three of eight rounds: not decided, yet some number of rounds would do.
    body = "side = 1 if values['variant'] == 'a' else -1\n" \
        "report('rate', 100 * (1 + side * (-0.004 if int(values['round']) % 3 == 1 else 0.01) + wobble / 1000))"
    experiment(body, MATRIX % ("[64]", "[1]"))
    answers = json.loads(assay("answers", "--json", check=0).stdout)["answers"]
    texts = [a["text"] for a in answers if a["kind"] == "best"]
    contains(texts[0], "a and b cannot be told apart")
    contains(texts[0], "rounds would decide it")


@test
def the_scalability_law_is_fitted():
    experiment(MATRIX_BODY, MATRIX % ("[1024]", "[1, 2, 4, 8, 16, 32]"))
    answers = json.loads(assay("answers", "--json", check=0).stdout)["answers"]
    fits = [a for a in answers if a["kind"] == "saturation" and "sigma" in a["numbers"]]
    equal(len(fits), 2)
    for a in fits:
        between(a["numbers"]["sigma"], 0.045, 0.055)
        between(a["numbers"]["kappa"], 0.0018, 0.0022)
        between(a["numbers"]["peak"], 20, 24)
    contains(" ".join(a["text"] for a in answers), "more threads help up to 16")


@test
def a_cell_off_the_curve_is_a_surprise():
    body = MATRIX_BODY.replace(
        "report('rate'", "rate *= 2 if (values['variant'], size) == ('b', 256) else 1\nreport('rate'")
    experiment(body, MATRIX % ("[16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576]", "[1]"))
    answers = json.loads(assay("answers", "--json", check=0).stdout)["answers"]
    surprises = [a for a in answers if a["kind"] == "surprise"]
    equal([a["where"] for a in surprises], ["variant=b size=256 threads=1"])
    contains(surprises[0]["text"], "+100 %")


@test
def one_cell_has_nothing_to_answer():
    experiment("report('x', 1 + wobble)", "name: one\ncommand: ./program round={round}\nrounds: 2\n")
    contains(assay("answers", check=0).stdout, "nothing to compare")
    contains(assay("answers", "nothing", check=1).stderr, "no experiment matches")


main()
