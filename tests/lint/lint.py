# SPDX-License-Identifier: MIT
"""The house rules that a program can check: layering, manual pages, formatting, analysis."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from harness import *

sys.path.insert(0, str(ROOT / "tests/tools"))
import strings  # noqa: E402

# What each room of src/ may use beside itself and base/; docs/ARCHITECTURE.md says what lives there.
# A room stands below everything that it uses, so the table has no circle.
MEASURE = "numbers stats fits elf machine counters"
SAMPLES = f"{MEASURE} sampler symbols profile"
ROOMS = {
    "base": "",
    "numbers": "",
    "stats": "numbers",
    "fits": "numbers stats",
    "elf": "",
    "machine": "elf",
    "tracepoints": "machine",
    "counters": "numbers stats fits elf machine",
    "sampler": MEASURE,
    "symbols/tables": "elf",
    "symbols/dwarf": "elf symbols/tables",
    "symbols/names": "elf symbols/tables",
    "symbols": f"{MEASURE} symbols/tables symbols/dwarf symbols/names",
    "profile/code": "elf symbols",
    "profile/given": "",
    "profile": "tracepoints numbers stats fits elf sampler symbols profile/code profile/given",
    "profile/export": "sampler symbols profile profile/given",
    "timeline": f"{SAMPLES} tracepoints",
    "vm": MEASURE,
    "run": "numbers stats fits counters",
    "monitors": f"{SAMPLES} run",
    "bill": f"{SAMPLES} timeline run monitors",
    "live": f"{SAMPLES} tracepoints run monitors",
    "top": f"{SAMPLES} bill live",
    "exact": f"{SAMPLES} symbols/names vm run monitors",
    "exact/plugin": "elf vm exact",
    "spec": "numbers stats fits run monitors vm exact",
    "store": "numbers stats fits",
    "harness": "numbers stats",
    "analysis": "numbers stats fits counters profile run spec store harness",
    "session": f"{SAMPLES} vm run monitors exact spec store harness analysis",
    "cluster": "numbers stats fits machine run spec store session",
    "why": f"{SAMPLES} profile/code timeline run monitors bill store analysis session",
    "bisect": "numbers stats fits run exact analysis session why",
    "bench": "numbers stats fits elf machine counters run store harness analysis",
    "bench/allocations": "bench",
    "report/profile": "numbers stats fits profile",
    "report/text": "numbers stats fits machine counters exact store analysis why bisect report/profile",
    "report/mail": "numbers stats analysis report/text",
    "report/exact": f"{MEASURE} monitors exact report/text",
    "report/bench": "numbers stats fits machine counters analysis bench report/text",
    "report/browser": "profile report/profile",
    "report/live": "top report/browser",
    "report/metrics": "numbers stats fits store analysis",
    "report/draw": "numbers stats fits report/text",
    "report/page": "numbers stats fits profile spec store analysis why report/profile report/text report/draw",
    "report/html": "numbers stats fits profile analysis report/text report/draw report/page",
    "report/bill": "numbers stats fits profile timeline bill report/draw report/page report/html",
    "report/serve": "spec store analysis why report/text report/html",
}
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60 # with its head
ROOM_FILES_MAX = 40


def tracked(*patterns):
    result = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others",
                             "--exclude-standard", "--", *patterns],
                            text=True, capture_output=True)
    if result.returncode:
        skip("not a git checkout that git reads: " + (result.stderr.strip().splitlines() or ["?"])[0])
    return [ROOT / name for name in result.stdout.splitlines() if (ROOT / name).exists()]


def room_of(path):
    return str(path.parent.relative_to(ROOT / "src"))


@test
def includes_respect_the_order_of_rooms():
    names = list(ROOMS)
    for room, used in ROOMS.items():
        for other in used.split():
            if names.index(other) >= names.index(room):
                raise AssertionError(f"{room} stands before {other}, which it uses")
    for path in tracked("src/*.c", "src/*.h"):
        room = room_of(path)
        if room == "cmd" and re.search(r'#include "[a-z/_]+_internal\.h"', path.read_text()):
            raise AssertionError(f"{path.relative_to(ROOT)} looks into another room")
        if room == "cmd":
            continue
        if room not in ROOMS:
            raise AssertionError(f"{path.relative_to(ROOT)} is in no room that lint.py knows")
        for include in re.findall(r'#include "([a-z_]+/[a-z0-9_/]+)\.h"', path.read_text()):
            used = include.rpartition("/")[0]
            if used not in ["base", room, *ROOMS[room].split()]:
                raise AssertionError(f"{path.relative_to(ROOT)} includes {include}.h: "
                                     f"{room} may use {ROOMS[room] or 'base only'}")


@test
def only_the_judge_judges():
    """Pairing, comparing, adjusting and wording are one decision: src/analysis/judge.c."""
    judging = re.compile(r"\b(stats_compare_\w+|fdr_adjust|verdict_judge)\(")
    allowed = {"stats": None, "fits": None, "analysis": {"judge.c", "verdict.c", "verdict.h"}}
    for path in tracked("src/*.c", "src/*.h"):
        names = allowed.get(room_of(path), set())
        if names is None or path.name in names:
            continue
        found = judging.search(path.read_text())
        if found:
            raise AssertionError(f"{path.relative_to(ROOT)} calls {found[1]}: ask analysis/judge.h")


@test
def rooms_stay_small():
    counts = {}
    for path in tracked("src/*.c", "src/*.h", "workloads/*.c", "workloads/*.h"):
        counts.setdefault(path.parent, []).append(path)
    of_one_kind = {ROOT / "src/cmd", ROOT / "workloads/scale/tests"}  # a file for each
    for folder, files in counts.items():
        if len(files) > ROOM_FILES_MAX and folder not in of_one_kind:
            raise AssertionError(f"{folder.relative_to(ROOT)} has {len(files)} files")


@test
def sql_stands_in_the_store_only():
    """Statements, and the calls of sql.h: what others ask is in store.h and store_rows.h."""
    sql = re.compile(r'"[^"\n]*\b(?:SELECT [^"\n]+|INSERT INTO|DELETE FROM|UPDATE \w+ SET|'
                     r'CREATE (?:TABLE|INDEX)|PRAGMA) |\bsql_\w+\(|"store/(?:sql|store_internal)')
    for path in tracked("src/*.c", "src/*.h"):
        found = sql.search(path.read_text())
        if found and room_of(path) != "store":
            raise AssertionError(f"{path.relative_to(ROOT)} has SQL: {found.group()}")


@test
def one_reader_of_elf_files():
    for path in tracked("src/*.c", "src/*.h"):
        found = re.search(r"\bElf(?:32|64)_[EPSN]hdr\b|\bS?ELFMAG\b|\bGElf_[EPSN]hdr\b", path.read_text())
        if found and room_of(path) != "elf":
            raise AssertionError(f"{path.relative_to(ROOT)} reads ELF headers: {found.group()}")


@test
def workloads_use_base_only():
    for path in tracked("workloads/*.c", "workloads/*.h"):
        for name in re.findall(r'#include "([a-z_]+)/', path.read_text()):
            if (name in ROOMS or name in ("report", "cmd")) and name != "base":
                raise AssertionError(f"{path} includes {name}/")


# The rooms of workloads/vr, and which of the others each may use.
VR_ROOMS = {"core": set(), "net": {"core"}, "disk": {"core", "net"}, "host": {"core", "net", "disk"},
            "client": {"core", "net"}, "load": {"core", "net", "client"},
            "sim": {"core", "disk"},
            "cmd": {"core", "net", "disk", "host", "client", "load", "sim"}}
# What is made during the build, or read by another compiler from its own folder.
VR_BARE = {"config.h", "assay_vr.h", "tc_shared.h", "xdp_shared.h", "tc_broadcast.skel.h", "xdp_ack.skel.h"}


@test
def rooms_of_vr_keep_their_order():
    """Each include names its folder, and a room uses only those that it may."""
    top = ROOT / "workloads/vr"
    for path in tracked("workloads/vr/*.c", "workloads/vr/*.h"):
        room, *rest = path.relative_to(top).parts
        if not rest:
            raise AssertionError(f"{path.name} is in none of the rooms of workloads/vr")
        for name in re.findall(r'#include "([^"]+)"', path.read_text()):
            parts = name.split("/")
            if parts[0] == "vr" and parts[1] != room and parts[1] not in VR_ROOMS[room]:
                raise AssertionError(f"{path.name} in vr/{room}/ includes {name}")
            if parts[0] not in ("vr", "base") and name not in VR_BARE:
                raise AssertionError(f"{path.name} in vr/{room}/ includes {name}: name its folder")


@test
def every_file_names_its_licence():
    for path in tracked("*.c", "*.h", "*.py", "*.mjs", "*.sh", "dev", ".ci/run", "packaging/smoke"):
        head = "\n".join(path.read_text().splitlines()[:3])
        contains(head, "SPDX-License-Identifier: MIT")


FORMATTER = 14  # the version of clang-format; others break some lines elsewhere


@test
def code_is_formatted():
    files = tracked("*.c", "*.h")
    version = subprocess.run(["clang-format", "--version"], text=True, capture_output=True).stdout
    if f"version {FORMATTER}." not in version:
        skip(f"the sources are formatted by clang-format {FORMATTER}; this is {version.strip()}")
    result = subprocess.run(["clang-format", "--dry-run", "--Werror", *files], text=True,
                            capture_output=True)
    equal(result.returncode, 0, result.stderr[-3000:])


@test
def shell_scripts_pass_shellcheck():
    scripts = [path for path in tracked("dev", ".ci/run", "packaging/smoke", "*.sh")]
    result = subprocess.run(["shellcheck", "-x", *scripts], text=True, capture_output=True,
                            cwd=ROOT)
    equal(result.returncode, 0, result.stdout)


@test
def manual_pages_have_no_tables():
    """groff draws them only where tbl ran first, and lintian warns of them."""
    for page in tracked("docs/man/*.scd"):
        tables = re.findall(r"^(?:\[\[|\|\||\]\]|\[-|\|-) .*", (ROOT / page).read_text(), re.M)
        equal(tables, [], str(page))


@test
def every_verb_and_option_stands_in_its_manual_page():
    overview = (ROOT / "docs/man/assay.1.scd").read_text()
    lines = assay("--help", check=0).stdout.splitlines()
    for verb in [line.split()[0] for line in lines if line.startswith("  ")]:
        page = (ROOT / f"docs/man/assay-{verb}.1.scd").read_text()
        contains(overview, f"*{verb}*")
        for option in re.findall(r"^\s+(?:-\w,?)?\s*(--[a-z-]+)", assay(verb, "--help").stdout,
                                 re.MULTILINE):
            if option not in page:
                raise AssertionError(f"assay-{verb}.1.scd lacks {option}")


# Wordings that CONTRIBUTING.md ("How we write") replaces, and what to write instead.
COUNTED = "cells|rounds|runs|records|experiments|commits"
DIALECT = [
    (r"(?<!there )(?<!There )\bis no (?!longer|more|slower|faster|better|worse|proof)[a-z]", "is not a …"),
    (r"\btakes no words\b", "takes no arguments"),
    (r"\bunexpected word\b", "unexpected argument"),
    (r"\bclosed to (you|this user)\b", "no permission to …"),
    (r"\bcommand goes on\b", "run the same command again to resume"),
    (r"\bexcludes? each other\b", "cannot be used together"),
    (r"\bfor so long\b|\b(exactly|at least|at most) so many\b", "for this long, N rounds"),
    (r"\bcannot be decided\b", "is undecided"),
    (r"\bnot to be (had|found)\b", "not available, not found"),
    (r"\ban own \w", "a private …, its own …"),
    (r"\bstands? (there|here) twice\b", "is listed twice"),
    (r"\bthe file that is meant\b", "the right file"),
    (r"\b(this|the|a) folder\b|\bfolder %s", "directory"),
    (r"\bby the clock\b|\bmapped anew\b|\ba run of its own\b", "on a schedule, again, a separate run"),
    (r"(?<!of )(?<!than )(?<!the )(?<!points, )%(?:zu|u|lu|llu|<PRIu64>) (?:" + COUNTED + r")\b",
     "plural(count, \"cell\", \"cells\")"),
]


@test
def messages_are_plain_english():
    """Strings that a user may read, the manual and the documents: what was rewritten must not come
    back.  CONTRIBUTING.md has the wordings themselves."""
    for string in strings.strings_of([str(ROOT / "src"), str(ROOT / "workloads")]):
        for pattern, instead in DIALECT:
            if re.search(pattern, string.text):
                raise AssertionError(f"{string.path}:{string.line}: {string.text!r}: write {instead}")
    for path in tracked("docs/man/*.scd", "README.md", "CHANGELOG.md", "docs/*.md", "web/*.js",
                        "experiments/*"):
        if path.name == "SEEDS.md":  # what programs printed when it was made
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for pattern, instead in DIALECT:
                if re.search(pattern, line):
                    raise AssertionError(f"{path}:{number}: {line!r}: write {instead}")


@test
def no_leftovers_and_no_machine_paths():
    for path in tracked("*.c", "*.h", "*.py", "*.mjs", "dev", "*.md", "*.yaml", "*.scd"):
        if path.name == "lint.py":
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if re.search(r"\b(FIXME|TODO|XXX)\b|(?<![\w.])/(?:work|root|home)/\w", line):
                raise AssertionError(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")


def functions(path):
    """(lines, first line's number) of each function: clang-format puts both braces into column 1."""
    lines, start = path.read_text().splitlines(), None
    for number, line in enumerate(lines):
        if line == "{":
            start = number
            while start and not re.match(r"$|[}#/;]| \*", lines[start - 1]):
                start -= 1
        elif line == "}" and start is not None:
            yield number - start + 1, start + 1
            start = None


@test
def files_and_functions_stay_readable():
    for path in tracked("src/*.c", "src/*.h", "workloads/*.c", "workloads/*.h", "*.mjs", "web/*.js"):
        lines = len(path.read_text().splitlines())
        if lines > FILE_LINES_MAX:
            raise AssertionError(f"{path.relative_to(ROOT)} has {lines} lines; find the second noun")
        for size, first in functions(path):
            if size > FUNCTION_LINES_MAX:
                raise AssertionError(f"{path.relative_to(ROOT)}:{first}: a function of {size} lines")


# Functions of src/ that no program calls, and why they are there.
CALLED_BY_TESTS = {
    "module_address_of_elf": "tests/tools/resolve.c is held against addr2line",
    "offcpu_losses": "tests/tools/perfdata-dump.c shows all that was read",
    "perfdata_feature": "the fuzzer reads features that assay has no use for",
    "perfdata_open_fd": "the fuzzer and the unit tests have their files in memory",
    "perfdata_type_name": "tests/tools/perfdata-dump.c names records",
    "two_sample_distance": "is checked against published values",
}


def programs(build):
    """The link commands of what is installed: assay and the workloads."""
    for target in json.loads((build / "meson-info/intro-targets.json").read_text()):
        place = pathlib.Path(target["defined_in"]).relative_to(ROOT).parts[0]
        if target["type"] == "executable" and place in ("src", "workloads"):
            output = str(pathlib.Path(target["filename"][0]).relative_to(build))
            commands = subprocess.run(["ninja", "-C", build, "-t", "commands", "-s", output],
                                      text=True, capture_output=True, check=True).stdout
            yield shlex.split(commands.strip().splitlines()[-1])


def functions_in(file, *options):
    result = subprocess.run(["nm", "--defined-only", *options, file], text=True, capture_output=True,
                            cwd=os.environ["BUILD"], check=True)
    return {line.split()[-1] for line in result.stdout.splitlines() if re.search(r" [TtWw] \w+$", line)}


def reached(build, folder):
    """The functions that are left in the programs when the linker takes out what nothing reaches."""
    for command in programs(build):
        linked = folder / "linked"
        command[command.index("-o") + 1] = str(linked)
        subprocess.run([*command, "-Wl,--gc-sections"], cwd=build, check=True)
        yield from functions_in(linked)


@test
def every_function_is_reached_by_a_program():
    build = pathlib.Path(os.environ["BUILD"]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        kept = set(reached(build, pathlib.Path(folder)))
    texts = {path: path.read_text() for path in tracked("src/*.c")}
    homes = {name: path for path, text in texts.items()
             for name in re.findall(r"^\w[^\n;={]*?\b(\w+)\([^;{]*\)\n{", text, re.MULTILINE)}
    for name in sorted(functions_in("src/libassay.a", "-g") - kept - set(CALLED_BY_TESTS)):
        place = homes.get(name)
        where = str(place.relative_to(ROOT)) if place else "a source made by the build"
        # One that is called in its own file only may have become a part of its callers.
        if not place or len(re.findall(rf"(?<!struct )\b{name}\b", texts[place])) < 2:
            raise AssertionError(f"{where}: no program calls {name}")
        uses = sum(bool(re.search(rf"\b{name}\(", path.read_text()))
                   for path in tracked("src/*.c", "tests/*.c", "tests/*.h", "bench/*.c"))
        if uses < 2:
            raise AssertionError(f"{where}: only this file calls {name}: make it static")


@test
def clang_tidy_finds_nothing():
    database = os.path.join(os.environ["BUILD"], "compile_commands.json")
    if not shutil.which("clang-tidy"):
        skip("clang-tidy is not installed")
    known = {os.path.realpath(os.path.join(entry["directory"], entry["file"]))
             for entry in json.load(open(database))}
    files = [str(path) for path in tracked("src/*.c") if os.path.realpath(path) in known]
    jobs = os.cpu_count() or 1
    running = [subprocess.Popen(["clang-tidy", "-quiet", "-p", os.environ["BUILD"],
                                 *files[start::jobs]],
                                text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
               for start in range(min(jobs, len(files)))]
    output = "".join(process.communicate()[0] for process in running)
    if any(process.returncode for process in running):
        raise AssertionError(output[-4000:])


main()
