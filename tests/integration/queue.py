# SPDX-License-Identifier: MIT
"""assay-queue: every queue moves every item once and in order, bad settings are refused with a
reason, the results come as table, JSON and metrics, and the seed's unsafe rule is caught."""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from harness import *

BUILD = os.environ.get("BUILD", "build")
QUEUE = f"{BUILD}/workloads/queue/assay-queue"
ITEMS = "20000"


def queue(*args, check=0, **kwargs):
    result = subprocess.run([QUEUE, *args], text=True, capture_output=True, timeout=400, **kwargs)
    if "Sanitizer" in result.stderr or "runtime error:" in result.stderr:
        raise AssertionError("sanitizer report:\n" + result.stderr)
    if result.returncode != check:
        raise AssertionError(f"{args}: exit {result.returncode}, not {check}\n{result.stderr}")
    return result


def every_kind():
    for name in ["spsc", "mpmc", "faa", "mutex", "pipe", "eventfd"]:
        yield ["--queue", name]
    for nodes in ["malloc", "pool", "cache"]:
        for reclaim in ["hazard", "epoch", "tagged"]:
            if (nodes, reclaim) != ("malloc", "tagged"):
                yield ["--queue", "ms", "--nodes", nodes, "--reclaim", reclaim]


@test
def every_queue_delivers_each_item_once_and_in_order():
    for kind in every_kind():
        many = [] if kind[1] == "spsc" else ["--producers", "3", "--consumers", "2"]
        contains(queue(*kind, *many, "--items", ITEMS).stdout, "20,000 items, each once")


@test
def batches_large_payloads_and_sleeping_threads_work_too():
    for kind in every_kind():
        many = [] if kind[1] == "spsc" else ["--producers", "2", "--consumers", "3"]
        queue(*kind, *many, "--items", ITEMS, "--batch", "7", "--payload", "64", "--wait", "sleep")


@test
def a_tiny_ring_wraps():
    for name in ["spsc", "mpmc", "mutex"]:
        queue("--queue", name, "--items", "3000", "--capacity", "2")
        queue("--queue", name, "--items", "3000", "--capacity", "3", "--batch", "64")


@test
def results_come_as_json_and_as_metrics():
    read_end, write_end = os.pipe()
    result = queue("--queue", "mpmc", "--items", ITEMS, "--latency", "--json",
                   env=dict(os.environ, ASSAY_METRICS_FD=str(write_end)), pass_fds=[write_end])
    os.close(write_end)
    with os.fdopen(read_end) as stream:
        lines = stream.read().splitlines()
    data = json.loads(result.stdout)
    equal(data["verified"], True)
    equal(data["settings"]["items"], int(ITEMS))
    printed = {}
    for line in lines:
        word, name, value, unit = line.split()
        equal(word, "assay.metric")
        printed[name] = float(value)
    equal(set(printed), set(data["metrics"]))
    for name in ["mops", "cpu_ns_per_op", "peak_bytes", "latency_p50_ns", "latency_p999_ns"]:
        between(printed[name], 1e-9, 1e18, name)
    between(printed["latency_p50_ns"], 0, printed["latency_max_ns"], "the median latency")


@test
def round_trips_are_measured():
    metrics = json.loads(queue("--queue", "spsc", "--round-trip", "--items", "2000",
                               "--json").stdout)["metrics"]
    between(metrics["round_trip_ns"], 1, 1e12, "a round trip")


@test
def memory_of_a_burst_goes_back_where_the_header_says_so():
    metrics = json.loads(queue("--queue", "faa", "--burst", "--items", "1000000", "--producers", "2",
                               "--json").stdout)["metrics"]
    if os.environ.get("ASSAY_SANITIZED"):
        skip("the sanitizer's own memory is counted, too")
    between(metrics["peak_growth_bytes"], 9e6, 40e6, "the peak")
    between(metrics["after_growth_bytes"], 0, 4e6, "what stayed")


@test
def with_every_way_to_wait_everything_arrives():
    for kind in ["spsc", "mpmc", "faa", "ms", "mutex"]:
        for how in ["adaptive", "adaptive:1", "pause", "pause:3", "pause:1000", "yield", "sleep"]:
            data = json.loads(queue("--queue", kind, "--items", ITEMS, "--wait", how, "--json").stdout)
            equal(data["settings"]["wait"], how)
    # Spinning threads that share a CPU get on by time slices only.
    queue("--queue", "mpmc", "--items", "2000", "--wait", "spin")


