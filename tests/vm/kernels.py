# SPDX-License-Identifier: MIT
"""assay vm, and experiments with kernels as a factor: commands in emulated machines, what comes
back of them, and that nothing is left behind."""
import email
import email.policy
import json
import os
import pathlib
import signal
import subprocess
import time

import kernel
import machine
from harness import *

LOOP = machine.BUILD / "tests/vm/vm-loop"
SCALE = machine.BUILD / "workloads/scale/assay-scale"
WORDS = "emulated: instructions are counted, times and cycles mean nothing"
NEWER = "linux-image-6.12-arm64"

# Exit codes, as assay-vm(1) has them.
NO_QEMU, OTHER_ARCH, HANGS, PANICKED, NO_MEMORY, QEMU_ENDED, NO_EVENTS = range(110, 117)


def need():
    missing = os.environ.get("ASSAY_VM_MISSING") or machine.missing()
    if missing:
        skip(missing)


def vm_run(*words, **options):
    return assay("vm", "run", *words, timeout=600, **options)


def children(pid):
    """The processes that a process has started."""
    text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


def wait_for(condition, what):
    for _ in range(6000):
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"{what} did not come")


def is_gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


AMD64_GUEST = ROOT / "build-amd64/src/cmd/assay"


def has_amd64_guest():
    return AMD64_GUEST.exists()


@test
def output_and_exit_code_are_the_commands_own():
    need()
    result = vm_run("--", LOOP, check=2)
    equal(result.stdout, "")
    contains(result.stderr, "usage: loop")
    contains(vm_run("--", "assay", "--version", check=0).stdout, "assay ")


@test
def instructions_are_counted_exactly():
    need()
    # Six instructions a turn; the program's start is some ten thousand.
    result = vm_run("-e", "instructions:u,branches", "--json", "--", LOOP, "spin", 1_000_000, check=0)
    record = json.loads(result.stdout)
    counts = {count["event"]: count for count in record["counts"]}
    between(counts["instructions:u"]["value"], 6_000_000, 6_030_000, "instructions")
    contains(counts["branches"]["not_counted"], "")
    equal((record["emulated"], record["exit_code"], record["arch"]), (WORDS, 0, "aarch64"))
    contains(record["release"], "6.")


@test
def counts_are_handed_to_whoever_runs_it():
    """As assay bisect, ab and gate ask for them; the lines of the program itself come first."""
    need()
    with open("metrics", "w+", encoding="ascii") as metrics:
        vm_run("-e", "instructions:u,branches", "--", LOOP, "spin", 1_000_000, check=0,
               env={"ASSAY_METRICS_FD": str(metrics.fileno())}, pass_fds=[metrics.fileno()])
        metrics.seek(0)
        lines = metrics.read().splitlines()
    equal(len(lines), 2, lines)
    contains(lines[0], "assay.kernel 6.")
    between(int(lines[1].removeprefix("assay.metric vm:instructions:u ")), 6_000_000, 6_030_000, "instructions")


@test
def several_cpus_are_said_not_to_count_exactly():
    need()
    result = vm_run("--cpus", 2, "-e", "instructions", "--json", "--", LOOP, "spin", 1000, check=0)
    contains(json.loads(result.stdout)["emulated"], "do not repeat exactly")


@test
def files_memory_and_users_are_as_told():
    need()
    pathlib.Path("note").write_text("taken along")
    result = vm_run("-f", "note:/etc/note", "-f", f"{LOOP}:/bin/other", "--memory", "256M",
                    "--cpus", 2, "--uid", 1000, "--", "other", "beside", 1, "assay", "doctor",
                    "--quick", "--json", check=0)
    record = json.loads(result.stdout)
    findings = {finding["id"]: finding for finding in record["machine"]["findings"]}
    equal(findings["system-wide"]["state"], "no", "what root may")


@test
def what_cannot_be_done_gets_a_reason():
    need()
    dynamic = "/bin/sh" if os.uname().machine == "aarch64" else ASSAY
    for words, code, expected in (
            (("--kernel", "linux-image-0.0-arm64"), 125, "assay vm fetch linux-image-0.0-arm64"),
            (("--kernel", "/nowhere/vmlinuz"), 125, "/nowhere/vmlinuz"),
            (("--arch", "vax"), 125, "'vax' is not an architecture"),
            (("--arch", "x86_64"), OTHER_ARCH, "is for") if has_amd64_guest() else
            (("--arch", "x86_64"), 125, "no static assay for x86_64"),
            (("--memory", "1M"), 125, "at least 64M"),
            (("--file", "/nowhere/x"), 125, "/nowhere/x"),
            (("--file", f"{LOOP}:bin/x"), 125, "must start with /"),
            (("--guest", LOOP.parent), 125, "assay for the machine"),
            (("--accel", "magic"), 125, "not kvm or tcg")):
        result = vm_run(*words, "--", "assay", "--version", check=code)
        contains(result.stderr, expected)
    native = os.uname().machine == "aarch64"
    contains(vm_run("--", dynamic, check=125 if native else OTHER_ARCH).stderr, dynamic)
    os.mkdir("empty")
    result = vm_run("--", "assay", "--version", check=NO_QEMU, env={"PATH": os.path.abspath("empty")})
    contains(result.stderr, "qemu-system-aarch64 is not installed (Debian's package: qemu-system-arm)")
    assay("vm", "run", check=2)
    assay("vm", "sing", check=2)
    assay("vm", check=2)
    contains(assay("vm", "--help", check=0).stdout, "--boot-timeout")


