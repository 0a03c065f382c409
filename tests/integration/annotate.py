# SPDX-License-Identifier: MIT
"""`assay annotate`: source lines and instructions with their samples."""
import json
import os
import re
import shutil
import subprocess

from harness import *
from recordings import *


def shares_recording():
    return family("shares", 400, "-g")


def needs_disassembler(text):
    if "without capstone" in text:
        skip("this assay was built without capstone")


@test
def lines_and_instructions_add_up():
    data = json.loads(assay("annotate", "six", shares_recording(), "--json", check=0).stdout)
    if data["missing"]:
        skip(data["missing"])
    equal(data["symbol"], "six")
    between(sum(line["share"] for line in data["lines"]), 0.999, 1.001, "lines")
    between(sum(insn["share"] for insn in data["instructions"]), 0.999, 1.001, "instructions")
    equal(sum(insn["samples"] for insn in data["instructions"]), data["samples"])
    if not all(insn["text"] for insn in data["instructions"]):
        raise AssertionError("an instruction has no text")
    contains(data["lines"][0]["file"], "family.c")


@test
def instructions_are_objdumps():
    if not shutil.which("objdump"):
        skip("objdump is not installed")
    data = json.loads(assay("annotate", "six", shares_recording(), "--json", check=0).stdout)
    if data["missing"]:
        skip(data["missing"])
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", target("family")], text=True,
                          capture_output=True).stdout
    function = re.search(r"<six>:\n(.*?)\n\n", text, re.DOTALL)[1]
    expected = [(int(address, 16), name) for address, name in
                re.findall(r"^\s*([0-9a-f]+):\s+(\w+)", function, re.MULTILINE)]
    actual = [(insn["address"], insn["text"].split()[0]) for insn in data["instructions"]]
    expected = expected[:len(actual)]  # objdump goes on with the padding behind the function
    equal([address for address, _ in actual], [address for address, _ in expected])
    same = sum(a[1][:2] == b[1][:2] for a, b in zip(actual, expected))
    between(same / len(actual), 0.8, 1, "mnemonics as objdump's")


@test
def text_shows_source_and_assembly():
    text = assay("annotate", "six", shares_recording(), check=0).stdout
    needs_disassembler(text)
    contains(text, "# six  in family")
    contains(text, "percentages below are of these")
    if not re.search(r"^\s+\d+\.\d\d%\s+\d+  SPEND\(six", text, re.MULTILINE):
        raise AssertionError(text[:1500])
    if not re.search(r"^\s+\d+\.\d\d%\s+[0-9a-f]+:  \w+", text, re.MULTILINE):
        raise AssertionError(text[:1500])
    lacks(assay("annotate", "six", "--no-source", shares_recording()).stdout, "family.c\n")
    if re.search(r"^\s.*[0-9a-f]+:  \w", assay("annotate", "six", "--no-assembly",
                                                shares_recording()).stdout, re.MULTILINE):
        raise AssertionError("--no-assembly shows instructions")


@test
def calls_are_named():
    text = assay("annotate", "six", shares_recording(), check=0).stdout
    needs_disassembler(text)
    if not re.search(r"<(clock_gettime|cpu_ms)", text):
        raise AssertionError(text)


@test
def an_inlined_function_has_its_source():
    path = record("--call-graph", "dwarf", command=(need_target("inlines"), "1000"), frequency=1500)
    result = assay("annotate", "step", path, check=0)
    contains(result.stdout, "where it was inlined")
    contains(result.stdout, "static inline T step(T value)")


@test
def without_source_there_are_line_numbers():
    compiler = shutil.which("gcc") or skip("gcc is not installed")
    os.mkdir("gone")
    with open("gone/spin.c", "w") as file:
        file.write("#include <stdlib.h>\n"
                   "__attribute__((noinline)) void turn(long n)\n"
                   "{\n    for (volatile long i = 0; i < n; i++);\n}\n"
                   "int main(int c, char **v) { turn(atol(v[1])); return c - 2; }\n")
    subprocess.run([compiler, "-O1", "-g", "gone/spin.c", "-o", "spin"], check=True)
    subprocess.run([compiler, "-O1", "gone/spin.c", "-o", "plain"], check=True)
    shutil.rmtree("gone")
    text = assay("annotate", "turn", record(command=(os.path.abspath("spin"), "80000000")),
                 check=0).stdout
    contains(text, "The source was not found")
    if not re.search(r"\d\d%\s+4\b", text):
        raise AssertionError(text)
    text = assay("annotate", "turn", record(command=(os.path.abspath("plain"), "80000000")),
                 check=0).stdout
    contains(text, "no debug information")
    needs_disassembler(text)
    if not re.search(r"^\s+\d+\.\d\d%\s+[0-9a-f]+:  \w+", text, re.MULTILINE):
        raise AssertionError(text)


@test
def without_the_binary_there_are_addresses():
    compiler = shutil.which("gcc") or skip("gcc is not installed")
    with open("spin.c", "w") as file:
        file.write("#include <stdlib.h>\n"
                   "int main(int c, char **v)\n"
                   "{ for (volatile long i = 0, n = atol(v[1]); i < n; i++); return c - 2; }\n")
    subprocess.run([compiler, "-O1", "-g", "spin.c", "-o", "lost"], check=True)
    path = record(command=(os.path.abspath("lost"), "80000000"))
    os.remove("lost")
    result = assay("annotate", "main", path)
    # perf may have kept a copy of the binary: then all is well.
    if result.returncode:
        contains(result.stderr, "no samples in a function 'main'")
    else:
        contains(result.stdout, "# main  in lost")


@test
def the_kernel_says_what_is_missing():
    path = record("-a", "-g", command=(need_target("family"), "forks", "500"), frequency=999)
    data = json.loads(assay("report", path, "--json", "-g", "none", check=0).stdout)
    name = next((row["symbol"] for row in data["rows"]
                 if row["kernel"] and not row["symbol"].startswith("0x")), None)
    if not name:
        skip("no kernel symbols here")
    text = assay("annotate", name, path, check=0).stdout
    if "/proc/kcore" not in text and not re.search(r"[0-9a-f]{16}:  \w+", text):
        raise AssertionError(text)


@test
def names_that_are_not_there_get_suggestions():
    result = assay("annotate", "thre", shares_recording(), check=1)
    if not re.search("did you mean .*three", result.stderr):
        raise AssertionError(result.stderr)
    contains(assay("annotate", check=2).stderr, "name the function")


main()