@test
def an_interrupt_leaves_nothing_behind():
    for kind in [["--queue", "mpmc"], ["--queue", "faa", "--wait", "sleep"], ["--queue", "pipe"]]:
        child = subprocess.Popen([QUEUE, *kind, "--items", "1000000000000", "--producers", "2"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        folder = f"/proc/{child.pid}"
        # Two producers, a consumer and who waits for them.
        end = time.monotonic() + 240
        while len(os.listdir(folder + "/task")) < 4:
            if time.monotonic() > end:
                raise AssertionError("the threads have not started")
            time.sleep(0.01)
        with open(folder + "/maps") as maps:
            shared = [line for line in maps if "/dev/shm" in line or "SYSV" in line]
        equal(shared, [], "shared memory that would stay")
        os.killpg(child.pid, signal.SIGINT)
        child.communicate(timeout=240)
        equal(child.returncode, -signal.SIGINT)
        try:
            os.killpg(child.pid, 0)
        except ProcessLookupError:
            continue
        raise AssertionError("a process of the group is left")


@test
def bad_settings_are_refused_with_a_reason():
    for args, reason in [
            (["--queue", "nothing"], "available: spsc, mpmc"),
            ([], "--queue is missing"),
            (["--queue", "spsc", "--producers", "2"], "one producer and one consumer"),
            (["--queue", "ms", "--nodes", "malloc", "--reclaim", "tagged"], "keeps its type"),
            (["--queue", "ms", "--nodes", "heap"], "--nodes must be malloc, pool or cache"),
            (["--queue", "mpmc", "--nodes", "pool"], "has no nodes"),
            (["--queue", "mpmc", "--batch", "513"], "--batch must be between 1 and 512"),
            (["--queue", "mpmc", "--payload", "12"], "multiple of 8"),
            (["--queue", "pipe", "--payload", "24"], "power of two"),
            (["--queue", "mpmc", "--items", "0"], "--items must be"),
            (["--queue", "faa", "--capacity", "8"], "unbounded"),
            (["--queue", "mpmc", "--backlog", "8"], "bounded by --capacity"),
            (["--queue", "mpmc", "--burst"], "--burst is for unbounded"),
            (["--queue", "faa", "--burst", "--backlog", "9"], "--burst is for unbounded"),
            (["--queue", "mutex", "--wait", "long"], "--wait must be adaptive, spin"),
            (["--queue", "mutex", "--wait", "spin:3"], "not 'spin:3'"),
            (["--queue", "mutex", "--wait", "pause:"], "not 'pause:'"),
            (["--queue", "mutex", "--wait", "pause:-1"], "not 'pause:-1'"),
            (["--queue", "mutex", "--wait", "adaptive:1000001"], "up to 1000000 pauses"),
            (["--queue", "mpmc", "--pin", "99999"], "not allowed to use CPU"),
            (["--queue", "mpmc", "--round-trip", "--batch", "2"], "--round-trip is for"),
            (["--queue", "mpmc", "left"], "unexpected argument"),
            (["--queue", "mpmc", "--colour"], "unknown option")]:
        code = 1 if "--pin" in args else 2
        contains(queue(*args, check=code).stderr, reason)


EXAMPLE = """
#include <assay-queue/faa.h>
#include <assay-queue/mpmc.h>
#include <assay-queue/ms.h>
#include <assay-queue/spsc.h>
#include <assay-queue/wait.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    size_t bytes = (spsc_bytes(8, 8) + mpmc_bytes(8, 8) + 63) / 64 * 64;
    char *memory = (char *)aligned_alloc(64, bytes + 64);
    memset(memory, 0, bytes);
    struct spsc *one = spsc_init(memory, 8, 8);
    struct mpmc *any = mpmc_init(memory + (spsc_bytes(8, 8) + 63) / 64 * 64, 8, 8);
    struct faa *list = (struct faa *)aligned_alloc(64, sizeof(*list));
    struct ms *nodes = (struct ms *)aligned_alloc(64, sizeof(*nodes));
    struct faa_thread list_thread;
    struct ms_thread nodes_thread;
    struct queue_waiter waiter = QUEUE_WAITER;
    uint64_t item = 7, sum = 0;
    if (!faa_init(list, 8) || !faa_join(list, &list_thread) ||
        nodes_init(&nodes->nodes, NODES_CACHE, 8, 1000) < 0 ||
        !ms_init(nodes, RECLAIM_HAZARD, queue_barrier_is_cheap(), RECLAIM_BATCH) ||
        !ms_join(nodes, &nodes_thread))
        return 1;
    QUEUE_WAIT_FOR(&waiter, spsc_try_push(one, &item, 8));
    QUEUE_WAIT_FOR(&waiter, spsc_try_pop(one, &item, 8));
    sum += item;
    QUEUE_WAIT_FOR(&waiter, mpmc_poll_push(any, &item, 8));
    QUEUE_WAIT_FOR(&waiter, mpmc_poll_pop(any, &item, 8));
    sum += item;
    QUEUE_WAIT_FOR(&waiter, faa_push(list, &list_thread, &item, 8));
    QUEUE_WAIT_FOR(&waiter, faa_try_pop(list, &list_thread, &item, 8));
    sum += item;
    QUEUE_WAIT_FOR(&waiter, ms_push(nodes, &nodes_thread, &item, 8));
    QUEUE_WAIT_FOR(&waiter, ms_try_pop(nodes, &nodes_thread, &item, 8));
    printf("%d\\n", (int)(sum + item));
    return mpmc_try_pop(any, &item, 8) || spsc_try_pop(one, &item, 8);
}
"""


@test
def a_program_of_others_finds_headers_and_library_by_pkg_config():
    if os.environ.get("ASSAY_SANITIZED"):
        skip("the library has the sanitizer in it")
    compilers = [["gcc", "-std=c11"], ["clang", "-std=c11"], ["g++", "-std=c++17"],
                 ["clang++", "-std=c++17"]]
    compilers = [c for c in compilers if shutil.which(c[0])]
    if not compilers or not shutil.which("meson") or not shutil.which("pkg-config"):
        skip("a compiler, meson or pkg-config is missing")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--tags", "devel",
                        "--destdir", folder], check=True, timeout=400)
        found = [path for path, _, names in os.walk(folder) if "assay-queue.pc" in names]
        equal(len(found), 1, "one assay-queue.pc is installed")
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "assay-queue"],
                               env=dict(os.environ, PKG_CONFIG_PATH=found[0],
                                        PKG_CONFIG_SYSROOT_DIR=folder,
                                        PKG_CONFIG_ALLOW_SYSTEM_CFLAGS="1"),
                               check=True, text=True, capture_output=True).stdout.split()
        for compiler in compilers:
            is_c = compiler[1] == "-std=c11"
            source = os.path.join(folder, "example.c" if is_c else "example.cc")
            with open(source, "w") as stream:
                stream.write(EXAMPLE)
            strict = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror"]
            subprocess.run([*compiler, *strict, "-O2", source, "-o", folder + "/example", *flags],
                           check=True, timeout=400)
            result = subprocess.run([folder + "/example"], text=True, capture_output=True, timeout=240)
            equal((result.returncode, result.stdout), (0, "28\n"), " ".join(compiler))