@test
def why_a_command_did_not_start_or_live_is_told():
    need()
    pathlib.Path("script").write_text("#!/bin/sh\n")
    pathlib.Path("script").chmod(0o755)
    contains(vm_run("-f", "script:/bin/script", "--", "script", check=127).stderr, "no shell or interpreters")
    contains(vm_run("--", "nowhere", check=127).stderr, "nowhere: No such file or directory")
    result = vm_run("--memory", "256M", "-e", "instructions", "--", LOOP, "touch", 54_000, check=NO_MEMORY)
    contains(result.stderr, "the machine ran out of memory")


@test
def events_that_no_machine_counts_are_a_failure_of_its_own():
    need()
    result = vm_run("-e", "branches,branch-misses", "--", LOOP, "spin", 1000, check=NO_EVENTS)
    contains(result.stderr, "counts none of these events: branches: ")
    # The command's own failure comes first.
    vm_run("-e", "branches", "--", LOOP, check=2)


@test
def a_panic_is_told_with_its_reason():
    need()
    result = vm_run("--append", "rdinit=/nowhere", "--", "assay", "--version", check=PANICKED)
    contains(result.stderr, "its kernel panicked: ")


@test
def a_killed_emulator_is_noticed():
    need()
    process = subprocess.Popen([ASSAY, "vm", "run", "--", str(LOOP), "spin", str(10 ** 15)], text=True,
                               stderr=subprocess.PIPE)
    os.kill(wait_for(lambda: children(process.pid), "QEMU")[0], signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    equal(process.returncode, QEMU_ENDED, "exit code")
    contains(errors, "QEMU was killed by signal 9")


@test
def a_command_without_end_is_ended_in_time():
    need()
    result = vm_run("--timeout", 2, "--", LOOP, "spin", 10 ** 15, check=124)
    contains(result.stderr, "--timeout")


@test
def a_kernel_that_does_not_boot_is_told_with_its_last_words():
    need()
    pathlib.Path("image").write_bytes(b"\0" * 8192)
    contains(vm_run("--kernel", "./image", "--", "assay", check=125).stderr, "is not a kernel")
    pathlib.Path("image").write_bytes(b"\0" * 56 + b"ARMd" + b"\0" * 8192)
    result = vm_run("--kernel", "./image", "--boot-timeout", 3, "--", "assay", "--version",
                    check=HANGS)
    contains(result.stderr, "the emulated machine (./image)")


def interrupted(number):
    """Sends the signal while the command runs in the machine; assay's exit code."""
    process = subprocess.Popen([ASSAY, "vm", "run", "--", str(LOOP), "spin", str(10 ** 15)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        qemu = wait_for(lambda: children(process.pid), "QEMU")[0]
        process.send_signal(number)
        code = process.wait(60)
        wait_for(lambda: is_gone(qemu), "the end of QEMU")
        return code
    finally:
        process.kill()
        process.wait()


@test
def nothing_is_left_after_signals():
    need()
    equal(interrupted(signal.SIGINT), 130, "exit code")
    equal(interrupted(signal.SIGKILL), -9, "exit code")


@test
def kernels_that_cannot_be_fetched_get_a_reason():
    cache = {"XDG_CACHE_HOME": os.getcwd()}
    result = assay("vm", "fetch", "linux-image-arm64", env=dict(cache, PATH="/nonexistent"), check=1)
    contains(result.stderr, "apt-config")
    # Nothing half done is left to be taken for good.
    equal(os.listdir("assay/vm/kernels"), [], "kernels")
    contains(assay("vm", "list", env=cache, check=0).stdout, "no kernels")
    equal(json.loads(assay("vm", "list", "--json", env=cache, check=0).stdout), [])
    contains(assay("vm", "fetch", "linux-image-6.1", check=1).stderr, "--arch")
    assay("vm", "fetch", check=2)


@test
def without_a_network_that_is_said():
    if not pathlib.Path("/usr/bin/apt-get").exists():
        skip("no apt here")
    offline = {"XDG_CACHE_HOME": os.getcwd(), "http_proxy": "http://127.0.0.1:9",
               "https_proxy": "http://127.0.0.1:9"}
    if "Acquire::http" in subprocess.run(["apt-config", "dump"], text=True,
                                         capture_output=True).stdout.replace("http::Timeout", ""):
        skip("apt has a proxy of its own here")
    result = assay("vm", "fetch", "linux-image-arm64", env=offline, check=1, timeout=400)
    contains(result.stderr, "no package linux-image-arm64")
    contains(result.stderr, "apt printed")


def spec(kernels, more="", operations=2000):
    names = ", ".join(f'{{name: "{name}", image: {image}}}' for name, image in kernels)
    pathlib.Path("spec.yaml").write_text(f"""
name: kernels
command: {SCALE} brk2 --ops {operations}
factors:
  kernel: [{names}]
baseline: {{kernel: "{kernels[0][0]}"}}
work: operations
{more}
""")


@test
def kernels_are_a_factor():
    need()
    spec((("a", kernel.DEFAULT_PACKAGE), ("b", kernel.find().image)),
         "rounds: 2\nwarmup: 0\nprofile: all\n"
         "monitors: [perf-profile, proc-vmstat, interrupts, slabinfo, mpstat, perf-sched, numastat]\n"
         "vm: {memory: 256M, rounds_per_boot: 1}")
    said = assay("run", "spec.yaml", check=0, timeout=600)
    contains(said.stderr, "watches this machine, not the emulated ones: perf-sched")
    contains(said.stderr, "not available in emulated machines: numastat")
    contains(said.stderr, "mpstat.cpu.all.idle% (%)")
    contains(said.stdout, WORDS)
    contains(said.stdout, "start-up, as a run with --ops 0 counts it")
    contains(said.stderr, "workload (op/s)")
    compared = assay("compare", "kernel=a", "kernel=b", "--all", check=0).stdout
    contains(compared, WORDS)
    contains(compared, "perf-stat.overall.path-length")
    lkp = assay("compare", "kernel=a", "kernel=b", "--all", "--lkp", check=0).stdout
    contains(lkp, "perf-stat.overall.path-length")
    contains(lkp, "perf-profile.children.cycles-pp.do_brk_flags")
    contains(lkp, WORDS)
    document = json.loads(assay("compare", "kernel=a", "kernel=b", "--json", "--all", check=0).stdout)
    contains(document["emulated"], WORDS)
    contains(document["layouts"], "layout")
    rows = {row["metric"]: row for row in document["rows"]}
    # Times of an emulated machine are not kept at all.
    for name in ("wall", "user", "sys", "workload", "per_process_ops", "perf-stat.total.cycles"):
        equal(name in rows, False, name)
    # What the machine did is read in it, before and after the command.
    between(rows["proc-vmstat.pgfault"]["base"]["median"], 50, 100_000, "page faults in the machine")
    equal([name for name in rows if name.startswith("interrupts.")] != [], True, "interrupts")
    between(rows["proc-vmstat.nr_free_pages"]["base"]["median"], 10_000, 65_536, "free pages of 256 MiB")
    equal([name for name in rows if name.startswith("mpstat.")], [], "shares of time")
    # The same kernel twice: the same counts but for a little.
    row = rows["perf-stat.overall.path-length"]
    between(row["new"]["median"] / row["base"]["median"], 0.98, 1.02, "ratio")
    between(row["base"]["median"], 3000, 30000, "instructions for each call")
    equal(rows["operations"]["base"]["median"], 2000)
    # What the program takes with no operations is known, and not in the count of one.
    start = rows["perf-stat.startup.instructions"]["base"]["median"]
    total = rows["perf-stat.total.instructions"]["base"]["median"]
    between(start, 100_000, 3_000_000, "instructions of the start")
    between(row["base"]["median"] * 2000 / (total - start), 0.99, 1.01, "share of the operations")
    # What booting took, once for each boot.
    boots = rows["boot-time.instructions"]
    between(boots["base"]["median"], 20_000_000, 10_000_000_000, "instructions of a boot")
    between(boots["new"]["median"] / boots["base"]["median"], 0.98, 1.02, "ratio of two boots")
    environment = json.loads(assay("show", "last", "--environment", check=0).stdout)
    equal(environment["vm"]["memory_bytes"], 256 << 20)
    equal(list(environment["kernels"]), ["a", "b"])
    contains(environment["kernels"]["a"]["release"], "6.")
    for words in ((), ("--markdown",)):
        contains(assay("diff", "kernel=a", "kernel=b", *words, check=0).stdout, WORDS)
    contains(assay("diff", "kernel=a", "kernel=b", "--csv", check=0).stderr, WORDS)
    (found,) = json.loads(assay("diff", "kernel=a", "kernel=b", "--json", check=0).stdout)["diffs"]
    contains(found["emulated"], WORDS)
    assay("html", "last", "-o", "page.html", check=0)
    verdict = pathlib.Path("page.html").read_text().partition('id="table"')[0]
    contains(verdict, WORDS)
    contains(assay("compare", "page.html", "page.html", check=0).stdout, WORDS)
    assay("compare", "kernel=a", "kernel=b", "--mail", "m.eml", check=0)
    message = email.message_from_bytes(pathlib.Path("m.eml").read_bytes(),
                                       policy=email.policy.default)
    parts = {part.get_filename(): part.get_content().replace("\r\n", "\n")
             for part in message.iter_parts()}
    release = environment["kernels"]["a"]["release"]
    contains(parts[None], f'commit: \n  {release} ("Linux {release}, Debian 6.')
    contains(parts[None], "compiler/kconfig/rootfs/tbox_group/testcase:\n  gcc-")
    contains(parts[None], "256 MiB of memory, kernel command line: nokaslr norandmaps")
    contains(parts[None], "(the whole change)")
    contains(parts[f"config-{release}"], "CONFIG_ARM64=y")
    contains(parts["reproduce.sh"], f"image: linux-image-{release}_6.")
    pathlib.Path("again").mkdir()
    subprocess.run(["sh", "-s", "--", "--rounds", "1", "-q"], input=parts["reproduce.sh"], text=True,
                   cwd="again", check=True, timeout=300, capture_output=True,
                   env=dict(os.environ, PATH=f"{pathlib.Path(ASSAY).parent}:{os.environ['PATH']}"))
    why = assay("explain", "kernel=a", "kernel=b", "--json", check=0)
    contains(why.stderr, "these cells ran in emulated machines")
    (found,) = json.loads(why.stdout)["diffs"]
    functions = [row["function"] for row in found["rows"]]
    equal("do_brk_flags" in functions, True, f"do_brk_flags in {functions[:40]}")


@test
def what_a_spec_cannot_mean_is_refused():
    need()
    spec((("a", "linux-image-0.0-arm64"),))
    contains(assay("run", "spec.yaml", check=1).stderr, "assay vm fetch linux-image-0.0-arm64")
    spec((("a", kernel.DEFAULT_PACKAGE),), "shell: true")
    contains(assay("run", "spec.yaml", check=1).stderr, "needs a shell")
    spec((("a", kernel.DEFAULT_PACKAGE),), "vm: {memory: tiny}")
    contains(assay("run", "spec.yaml", check=1).stderr, "vm.memory")
    spec((("a", kernel.DEFAULT_PACKAGE),), "vm: {cpu: 2}")
    contains(assay("run", "spec.yaml", check=1).stderr, "cpus")
    pathlib.Path("spec.yaml").write_text("name: x\ncommand: x\nvm: {cpus: 2}\n")
    contains(assay("run", "spec.yaml", check=1).stderr, "no factor 'kernel'")


@test
def a_newer_kernel_takes_fewer_instructions_for_brk():
    need()
    try:
        fetched = assay("vm", "fetch", NEWER, timeout=400)
    except subprocess.TimeoutExpired:
        skip(f"{NEWER} takes too long to fetch here")
    if fetched.returncode:
        skip(f"{NEWER} cannot be fetched here: {fetched.stderr.strip()[:200]}")
    spec((("6.1", kernel.DEFAULT_PACKAGE), ("6.12", NEWER)), "rounds: 1\nwarmup: 0", 4000)
    assay("run", "spec.yaml", check=0, timeout=600)
    document = json.loads(assay("compare", "kernel=6.1", "kernel=6.12", "--json", "--all",
                                check=0).stdout)
    row = next(row for row in document["rows"]
               if row["metric"] == "perf-stat.overall.path-length")
    between(row["new"]["median"] / row["base"]["median"], 0.4, 0.95, "ratio")


@test
def a_machine_of_another_kind_boots():
    program = AMD64_GUEST
    if not program.exists():
        skip("build-amd64 is not built; ./dev guests builds it")
    if not kernel.find("linux-image-cloud-amd64"):
        skip("no x86_64 kernel here; 'assay vm fetch linux-image-cloud-amd64' gets it")
    result = vm_run("--kernel", "linux-image-cloud-amd64", "--accel", "tcg", "--json", "--",
                    "assay", "--version", check=0)
    record = json.loads(result.stdout)
    equal((record["arch"], record["accel"]), ("x86_64", "tcg"))
    contains(record["stdout"], "assay ")


main()
