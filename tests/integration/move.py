# SPDX-License-Identifier: MIT
"""assay-move: every variant moves what it says, claims hold, and whatever goes wrong says so."""
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time

from harness import *

MOVE = str(pathlib.Path(os.environ.get("BUILD", "build")) / "workloads/move/assay-move")
ROOT_USER = os.geteuid() == 0
SHORT = ["--seconds", "0.05", "--warmup", "0.02"]


def move(*args, check=0, timeout=300, **kwargs):
    result = subprocess.run([MOVE, *map(str, args)], text=True, capture_output=True,
                            stdin=subprocess.DEVNULL, timeout=timeout, **kwargs)
    if "Sanitizer" in result.stderr or "runtime error:" in result.stderr:
        raise AssertionError("sanitizer report:\n" + result.stderr)
    if check is not None and result.returncode != check:
        raise AssertionError(f"assay-move {' '.join(map(str, args))}: exit {result.returncode}, not "
                             f"{check}\n{result.stdout}\n{result.stderr}")
    return result


def run(*args):
    """A short run; its JSON, or None where the kernel does not do that at all."""
    result = move("--json", *SHORT, *args, check=None)
    if result.returncode and re.search(r"io_uring is not allowed|no io_uring|does not do that|"
                                       r"SO_ZEROCOPY is refused|needs root", result.stderr):
        return None
    equal(result.returncode, 0, f"{args}: {result.stderr}")
    return json.loads(result.stdout)


def variants(side):
    rows = [line.split() for line in move("--list").stdout.splitlines()[1:]]
    return [row[0] for row in rows if row[1] == side]


def verified(*args):
    document = run("--verify", *args)
    if document and not document["metrics"]["verified"] > 0:
        raise AssertionError(f"{args}: nothing verified: {document}")
    return document