@test
def the_variants_of_the_experiment_compile_and_run():
    if os.environ.get("ASSAY_SANITIZED") or not shutil.which("c++"):
        skip("the experiment's own compiler calls: once is enough, and a C++ compiler is needed")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([str(ROOT / "workloads/queue/build-variants"), folder, "-O0"], check=True, timeout=600)
        for name in ["ms-malloc", "ms-pool", "ms-cache", "faa", "seed"]:
            subprocess.run([f"{folder}/{name}", "--items", "1000"], check=True, timeout=240,
                           stdout=subprocess.DEVNULL)


@test
def the_options_stand_in_the_manual_page():
    page = (ROOT / "docs/man/assay-queue.1.scd").read_text()
    for option in re.findall(r"(--[a-z-]+)", queue("--help").stdout):
        contains(page, option)


@test
def the_twin_of_the_seed_delivers():
    program = f"{BUILD}/workloads/queue/seed-queue"
    if not os.path.exists(program):
        skip("no C++ compiler")
    result = subprocess.run([program, "--items", ITEMS, "--producers", "2",
                             "--consumers", "2"], text=True, capture_output=True, timeout=400)
    equal(result.returncode, 0, result.stderr)
    contains(result.stdout, "assay.metric mops")


@test
def address_sanitizer_catches_the_seeds_unsafe_rule():
    program = f"{BUILD}/tests/unit/queue/queue-unsafe"
    if not os.path.exists(program):
        skip("no AddressSanitizer for this compiler")
    for _ in range(5):
        result = subprocess.run([program], text=True, capture_output=True, timeout=400)
        if "heap-use-after-free" in result.stderr:
            return
    raise AssertionError("five runs and no report:\n" + result.stdout + result.stderr)


main()
