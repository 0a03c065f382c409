# SPDX-License-Identifier: MIT
"""assay-move --ping: every way answers each message once, the distribution adds up, and a stall
counts for all messages that were due during it."""
import json
import os
import signal
import subprocess
import time

from harness import *

BUILD = os.environ.get("BUILD", "build")
MOVE = f"{BUILD}/workloads/move/assay-move"
SHORT = ["--seconds", "0.2", "--warmup", "0.05", "--size", "64"]


def move(*args, check=0, **kwargs):
    result = subprocess.run([MOVE, *args], text=True, capture_output=True, timeout=400, **kwargs)
    if "Sanitizer" in result.stderr or "runtime error:" in result.stderr:
        raise AssertionError("sanitizer report:\n" + result.stderr)
    if result.returncode != check:
        raise AssertionError(f"{args}: exit {result.returncode}, not {check}\n{result.stderr}")
    return result


def ping(*args):
    return json.loads(move(*args, "--json").stdout)


def adds_up(data):
    metrics, histogram = data["metrics"], data["histogram"]
    answers = sum(bucket["count"] for bucket in histogram)
    between(answers, 1, 1e9, "answers")
    equal(metrics["ping_per_second"] * 0.2, answers, "answers per second")
    steps = [metrics["ping_" + name] for name in
             ["p50_us", "p90_us", "p99_us", "p999_us", "max_us"]]
    equal(steps, sorted(steps), "the percentiles grow")
    # The median is in the bucket in which half of the answers are reached.
    before = 0
    for bucket in histogram:
        before += bucket["count"]
        if before * 2 >= answers:
            between(metrics["ping_p50_us"] * 1e3, bucket["from_ns"], bucket["to_ns"], "the median")
            break
    return answers


@test
def every_way_answers_each_message():
    for transport in ["tcp", "unix", "udp", "pipe", "shm"]:
        for how in ["--ping", "--ping=spin"]:
            data = ping(how, "--transport", transport, *SHORT)
            adds_up(data)
            if transport != "udp":
                equal(data["metrics"]["ping_unanswered"], 0)


@test
def with_a_rate_all_that_were_due_are_accounted_for():
    for transport in ["tcp", "unix", "udp", "pipe", "shm"]:
        data = ping("--ping", "--rate", "500", "--transport", transport, *SHORT)
        equal(adds_up(data) + data["metrics"]["ping_unanswered"], 100, transport)


@test
def more_than_can_be_had_is_said():
    data = ping("--ping", "--rate", "10000000", *SHORT)
    total = sum(bucket["count"] for bucket in data["histogram"])
    equal(total + data["metrics"]["ping_unanswered"], 2000000)
    between(data["metrics"]["ping_unanswered"], 1, 2000000, "not answered")


@test
def a_stall_counts_for_all_that_were_due():
    child = subprocess.Popen([MOVE, "--ping", "--rate", "1000", "--seconds", "2", "--warmup", "0",
                              "--size", "64", "--json"], stdout=subprocess.PIPE, text=True)
    path = f"/proc/{child.pid}/task/{child.pid}/children"
    end = time.monotonic() + 240
    while not (words := open(path).read().split()):
        if time.monotonic() > end:
            raise AssertionError("nobody answers")
        time.sleep(0.01)
    time.sleep(0.2)
    os.kill(int(words[0]), signal.SIGSTOP)
    time.sleep(0.5)
    os.kill(int(words[0]), signal.SIGCONT)
    data = json.loads(child.communicate(timeout=240)[0])
    slow = sum(bucket["count"] for bucket in data["histogram"] if bucket["from_ns"] >= 50e6)
    # Half a second without answers: one a millisecond was due, and 450 of them waited for 50 ms.
    between(slow + data["metrics"]["ping_unanswered"], 400, 2000, "messages that saw the stall")


@test
def socket_options_are_taken_and_metrics_written():
    read_end, write_end = os.pipe()
    text = move("--ping=nagle,quickack", *SHORT, env=dict(os.environ, ASSAY_METRICS_FD=str(write_end)),
                pass_fds=[write_end]).stdout
    os.close(write_end)
    contains(text, "ping over tcp, nagle,quickack, 64 bytes, each after the previous one")
    with os.fdopen(read_end) as stream:
        contains(stream.read(), "assay.metric ping_p99_us ")


@test
def an_interrupt_leaves_nobody_behind():
    child = subprocess.Popen([MOVE, "--ping=spin", "--seconds", "1000"], stdout=subprocess.DEVNULL)
    path = f"/proc/{child.pid}/task/{child.pid}/children"
    end = time.monotonic() + 240
    while not (words := open(path).read().split()):
        if time.monotonic() > end:
            raise AssertionError("nobody answers")
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    equal(child.wait(60), -signal.SIGINT)
    while os.path.exists(f"/proc/{words[0]}"):
        if time.monotonic() > end:
            raise AssertionError("the process that answers lives on")
        time.sleep(0.01)


@test
def what_makes_no_sense_is_refused():
    for args, reason in [
            (["--ping=fast"], "unknown word 'fast'; use spin"),
            (["--rate", "9"], "--rate needs --ping"),
            (["--ping", "--transport", "veth"], "tcp, unix, udp, pipe and shm"),
            (["--ping", "--transport", "carrier"], "not 'carrier'"),
            (["--ping", "--variant", "send"], "cannot be used with --variant"),
            (["--ping", "--threads", "2"], "one connection"),
            (["--ping", "--size", "8"], "--size 8: must be between 16"),
            (["--ping", "--transport", "udp", "--size", "65508"], "65507"),
            (["--ping", "--transport", "unix", "--cc", "cubic"], "--cc is for TCP"),
            (["--ping", "--rate", "10000001"], "--rate 10000001: must be between")]:
        contains(move(*args, check=2).stderr, reason)
    contains(move("--ping", "--transport", "shm", "--size", "2M", check=1).stderr, "up to 1048576 bytes")


main()
