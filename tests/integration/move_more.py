# SPDX-License-Identifier: MIT
"""assay-move: sending by reference, many pieces, shared memory, and the sinks.  Facts, no speeds."""
import json
import os
import signal
import subprocess
import time

from harness import *

MOVE = os.path.join(os.environ.get("BUILD", "build"), "workloads/move/assay-move")
SHORT = ["--seconds", "0.2", "--warmup", "0.05"]
IS_ROOT = os.geteuid() == 0


def run(*args, check=0):
    result = subprocess.run([MOVE, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True,
                            text=True, errors="replace", timeout=400, check=False)
    words = f"assay-move {' '.join(map(str, args))}\n{result.stdout}\n{result.stderr}"
    if "Sanitizer" in result.stderr or "runtime error:" in result.stderr:
        raise AssertionError("sanitizer report: " + words)
    if check is not None and result.returncode != check:
        raise AssertionError(f"exit {result.returncode}, not {check}: {words}")
    return result


def metrics(*args):
    return json.loads(run(*args, *SHORT, "--json").stdout)["metrics"]


def verified(*args):
    found = metrics(*args, "--verify")
    if not found["verified"] > 0:
        raise AssertionError(f"{args}: nothing was verified: {found}")
    return found


def proofs(variant, ways="completions,aliasing,bpf"):
    result = run(f"--prove={ways}", "--variant", variant, "--json")
    found = json.loads(result.stdout)
    equal(len(found), 1, "proofs")
    return found[0]


def needs_root(variant, *args):
    """Skips where the variant says that it may not."""
    result = run("--variant", variant, *args, *SHORT, check=None)
    if result.returncode == 0:
        return
    if not IS_ROOT or "Linux 6.6" in result.stderr or "CONFIG_" in result.stderr \
            or "not permitted" in result.stderr:
        contains(result.stderr, "needs")
        skip(result.stderr.strip())
    raise AssertionError(result.stderr)


@test
def by_reference_every_message_arrives_unchanged():
    for variant in ("vmsplice", "sendfile", "splice"):
        for transport in ("tcp", "unix", "pipe"):
            verified("--variant", variant, "--transport", transport, "--size", 4096)
    verified("--variant", "vmsplice", "--size", 100_000)
    verified("--variant", "sendfile", "--size", 16, "--threads", 3)


@test
def by_reference_means_that_nothing_is_copied():
    for variant in ("vmsplice", "sendfile", "splice", "iovec-vmsplice", "iovec-process-vm-readv"):
        found = proofs(variant)
        equal(found["verdict"], "proven", variant)
        equal(found["ways"]["aliasing"]["finding"], "no copy", variant)
    for variant in ("send", "shm-ring", "memcpy", "memcpy-cold", "iovec-write", "iovec-writev",
                    "iovec-pwritev2"):
        found = proofs(variant)
        equal(found["verdict"], "proven", variant)
        equal(found["ways"]["aliasing"]["finding"], "copy", variant)


@test
def many_pieces_arrive_in_order():
    for variant in ("iovec-write", "iovec-writev"):
        for transport in ("unix", "pipe"):
            verified("--variant", variant, "--transport", transport, "--size", 64)
    verified("--variant", "iovec-vmsplice", "--size", 64)
    # More than one call takes (IOV_MAX is 1024), and pieces of several pages.
    for variant in ("iovec-writev", "iovec-vmsplice", "iovec-process-vm-readv"):
        verified("--variant", variant, "--size", 5000, "--pieces", 2500)
    found = metrics("--variant", "iovec-pwritev2", "--size", 100, "--pieces", 1500)
    if not found["messages_per_second"] > 0:
        raise AssertionError(found)


@test
def many_pieces_by_io_uring():
    result = run("--variant", "iovec-uring", *SHORT, check=None)
    if result.returncode and ("no variant" in result.stderr or "io_uring" in result.stderr):
        skip(result.stderr.strip())
    for transport in ("unix", "pipe"):
        verified("--variant", "iovec-uring", "--transport", transport, "--size", 64)
    verified("--variant", "iovec-uring", "--size", 5000, "--pieces", 2500)


@test
def pieces_that_are_too_many_are_refused():
    result = run("--variant", "iovec-writev", "--size", "1M", "--pieces", 1000, check=2)
    contains(result.stderr, "--pieces 1000")
    contains(run("--variant", "iovec-writev", "--transport", "tcp", check=2).stderr, "unix, pipe")


@test
def the_ring_delivers():
    verified("--variant", "shm-ring", "--size", 64, "--batch", 1)
    verified("--variant", "shm-ring", "--size", 4096, "--threads", 4)
    verified("--variant", "shm-ring", "--size", 64, "--pin", "same", "--buffer", "64k")
    # A message that is larger than the ring was to be.
    verified("--variant", "shm-ring", "--size", "1M", "--buffer", "64k")


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except FileNotFoundError:
        return []


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@test
def when_one_side_of_a_ring_dies_nothing_is_left():
    if not os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children"):
        skip("the kernel lists no children in /proc (CONFIG_PROC_CHILDREN)")
    process = subprocess.Popen([MOVE, "--variant", "shm-ring", "--seconds", "600"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 240
    sides = []
    while len(sides) < 2 and time.monotonic() < end:
        sides = children(process.pid)
        time.sleep(0.01)
    equal(len(sides), 2, "processes")
    time.sleep(0.2)
    os.kill(sides[1], signal.SIGKILL)
    _, words = process.communicate(timeout=240)
    if process.returncode == 0 or not words.startswith("assay-move: "):
        raise AssertionError(f"exit {process.returncode}: {words}")
    equal([pid for pid in sides if is_alive(pid)], [], "left running")


@test
def alone_means_nobody_to_check_or_to_connect():
    contains(run("--variant", "memcpy", "--verify", check=2).stderr, "no receiver")
    contains(run("--variant", "memcpy", "--receive", "recv", check=2).stderr, "no receiver")
    for variant in ("memcpy", "memcpy-cold"):
        found = metrics("--variant", variant, "--size", 4096, "--threads", 2)
        equal(found["send_calls_per_message"], 0, "calls of " + variant)


@test
def sockmap_delivers_past_tcp():
    needs_root("sockmap")
    found = verified("--variant", "sockmap", "--size", 4096)
    # No segment was sent, so there is no average; and its copies pass no tracepoint.
    equal([name for name in ("segment_bytes", "receive_copied_per_byte") if name in found], [])
    verified("--variant", "sockmap", "--size", 70_000, "--threads", 2)
    equal(proofs("sockmap")["ways"]["aliasing"]["finding"], "copy")


@test
def corked_sends_fill_their_segments():
    verified("--variant", "send-corked/recv-late", "--size", 4096)
    verified("--variant", "send-corked", "--size", 100, "--threads", 2)
    equal(proofs("send-corked")["verdict"], "proven")
    # Loopback takes segments of 65,483 bytes; without the cork every second one is small.
    found = metrics("--variant", "send-corked/recv-late", "--size", 4096)
    between(found["segment_bytes"], 60000, 65536)
    contains(run("--variant", "send-corked", "--transport", "unix", check=2).stderr,
             "send-corked does not support unix; it supports: tcp, veth")


@test
def a_receiver_that_is_woken_late_gets_everything():
    # The last messages are less than what it waits for.
    verified("--variant", "send/recv-late", "--size", 4096)
    verified("--variant", "send/recv-late", "--size", 100, "--threads", 2)
    equal(proofs("recv-late")["verdict"], "proven")


@test
def a_profile_contradicts_nobody():
    # Also of what a program copies itself, whether or not the C library names its functions.
    for variant in ("send", "vmsplice", "zerocopy", "shm-ring", "memcpy"):
        found = proofs(variant, "aliasing,profile")
        expected = "refused" if variant == "zerocopy" else "proven"
        equal(found["verdict"], expected, f"{variant}: {found}")


@test
def mapped_pages_hold_what_was_sent():
    for sender in ("send", "vmsplice", "zerocopy"):
        found = verified("--variant", sender, "--receive", "zerocopy-receive", "--size", 65536)
        if not 0 <= found["receive_mapped_share"] <= 100:
            raise AssertionError(found)
    found = proofs("zerocopy-receive")
    equal(found["verdict"], "proven")
    contains(found["ways"]["completions"]["words"], "of 16384 bytes")


@test
def into_the_sink_zero_copy_is_granted():
    needs_root("zerocopy-udp-sink")
    before = sorted(os.listdir("/sys/class/net"))
    found = metrics("--variant", "zerocopy-udp-sink", "--size", 4096, "--threads", 2)
    equal(found["zerocopy_refused"], 0, "refused")
    if not found["zerocopy_granted"] > 0:
        raise AssertionError(found)
    metrics("--variant", "udp-sink", "--size", 4096)
    equal(sorted(os.listdir("/sys/class/net")), before, "interfaces")
    equal(proofs("zerocopy-udp-sink")["ways"]["completions"]["finding"], "no copy")


@test
def over_loopback_zero_copy_is_not_granted():
    found = metrics("--variant", "zerocopy", "--size", 65536)
    if found["zerocopy_granted_share"] > 1:
        raise AssertionError(found)


@test
def the_sink_takes_datagrams_only():
    result = run("--variant", "zerocopy-udp-sink", "--size", 65536, check=None)
    if result.returncode == 0:
        raise AssertionError("65536 bytes in a datagram")
    contains(result.stderr, "65507")


main()