def children(pid):
    listed = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(pid)], text=True,
                            capture_output=True).stdout
    return {line.split()[1]: int(line.split()[0]) for line in listed.splitlines()}


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_for(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("waited in vain: " + what)
        time.sleep(0.02)


class Long:
    """A run that goes on until something happens to it."""

    def __enter__(self):
        self.process = subprocess.Popen([MOVE, "--seconds", "600", "--warmup", "0"], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for(lambda: {"move-send", "move-receive"} <= set(children(self.process.pid)),
                 "both processes")
        self.children = children(self.process.pid)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


@test
def every_sender_arrives_unchanged():
    missing = []
    for name in variants("send"):
        for size in (64, 5000, 65536):
            if not verified("--variant", name, "--size", size) and name not in missing:
                missing.append(name)
    print(f"# not on this kernel: {missing}" if missing else "# all of them")
    if "send" in missing or "sendmsg" in missing:
        raise AssertionError(f"plain sends must work: {missing}")


@test
def a_window_waits_for_its_first_message():
    """A millisecond is over before a receiver that is woken late has its first 512 KiB."""
    found = json.loads(move("--variant", "send/recv-late", "--size", "64", "--threads", "8",
                            "--seconds", "0.001", "--warmup", "0", "--json", check=0).stdout)
    for name in ("cpu_ns_per_kb", "send_cpu_ns_per_kb", "send_calls_per_message",
                 "receive_calls_per_message"):
        if name not in found["metrics"]:
            raise AssertionError(f"there is no {name}: {found}")


@test
def every_receiver_sees_all():
    for name in variants("receive"):
        if name == "trunc":
            contains(move("--variant", name, "--verify", *SHORT, check=1).stderr,
                     "nothing to --verify")
            run("--variant", name)
        else:
            verified("--variant", name)
    for name in ("shm-ring-receive", "sockmap-receive"):
        if name in variants("receive"):
            contains(move("--variant", "send", "--receive", name, check=2).stderr,
                     "the receive side of")


@test
def every_transport_carries():
    for transport in ("unix", "pipe", "udp"):
        for name in ("send", "sendmsg", "copy-send", "batch-sendmsg"):
            document = verified("--variant", name, "--transport", transport, "--size", 1000)
            equal(document["transport"], transport)


@test
def veth_carries_between_namespaces():
    if not ROOT_USER:
        contains(move("--transport", "veth", *SHORT, check=1).stderr, "needs root")
        skip("network namespaces need root")
    result = move("--json", "--transport", "veth", "--verify", *SHORT, check=None)
    if "namespace" in result.stderr or "veth" in result.stderr:
        skip("no network namespaces here: " + result.stderr.strip())
    equal(result.returncode, 0, result.stderr)
    between(json.loads(result.stdout)["metrics"]["segment_bytes"], 100, 65536, "segment")


@test
def several_threads_and_odd_fields():
    document = verified("--variant", "sendmsg", "--threads", 3, "--fields", 7, "--size", 1001)
    equal(document["threads"], 3)
    verified("--variant", "send8", "--fields", 1, "--size", 16)
    verified("--variant", "batch-send", "--batch", 3, "--size", 100)


@test
def a_buffer_used_again_too_early_is_caught():
    for transport in ("pipe", "tcp"):
        result = move("--variant", "broken-reuse", "--transport", transport, "--verify", "--seconds",
                      "1", "--warmup", "0", check=1)
        if not re.search("reused too early|arrived altered", result.stderr):
            raise AssertionError(result.stderr)
    lacks(move("--list").stdout, "broken")


@test
def calls_are_what_they_are_said_to_be():
    for name, args, calls in (("send", [], 1), ("send8", [], 8), ("send8", ["--fields", 3], 3),
                              ("sendmsg", [], 1), ("batch-send", ["--batch", 20], 0.05)):
        metrics = run("--variant", name, "--no-trace", *args)["metrics"]
        between(metrics["send_calls_per_message"], calls * 0.97, calls * 1.03, name)
    document = run("--variant", "send8", "--seconds", "0.3")
    if ROOT_USER and document["calls_counted_by"] == "tracepoint":
        between(document["metrics"]["send_calls_per_message"], 7, 9, "traced calls")
    elif ROOT_USER:
        print("# the tracepoint could not be used in time")


@test
def figures_reach_assay():
    reading, writing = os.pipe()
    move(*SHORT, env=dict(os.environ, ASSAY_METRICS_FD=str(writing)), pass_fds=[writing])
    os.close(writing)
    with os.fdopen(reading) as lines:
        text = lines.read()
    for name in ("throughput", "messages_per_second", "send_cpu_ns_per_kb", "receive_cpu_ns_per_kb",
                 "cpu_ns_per_kb", "send_calls_per_message"):
        if not re.search(rf"^assay.metric {name} [0-9.e+-]+ \S+$", text, re.MULTILINE):
            raise AssertionError(f"no {name} in:\n{text}")
    human = move(*SHORT).stdout
    contains(human, "send → recv-big over tcp")
    contains(human, "Gbit/s")


@test
def zerocopy_tells_whether_it_was_granted():
    for name in ("zerocopy", "zerocopy-fields", "uring-zc", "uring-zc-fixed"):
        document = run("--variant", name) if name in variants("send") else None
        if not document:
            print(f"# {name} is not on this kernel")
            continue
        metrics = document["metrics"]
        if metrics["zerocopy_granted"] + metrics["zerocopy_refused"] < 1:
            raise AssertionError(f"{name}: no completions: {metrics}")


@test
def copies_on_receive_are_counted():
    if not ROOT_USER:
        skip("BPF needs root")
    document = run("--seconds", "0.2")
    if not document["copies_counted"]:
        skip("no BPF on tracepoints here")
    between(document["metrics"]["receive_copied_per_byte"], 0.5, 1.5, "copies of recv")
    document = run("--seconds", "0.2", "--variant", "trunc")
    equal(document["metrics"].get("receive_copied_per_byte", 0), 0, "copies of trunc")


def proofs(*args, ways="completions,aliasing"):
    return {proof["variant"]: proof
            for proof in json.loads(move("--json", f"--prove={ways}", *args).stdout)}


@test
def claims_are_proven():
    found = proofs()
    for name in ("send", "send8", "sendmsg", "batch-send"):
        equal(found[name]["verdict"], "proven", name)
        equal(found[name]["ways"]["aliasing"]["finding"], "copy", name)
    for name in ("zerocopy", "uring-zc"):
        if name in found and found[name]["verdict"] != "failed":
            if found[name]["verdict"] not in ("proven", "refused"):
                raise AssertionError(found[name])
    equal(found["trunc"]["ways"]["aliasing"]["finding"], "no copy")
    equal(found["recv"]["ways"]["aliasing"]["finding"], "copy")
    lacks(str(found), "contradicted")
    text = move("--prove=completions,aliasing").stdout
    contains(text, "claimed")
    contains(text, "refused: copied after all" if found["zerocopy"]["verdict"] == "refused"
             else "zerocopy")


@test
def claims_are_proven_over_other_transports():
    for transport in ("unix", "pipe", "udp"):
        found = proofs("--transport", transport)
        equal(found["send"]["ways"]["aliasing"]["finding"], "copy", transport)
        equal({proof["transport"] for proof in found.values()}, {transport})


@test
def bpf_tells_of_receives():
    if not ROOT_USER:
        skip("BPF needs root")
    found = proofs(ways="bpf")
    if found["recv"]["ways"]["bpf"]["finding"] == "nothing":
        skip(found["recv"]["ways"]["bpf"]["words"])
    equal(found["recv"]["ways"]["bpf"]["finding"], "copy")
    equal(found["trunc"]["ways"]["bpf"]["finding"], "no copy")


@test
def a_profile_tells_of_copies():
    if not ROOT_USER:
        skip("kernel symbols need root")
    found = proofs("--variant", "send", ways="profile")["send"]["ways"]["profile"]
    if found["finding"] == "nothing":
        skip(found["words"])
    equal(found["finding"], "copy", found["words"])


@test
def what_does_not_go_together_is_refused():
    for args, words in ((["--variant", "sned"], "did you mean send"),
                        (["--variant", "zerocopy", "--transport", "unix"], "it supports: tcp"),
                        (["--transport", "carrier-pigeon"], "use tcp"),
                        (["--size", "0"], "--size 0"),
                        (["--size", "8", "--verify"], "16 bytes or more"),
                        (["--size", "4", "--fields", "8", "--variant", "send8"], "--fields 8"),
                        (["--threads", "0"], "--threads 0"),
                        (["--threads", "100000"], "must be between 1 and 256"),
                        (["--transport", "udp", "--size", "70000"], "65507"),
                        (["--pin", "0"], "SENDERS:RECEIVERS"),
                        (["--pin", "9999:0"], "CPU 9999"),
                        (["--receive", "send"], "not a receive side"),
                        (["--variant", "recv", "--receive", "recv"], "is a receive side"),
                        (["--variant", "send/recv", "--receive", "recv"], "names a receive side"),
                        (["--transport", "pipe", "--cc", "cubic"], "no congestion control"),
                        (["--connect", "127.0.0.1:1", "--transport", "unix"], "not unix"),
                        (["--prove=magic"], "the methods are"),
                        (["--seconds", "0"], "--seconds"),
                        (["surplus"], "unexpected argument")):
        contains(move(*args, check=2).stderr, words)
    contains(move("--cc", "nonsense", *SHORT, check=1).stderr, "available:")
    contains(move("--variant", "batch-sendmsg", "--batch", 1000, *SHORT, check=1).stderr,
             "smaller --batch")


def limited():
    """In the child: an ordinary user with little memory to lock."""
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (4096, 4096))
    if ROOT_USER:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


@test
def little_locked_memory_is_told():
    program = shutil.copy(MOVE, "assay-move")
    os.chmod(".", 0o755)
    if SANITIZED:
        skip("the sanitizer's libraries may be out of the ordinary user's reach")
    for name in ("zerocopy", "uring-zc-fixed"):
        if name not in variants("send"):
            continue
        result = subprocess.run([os.path.abspath(program), "--variant", name, *SHORT], text=True,
                                capture_output=True, preexec_fn=limited, timeout=240)
        if result.returncode == 0:
            print(f"# {name}: this kernel does not count it")
        elif not re.search("locked memory|not allowed|Permission", result.stderr):
            raise AssertionError(f"{name}: {result.stderr}")


@test
def ordinary_users_get_their_figures():
    if not ROOT_USER:
        skip("all the other tests are run by one")
    if SANITIZED:
        skip("the sanitizer's libraries may be out of the ordinary user's reach")
    program = shutil.copy(MOVE, "assay-move")
    os.chmod(".", 0o755)

    def ordinary():
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    result = subprocess.run([os.path.abspath(program), *SHORT], text=True, capture_output=True,
                            preexec_fn=ordinary, timeout=240)
    equal(result.returncode, 0, result.stderr)
    contains(result.stdout, "the loop's own count")


@test
def a_receiver_that_dies_ends_the_run():
    with Long() as run_:
        os.kill(run_.children["move-receive"], signal.SIGKILL)
        equal(run_.process.wait(timeout=240), 1)
        contains(run_.process.stderr.read(), "receiver was killed by signal 9")
        wait_for(lambda: gone(run_.children["move-send"]), "the sender's end")


@test
def a_sender_that_dies_ends_the_run():
    with Long() as run_:
        os.kill(run_.children["move-send"], signal.SIGKILL)
        equal(run_.process.wait(timeout=240), 1)
        contains(run_.process.stderr.read(), "sender was killed by signal 9")
        wait_for(lambda: gone(run_.children["move-receive"]), "the receiver's end")


@test
def nothing_is_left_running():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with Long() as run_:
            run_.process.send_signal(number)
            equal(run_.process.wait(timeout=240), -number)
            for name, pid in run_.children.items():
                wait_for(lambda pid=pid: gone(pid), f"the end of {name} after signal {number}")


class Listening:
    def __init__(self, *args):
        self.args = args

    def __enter__(self):
        self.process = subprocess.Popen([MOVE, "--listen", "127.0.0.1:0", *self.args], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.port = int(self.process.stdout.readline().split()[-1])
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


@test
def hosts_send_to_each_other():
    with Listening() as server:
        address = f"127.0.0.1:{server.port}"
        for args in ([], ["--threads", 3, "--verify"], ["--transport", "udp", "--verify"],
                     ["--variant", "batch-send/recv", "--size", 100]):
            document = run("--connect", address, *args)
            if not document["metrics"]["throughput"] > 0:
                raise AssertionError(document)
            contains(server.process.stdout.readline(), "Gbit/s")


@test
def a_listener_outlives_bad_company():
    with Listening() as server:
        for text in (b"GET / HTTP/1.0\r\n\r\n", b"", b"MOVE\xff\xff\xff\xff\xff\xff\xff\xff"):
            with socket.create_connection(("127.0.0.1", server.port)) as stranger:
                stranger.sendall(text)
        run("--connect", f"127.0.0.1:{server.port}")


@test
def once_is_once():
    with Listening("--once") as server:
        run("--connect", f"127.0.0.1:{server.port}")
        equal(server.process.wait(timeout=240), 0)


@test
def a_listener_tells_its_refusal():
    with Listening() as server:
        result = move("--connect", f"127.0.0.1:{server.port}", "--variant", "send/trunc", "--verify",
                      *SHORT, check=1)
        contains(result.stderr, "nothing to --verify")


@test
def nobody_listens():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        result = move("--connect", f"127.0.0.1:{port}", check=1)
    contains(result.stderr, f"nothing listens on port {port}")


@test
def a_listen_queue_that_is_full_is_told():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = []
        for _ in range(3):  # more than the queue holds
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
            waiting.append(client)
        result = move("--connect", f"127.0.0.1:{listener.getsockname()[1]}", check=1)
        for client in waiting:
            client.close()
    contains(result.stderr, "listen queue is full")


@test
def every_option_stands_in_the_manual_page():
    page = (ROOT / "docs/man/assay-move.1.scd").read_text()
    for option in re.findall(r"^\s+(?:-\w,?)?\s*(--[a-z-]+)", move("--help").stdout, re.MULTILINE):
        contains(page, option)
    contains(move("--help").stdout, "usage: assay-move")


def in_child(function, uid=None):
    """What the function returns in a process of its own, there as that user."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        if uid is not None:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        os.write(theirs, json.dumps(function()).encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    return json.loads(text)


def congestion_control_of_a_socket():
    """What a socket has that would rather have cubic."""
    one = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    except OSError:
        pass
    return one.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()


def other_user():
    """The number of an ordinary user who can run the copy that is made here; None for ourselves."""
    if not ROOT_USER:
        return None
    shutil.copy(MOVE, "assay-move")
    os.chmod(".", 0o755)
    return 65534 if in_child(lambda: os.access("assay-move", os.X_OK), 65534) else None


def run_as(uid, *args):
    """A run as that user: its exit code, output and errors."""
    def go():
        done = subprocess.run([MOVE if uid is None else "./assay-move", *args, *SHORT],
                              capture_output=True, text=True)
        return [done.returncode, done.stdout, done.stderr]
    return in_child(go, uid)


@test
def the_fair_congestion_control_is_what_the_user_may_have():
    for uid in {None, other_user()}:
        expected = in_child(congestion_control_of_a_socket, uid)
        code, out, err = run_as(uid, "--cc", "fair", "--json")
        equal(code, 0, err)
        document = json.loads(out)
        equal(document["congestion_control"], expected, f"congestion control of user {uid}")
        equal(document["metrics"]["fair_cc_is_cubic"], 100 * (expected == "cubic"))
    own = pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    document = json.loads(move("--json", *SHORT, check=0).stdout)
    equal(document["congestion_control"], own)
    lacks(document["metrics"], "fair_cc_is_cubic")
    equal(json.loads(move("--transport", "pipe", "--json", *SHORT, check=0).stdout)
          ["congestion_control"], None)


@test
def a_way_that_cannot_be_had_does_not_end_the_experiment():
    spec = (ROOT / "experiments/data-movement.yaml").read_text()
    spec = spec.replace("  assay-move --variant", f"  {MOVE} --no-trace --variant")
    spec = spec.replace("way: sendmsg,", "way: magic,")
    pathlib.Path("spec.yaml").write_text(spec)
    done = assay("run", "spec.yaml", "--quick", "--rounds", "2", "--cells",
                 "variant=send8,variant=sendmsg,threads=1,size=4096", "--db", "store.db", check=0,
                 timeout=600)
    equal(done.stderr.count("continuing without: cell"), 1, done.stderr)
    contains(done.stderr, "magic")
    contains(done.stdout, "2 runs failed")
    assay("answers", "--db", "store.db", check=0)
    assay("html", "--db", "store.db", "last", "-o", "report.html", check=0)


@test
def many_zero_copy_connections_share_the_limit_of_locked_memory():
    user, before = other_user(), resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 20, before[1]))
    try:
        code, _, said = run_as(user, "--variant", "zerocopy", "--threads", "4", "--size", "65536",
                               "--verify")
    finally:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, before)
    equal(code, 0, said)


@test
def the_experiments_run_and_answer():
    # Counted by the loop: whether tracing can be switched on in time depends on the machine's load.
    spec = (ROOT / "experiments/data-movement.yaml").read_text()
    spec = spec.replace("  assay-move --variant", f"  {MOVE} --no-trace --variant")
    pathlib.Path("spec.yaml").write_text(spec)
    done = assay("run", "spec.yaml", "--quick", "--rounds", "1", "--cells",
                 "variant=send8,variant=sendmsg,variant=zerocopy-fields,threads=1", "--db",
                 "store.db", check=0, timeout=600)
    answers = json.loads(assay("answers", "--json", "--db", "store.db", check=0).stdout)["answers"]
    constants = {answer["metric"]: answer["text"] for answer in answers
                 if answer["kind"] == "constant"}
    contains(constants["send_calls_per_message"], "8 calls for send8")
    contains(constants["send_calls_per_message"], "1 call for sendmsg")
    if "zerocopy_granted_share" not in constants:
        print("# here zero-copy is granted now and then")
    equal("continuing without" in done.stderr, False, done.stderr)
    for name in ("data-movement.yaml", "data-movement-veth.yaml"):
        for quick in ([], ["--quick"]):
            assay("run", ROOT / "experiments" / name, "--dry-run", *quick, "--db", "store.db",
                  check=0)


main()
