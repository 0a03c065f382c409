# SPDX-License-Identifier: MIT
"""assay-vr with real processes, sockets and disks: killed, stopped, cut off, with a full and with a
damaged disk, under load.  What was acknowledged is there, and histories are linearizable."""
import fcntl
import json
import os
import random
import resource
import signal
import subprocess
import time

import linearizable
import namespaces
from harness import *
from vr_cluster import *

def uring_works():
    result = vr("bench", "--replicas", 1, "--in-memory", "--requests", 1, "--warmup", 0,
                "--transport", "uring", "--client-transport", "epoll", check=None)
    return result.returncode == 0


def check_history(cluster, *names):
    """Linearizable with what all keys hold in the end; nothing acknowledged is missing."""
    pairs = json.loads(vr("kv", "--config", "cluster.conf", "--json", "--timeout", "30",
                          "scan").stdout)
    return linearizable_with(pairs, *(names or ("history",)))


def linearizable_with(pairs, *names):
    operations = []
    for name in names:
        operations += linearizable.read_history(name)
    last = max(o.end or o.begin for o in operations)
    found = {int(p["key"].split("-")[1]): int(p["value"]) for p in pairs
             if p["key"].startswith("key-")}
    for key in range(12):
        value = found.get(key, 0)
        operations.append(linearizable.Operation(
            "end", last + 1, last + 2, "get", key, 0, 0,
            linearizable.OK if value else linearizable.NOT_FOUND, value))
    words = linearizable.violation(operations)
    if words:
        raise AssertionError(words)
    return operations


@test
def the_checker_finds_what_is_wrong():
    new = linearizable.Operation
    put = new("a", 10, 20, "put", 1, 5, 0, 0, 0)
    good = new("b", 30, 40, "get", 1, 0, 0, 0, 5)
    equal(linearizable.violation([put, good]), None)
    if not linearizable.violation([put, good._replace(status=1, read=0)]):
        raise AssertionError("a lost write is not found")
    beside = good._replace(begin=15, status=1, read=0)
    equal(linearizable.violation([put, beside]), None)
    if not linearizable.violation([put, beside, new("c", 12, 14, "get", 1, 0, 0, 0, 5)]):
        raise AssertionError("a write that is seen and then not is not found")
    equal(linearizable.violation([put._replace(end=None), beside]), None)


@test
def people_can_use_the_store():
    with Cluster():
        def kv(*words, check=0):
            return vr("kv", "--config", "cluster.conf", "--timeout", "30", *words, check=check)
        kv("put", "colour", "green")
        equal(kv("get", "colour").stdout, "green\n")
        kv("cas", "colour", "green", "blue")
        contains(kv("cas", "colour", "green", "red", check=1).stderr, "different value")
        kv("cas", "shape", "", "round")
        equal(kv("scan").stdout, "colour\tblue\nshape\tround\n")
        kv("delete", "colour")
        contains(kv("get", "colour", check=1).stderr, "no such key")
        for i in range(12):
            kv("put", f"long-{i:02}", "x" * 400)
        equal(len(json.loads(kv("scan", "--json", "long").stdout)), 13)
        # An answer has room for one of these.
        for name in "xyz":
            kv("put", f"wide-{name}", name * 512)
        equal([pair["key"] for pair in json.loads(kv("scan", "--json", "wide").stdout)],
              ["wide-x", "wide-y", "wide-z"])
        contains(vr("status", "--config", "cluster.conf", "--timeout", "30").stdout, "primary")
        contains(kv("shove", check=2).stderr, "get, put")
        contains(kv("put", "k" * 65, "v", check=2).stderr, "64")


@test
def leaders_are_killed_under_load():
    transport = "uring" if uring_works() else "epoll"
    with Cluster(transport=transport) as cluster:
        load = cluster.load("--rate", 700, "--requests", 2800)
        for _ in range(2):
            time.sleep(0.4)
            leader = cluster.leader()
            cluster.kill(leader)
            new = until(lambda: [s for s in cluster.status() if s["state"] == "primary"],
                        "another leader")
            if new[0]["replica"] == leader:
                raise AssertionError("the dead lead")
            cluster.start(leader)
        finish(load)
        check_history(cluster)
        cluster.all_equal()


@test
def a_leader_stops_and_goes_on():
    with Cluster() as cluster:
        load = cluster.load("--rate", 700, "--requests", 2100)
        time.sleep(0.3)
        leader = cluster.leader()
        cluster.signal(leader, signal.SIGSTOP)
        until(lambda: [s for s in cluster.status()
                       if s["state"] == "primary" and s["replica"] != leader], "another leader")
        cluster.signal(leader, signal.SIGCONT)
        finish(load)
        check_history(cluster)
        cluster.all_equal()


@test
def all_crash_at_once_and_nothing_is_lost():
    transport = "uring" if uring_works() else "epoll"
    with Cluster(transport=transport) as cluster:
        load = cluster.load("--rate", 700, "--requests", 2100)
        for _ in range(2):
            until(lambda: any(s["state"] == "primary" and s["commit"] > 20
                              for s in cluster.status()), "work is done")
            time.sleep(0.2)
            cluster.kill(0, 1, 2)
            for index in range(3):
                cluster.start(index)
            cluster.leader()
        finish(load)
        operations = check_history(cluster)
        print("#", len(operations), "operations")


@test
def in_memory_a_replica_comes_back_and_a_lost_majority_is_not_hidden():
    with Cluster(options=["--in-memory"]) as cluster:
        load = cluster.load("--rate", 700, "--requests", 1400)
        time.sleep(0.3)
        leader = cluster.leader()
        cluster.kill(leader)
        cluster.start(leader)
        finish(load)
        check_history(cluster)
        cluster.all_equal()
        cluster.kill(0, 1, 2)
        for index in range(3):
            cluster.start(index)
        until(lambda: len([s for s in cluster.status() if s["state"] == "recovering"]) == 3,
              "all recovering")
        contains(vr("kv", "--config", "cluster.conf", "--timeout", "1", "get", "key-1",
                    check=3).stderr, "no answer")


@test
def a_full_disk_stops_one_replica_only():
    with Cluster() as cluster:
        load = cluster.load("--rate", 700, "--requests", 1400)
        time.sleep(0.3)
        leader = cluster.leader()
        pid = cluster.processes[leader].pid
        # Writes behind the superblocks fail, as they do where there is no room left.
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (16384, resource.RLIM_INFINITY))
        until(lambda: cluster.status()[leader].get("disk_failures", 0) > 0, "a failed write")
        vr("kv", "--config", "cluster.conf", "--timeout", "30", "put", "while", "full")
        resource.prlimit(pid, resource.RLIMIT_FSIZE,
                         (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        finish(load)
        check_history(cluster)
        cluster.all_equal()


@test
def no_room_for_the_file_is_said_at_the_start():
    with Cluster() as cluster:
        pass
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    os.mkdir("other")
    result = subprocess.run([PROGRAM, "replica", "--config", "cluster.conf", "--index", "0",
                             "--data", "other", "--format"], preexec_fn=limit, text=True,
                            capture_output=True, timeout=240)
    equal(result.returncode, 1)
    contains(result.stderr, "make room")
    equal(os.listdir("other"), [])


@test
def damage_on_a_disk_is_repaired_from_the_others():
    with Cluster() as cluster:
        finish(cluster.load("--requests", 600))
        cluster.all_equal()
        backup = next(s["replica"] for s in cluster.status() if s["state"] == "backup")
        commit = cluster.status()[backup]["commit"]
        cluster.kill(backup)
        with open(f"replica-{backup}.vr", "r+b") as file:
            size = os.path.getsize(file.name)
            slot = 36864  # head and batch in whole sectors
            place = size - 256 * slot + commit % 256 * slot
            file.seek(place + 64)
            byte = file.read(1)
            file.seek(place + 64)
            file.write(bytes([byte[0] ^ 1]))
        cluster.start(backup)
        cluster.all_equal()
        check_history(cluster)
        cluster.errors.flush()
        contains(open("replicas.log").read(), "damaged")
        # Without any superblock nobody knows what this replica promised.
        cluster.kill(backup)
        with open(f"replica-{backup}.vr", "r+b") as file:
            file.write(bytes(4 * 4096))
        result = vr("replica", "--config", "cluster.conf", "--index", backup, check=1)
        contains(result.stderr, "no copy of the superblock")


@test
def second_copies_of_heads_are_written_at_the_start_or_nothing_starts():
    slots, slot, heads = 256, 36864, 256 * 64
    with Cluster() as cluster:
        finish(cluster.load("--requests", 100))
        cluster.all_equal()
        backup = next(s["replica"] for s in cluster.status() if s["state"] == "backup")
        cluster.kill(backup)
        name = f"replica-{backup}.vr"
        place = os.path.getsize(name) - slots * slot - heads
        with open(name, "r+b") as file:
            file.seek(place)
            before = file.read(heads)
            file.seek(place)
            file.write(bytes(heads))
        if before == bytes(heads):
            raise AssertionError("the heads are elsewhere")
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (16384, resource.RLIM_INFINITY))
        result = subprocess.run([PROGRAM, "replica", "--config", "cluster.conf", "--index",
                                 str(backup)], preexec_fn=limit, text=True, capture_output=True,
                                timeout=240)
        equal(result.returncode, 1)
        contains(result.stderr, "second copies of the log's headers")
        contains(result.stderr, name)
        cluster.start(backup)
        cluster.all_equal()
        cluster.kill(backup)
        with open(name, "rb") as file:
            file.seek(place)
            equal(file.read(heads), before)
        cluster.start(backup)
        cluster.all_equal()
        check_history(cluster)


@test
def who_has_no_key_is_not_obeyed():
    with open("secret", "wb") as file:
        file.write(b"0123456789abcdef0123456789abcdef")
    os.chmod("secret", 0o600)
    def forged():
        return [s["dropped_because"]["checksum"] for s in json.loads(
            vr("status", "--config", "cluster.conf", "--json", "--timeout", "30").stdout)]
    with Cluster(more="key-file secret\n"):
        vr("kv", "--config", "cluster.conf", "--timeout", "30", "put", "a", "b")
        text = open("cluster.conf").read()
        with open("stranger.conf", "w") as file:
            file.write(text.replace("key-file secret", "open yes"))
        equal(forged(), [0, 0, 0])
        vr("kv", "--config", "stranger.conf", "--timeout", "0.5", "get", "a", check=3)
        equal(vr("kv", "--config", "cluster.conf", "--timeout", "30", "get", "a").stdout, "b\n")
        if not all(forged()):
            raise AssertionError(f"what a stranger sent was not counted: {forged()}")


@test
def a_replica_is_replaced_while_the_service_goes_on():
    # The spare is in the configuration from the start; it serves when it is called.
    cluster = Cluster(spares=1)
    with cluster:
        load = cluster.load("--rate", 500, "--requests", 1000)
        cluster.leader()
        cluster.start(3, "--format")
        until(lambda: cluster.status()[3]["state"], "the spare answers")
        vr("reconfigure", "--config", "cluster.conf", "--members", "0,1,3", "--timeout", "30")
        until(lambda: all(cluster.status()[i]["state"] in ("primary", "backup")
                          for i in (0, 1, 3)), "the new group works")
        cluster.kill(2)
        finish(load)
        check_history(cluster)
        # The new member counts: with it, one of the others may go.
        cluster.kill(1)
        vr("kv", "--config", "cluster.conf", "--timeout", "30", "put", "after", "all")
        contains(vr("reconfigure", "--config", "cluster.conf", "--members", "0,1",
                    check=2).stderr, "1, 3, 5 or 7")


class Hosts:
    """A cluster whose replicas are in namespaces of their own, and clients in the hub."""

    def __init__(self, transport="epoll", more="", count=3):
        if not namespaces.possible():
            skip("needs root and network namespaces")
        self.count = count
        self.network = namespaces.Network(count)
        self.processes = {}
        self.loss = self.client = None
        with open("secret", "wb") as file:
            file.write(os.urandom(32))
        os.chmod("secret", 0o600)
        with open("cluster.conf", "w") as file:
            file.write(f"cluster 5\nkey-file secret\nkeys 1024\nslots 256\ncheckpoint-every 64\n"
                       f"sessions 64\ntimeout 300ms\ntransport {transport}\n{more}" +
                       "".join(f"replica 10.77.0.{i + 1}:4701\n" for i in range(count)))

    def __enter__(self):
        try:
            self.network.__enter__()
        except OSError as error:
            skip(str(error))
        self.errors = open("replicas.log", "w+")
        for index in range(self.count):
            self.start(index, "--format")
        return self

    def __exit__(self, *_):
        for process in [*self.processes.values(), self.loss, self.client]:
            if process:
                process.kill()
                process.wait()
        if self.loss:
            self.loss.stdout.close()
        self.network.__exit__()
        text = self.log()
        self.errors.close()
        if "Sanitizer" in text or "runtime error:" in text or "Assertion" in text:
            raise AssertionError(text)

    def log(self):
        self.errors.flush()
        with open("replicas.log") as file:
            return file.read()

    def start(self, index, *options):
        self.processes[index] = subprocess.Popen(
            self.network.command(index, PROGRAM, "replica", "--config", "cluster.conf", "--index",
                                 index, *options), stdout=self.errors, stderr=self.errors)

    def kill(self, index):
        self.processes[index].kill()
        self.processes[index].wait()

    def lose(self, percent):
        """So many of the packets that replicas send."""
        self.loss = subprocess.Popen(
            self.network.command(-1, "python3", ROOT / "tests/lib/loss.py", percent,
                                 *(f"to{i}" for i in range(self.count))),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.loss.stdout.readline() != "ready\n":
            words = self.loss.stderr.read()
            self.loss.stderr.close()
            skip(f"no packets can be dropped by XDP here: {words.strip().splitlines()[-1:]}")
        self.loss.stderr.close()

    def heal(self):
        self.loss.kill()
        self.loss.wait()

    def ask(self, *words):
        return subprocess.run(self.network.command(-1, PROGRAM, *words), capture_output=True,
                              text=True, timeout=400)

    def status(self):
        text = self.ask("status", "--config", "cluster.conf", "--json", "--timeout", "0.5").stdout
        return json.loads(text or "[]")

    def primaries(self):
        """Who leads, the newest view first."""
        found = [(s["view"], s["replica"]) for s in self.status() if s["state"] == "primary"]
        return [replica for _, replica in sorted(found, reverse=True)]

    def work_is_done(self, more=50):
        start = max([s.get("commit", 0) for s in self.status()] or [0])
        until(lambda: any(s.get("commit", 0) > start + more for s in self.status()), "work is done")

    def load(self, *options):
        """Runs until it is ended, or until it has made its requests."""
        self.client = subprocess.Popen(
            self.network.command(-1, PROGRAM, "client", "--config", "cluster.conf", "--op", "mixed",
                                 "--keys", 12, "--clients", 6, "--history", "history", "--json",
                                 "--warmup", 0, "--requests", 1000000, *options),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return self.client

    def check(self, *names):
        """Every acknowledged write is there, the history linearizable, and all have the same."""
        until(lambda: (status := self.status()) and
              all(s["state"] in ("primary", "backup") for s in status) and
              len({s["commit"] for s in status}) == 1, "all alike")
        pairs = self.ask("kv", "--config", "cluster.conf", "--json", "--timeout", "30", "scan").stdout
        return linearizable_with(json.loads(pairs), *(names or ("history",)))


def end(load):
    load.terminate()
    return finish(load, 128 + signal.SIGTERM)


@test
def a_leader_is_cut_off_from_the_network():
    with Hosts() as hosts:
        first = until(hosts.primaries, "a leader")[0]
        load = hosts.load("--rate", 300)
        hosts.work_is_done()
        hosts.network.cut(first, "down")
        until(lambda: [r for r in hosts.primaries() if r != first], "another leader")
        hosts.network.cut(first, "up")
        hosts.work_is_done()
        end(load)
        hosts.check()


@test
def packets_are_lost_while_replicas_are_killed_and_stopped():
    with Hosts() as hosts:
        until(hosts.primaries, "a leader")
        hosts.lose(20)
        load = hosts.load("--rate", 300)
        hosts.work_is_done()
        first = until(hosts.primaries, "a leader")[0]
        hosts.kill(first)
        until(lambda: [r for r in hosts.primaries() if r != first], "another leader")
        hosts.start(first)
        second = until(hosts.primaries, "a leader")[0]
        hosts.processes[second].send_signal(signal.SIGSTOP)
        until(lambda: [r for r in hosts.primaries() if r != second], "a third leader")
        hosts.processes[second].send_signal(signal.SIGCONT)
        hosts.work_is_done()
        end(load)
        hosts.heal()
        hosts.check()


@test
def a_disk_is_full_while_packets_are_lost_and_a_leader_is_killed():
    with Hosts() as hosts:
        until(hosts.primaries, "a leader")
        hosts.lose(10)
        load = hosts.load("--rate", 300)
        hosts.work_is_done()
        full = until(hosts.primaries, "a leader")[0]
        pid = hosts.processes[full].pid
        # Writes behind the superblocks fail, as they do where there is no room left.
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (16384, resource.RLIM_INFINITY))
        until(lambda: hosts.status()[full].get("disk_failures", 0) > 0, "a failed write")
        until(lambda: [r for r in hosts.primaries() if r != full], "another leader")
        hosts.work_is_done()
        resource.prlimit(pid, resource.RLIMIT_FSIZE,
                         (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        until(lambda: hosts.status()[full]["state"] in ("primary", "backup"), "it works again")
        leader = until(hosts.primaries, "a leader")[0]
        hosts.kill(leader)
        until(lambda: [r for r in hosts.primaries() if r != leader], "a third leader")
        hosts.start(leader)
        hosts.work_is_done()
        end(load)
        hosts.heal()
        hosts.check()


def copying_hosts(count, more=""):
    if not uring_works():
        skip("no io_uring here")
    return Hosts("uring+tc", more, count)


def needs_copies(hosts):
    until(hosts.primaries, "a leader")
    if "prepares are copied" not in hosts.log():
        words = [line for line in hosts.log().splitlines() if "no broadcast in the kernel" in line]
        skip(words[0].split("kernel: ")[1])


@test
def prepares_are_copied_on_their_way_to_other_hosts():
    """The leader's sockets send a prepare once, its device sends it four times, and each host gets it.
    Checksums are finished behind the copying, as by a card, and then before it."""
    with copying_hosts(5, "in-memory yes\ntimeout 20s\n") as hosts:
        needs_copies(hosts)
        leader = until(hosts.primaries, "a leader")[0]
        for i in range(5):
            hosts.network.sum_in_software(-1, f"to{i}")
        for where in ("behind", "before"):
            if where == "before":
                hosts.network.sum_in_software(leader, "net")
            before = [hosts.network.datagrams(i) for i in range(5)]
            finish(hosts.load("--requests", 300, "--clients", 1, "--history", where))
            after = [hosts.network.datagrams(i) for i in range(5)]
            sent, received, wrong, left = zip(*([b - a for a, b in zip(*pair)]
                                                for pair in zip(before, after)))
            print(f"# 300 operations: the leader's sockets sent {sent[leader]} datagrams, its device "
                  f"{left[leader]}; received: {received}")
            equal(sum(wrong), 0, f"datagrams with a wrong checksum, made {where} the copying")
            # Three of four prepares cost no call; a few may be asked for again, one by one.
            if left[leader] < sent[leader] + 800:
                raise AssertionError("the device has sent no copies")
            if min(received) < 300:
                raise AssertionError("not everybody has got every prepare")
        equal(until(hosts.primaries, "a leader")[0], leader)
        hosts.check("behind", "before")


@test
def a_dead_host_does_not_stop_copies_to_the_others():
    """Nobody answers for the first peer's hardware address any more; then the leader is killed."""
    with copying_hosts(3) as hosts:
        needs_copies(hosts)
        load = hosts.load("--rate", 300)
        hosts.work_is_done()
        backup = min(i for i in range(3) if i != until(hosts.primaries, "a leader")[0])
        hosts.network.cut(backup, "down")
        for name in hosts.network.names[:3]:
            namespaces.ip("-n", name, "neigh", "flush", "dev", "net")
        hosts.work_is_done()
        hosts.network.cut(backup, "up")
        until(lambda: hosts.status()[backup]["state"] == "backup", "the lost one is back")
        leader = until(hosts.primaries, "a leader")[0]
        hosts.kill(leader)
        until(lambda: [r for r in hosts.primaries() if r != leader], "another leader")
        hosts.start(leader)
        hosts.work_is_done()
        end(load)
        hosts.check()


def early_hosts():
    if not uring_works():
        skip("no io_uring here")
    return Hosts("uring+xdp", "in-memory yes\n")


def needs_early_answers(hosts):
    until(hosts.primaries, "a leader")
    if "acknowledges at the device" not in hosts.log():
        words = [line for line in hosts.log().splitlines() if "no acknowledgements" in line]
        skip(words[0].split("device: ")[1])


def early(hosts):
    return sum(s.get("early_acks", 0) for s in hosts.status())


@test
def prepares_are_acknowledged_at_the_device():
    with early_hosts() as hosts:
        needs_early_answers(hosts)
        finish(hosts.load("--requests", 1000, "--clients", 1))
        hosts.check()
        print("#", early(hosts), "early answers for 1000 operations")
        if not early(hosts):
            raise AssertionError("no answer was early")


@test
def what_the_device_acknowledged_is_never_lost():
    """Leaders are killed, stopped, cut off and not heard, while backups' devices answer for them."""
    with early_hosts() as hosts:
        needs_early_answers(hosts)
        hosts.lose(10)
        load = hosts.load("--rate", 300)
        for way in ("kill", "stop", "cut"):
            hosts.work_is_done()
            leader = until(hosts.primaries, "a leader")[0]
            if way == "kill":
                hosts.kill(leader)
            elif way == "stop":
                hosts.processes[leader].send_signal(signal.SIGSTOP)
            else:
                hosts.network.cut(leader, "down")
            until(lambda: [r for r in hosts.primaries() if r != leader], "another leader")
            if way == "kill":
                hosts.start(leader)
                until(lambda: hosts.status()[leader]["state"] in ("primary", "backup"),
                      "the lost one has recovered")
            elif way == "stop":
                hosts.processes[leader].send_signal(signal.SIGCONT)
            else:
                hosts.network.cut(leader, "up")
        hosts.work_is_done()
        end(load)
        hosts.heal()
        hosts.check()
        if not early(hosts):
            raise AssertionError("no answer was early")


@test
def durable_replicas_are_not_answered_for():
    if not uring_works():
        skip("no io_uring here")
    with Cluster(transport="uring+xdp") as cluster:
        cluster.leader()
        cluster.errors.flush()
        with open("replicas.log") as file:
            text = file.read()
        equal(text.count("no acknowledgements at the device: a durable replica acknowledges"), 3)


@test
def wrong_settings_get_an_answer():
    def conf(text):
        with open("cluster.conf", "w") as file:
            file.write(text)
    def refused(words):
        contains(vr("replica", "--config", "cluster.conf", "--index", 0, check=2).stderr, words)
    conf("replica 10.0.0.1:4701\n")
    refused("cluster.key: no such file")
    conf("replica 10.0.0.1:4701\nopen yes\n")
    refused("--insecure")
    conf("replica 10.0.0.1:4701\nopen yes\nkey-file none\n")
    refused("cannot be used together")
    conf("replica 127.0.0.1\n")
    refused("not an address")
    conf("replica 127.0.0.1:1\nreplica 127.0.0.1:2\n")
    refused("odd number")
    conf("replica 127.0.0.1:1\ncolour green\n")
    refused("line 2: 'colour' is not a setting")
    conf("replica 127.0.0.1:4701\nkey-file none\n")
    refused("none")
    conf("replica 127.0.0.1:4701\nopen yes\n")
    contains(vr("replica", "--config", "cluster.conf", "--index", 0, check=1).stderr, "--format")
    contains(vr("bench", "--transport", "pigeon", check=2).stderr, "epoll")
    contains(vr("bench", "--replicas", 4, check=2).stderr, "1, 3, 5 or 7")
    contains(vr("client", "--op", "dance", check=2).stderr, "mixed")
    contains(vr("bench", "--set", "data=.", check=2).stderr, "--dir")
    contains(vr("status", "other.conf", check=2).stderr, "unexpected argument 'other.conf'")
    conf("replica 127.0.0.1:4701\ndatagram 576\nbatch-bytes 262144\n")
    refused("raise datagram")
    contains(vr("bench", "--in-memory", "--payload", 8000, "--set", "batch-bytes=4096", check=1).stderr,
             "batch-bytes")


@test
def every_transport_carries_the_load():
    transports = ["epoll", "spin"]
    if uring_works():
        transports += ["uring", "uring+tc", "uring+xdp", "uring-spin", "uring-eventfd", "uring-eventfd-unread"]
    for transport in transports:
        few = transport == "uring-eventfd-unread"
        result = json.loads(vr("bench", "--transport", transport, "--in-memory", "--clients", 4,
                               "--requests", 40 if few else 400, "--warmup", 10, "--payload", 100,
                               "--json").stdout)
        equal(result["requests"], 40 if few else 400, transport)
        equal(result["unanswered"], 0, transport)
        if result["packets_sent_per_op"] < 1:
            raise AssertionError(f"{transport}: {result}")
    result = json.loads(vr("bench", "--clients", 8, "--requests", 400, "--warmup", 10, "--json",
                           "--op", "put", "--replicas", 5, "--set", "slots=128", "--set",
                           "checkpoint-every=64", "--set", "keys=1000", "--payload", 200).stdout)
    equal(result["requests"], 400)
    if result["disk_cycles"] < 10:
        raise AssertionError(result)


@test
def prepares_are_copied_in_the_kernel():
    if not uring_works():
        skip("no io_uring here")
    result = json.loads(vr("bench", "--transport", "uring+tc", "--in-memory", "--clients", 1,
                           "--replicas", 5, "--requests", 300, "--warmup", 10, "--json").stdout)
    equal(result["requests"], 300)
    # Every backup gets each prepare, whether the leader sends it once or four times.
    if result["packets_received_per_op"] < 7:
        raise AssertionError(result)
    if result["packets_sent_per_op"] > result["packets_received_per_op"] - 2:
        with Cluster(transport="uring+tc") as cluster:
            cluster.leader()
            cluster.errors.flush()
            words = [line for line in open("replicas.log") if "no broadcast in the kernel" in line]
        if not words:
            raise AssertionError(f"neither copied nor said why: {result}")
        skip(words[0].split("kernel: ")[1].strip())


@test
def metrics_go_to_the_experiment():
    read, write = os.pipe()
    os.set_inheritable(write, True)
    subprocess.run([PROGRAM, "bench", "--in-memory", "--requests", "200", "--warmup", "10",
                    "--rate", "2000", "--clients", "4"], check=True, timeout=240,
                   capture_output=True, close_fds=False,
                   env=dict(os.environ, ASSAY_METRICS_FD=str(write)))
    os.close(write)
    with os.fdopen(read) as lines:
        names = {line.split()[1] for line in lines if line.startswith("assay.metric ")}
    for name in ("throughput", "p50", "p9999", "cpu_per_op", "cpu_per_op_2",
                 "packets_sent_per_op"):
        if name not in names:
            raise AssertionError(f"{name} not in {names}")


@test
def an_open_loop_counts_from_when_requests_were_due():
    result = json.loads(vr("bench", "--in-memory", "--clients", 4, "--requests", 100000, "--rate",
                           500, "--time", 1, "--kill-leader", "700ms", "--json").stdout)
    # All that were due before the end, answered after it or not.
    between(result["requests"], 499, 501, "requests")
    equal(result["unanswered"], 0)
    # While nobody answered, four requests were under way and many more were due.
    gap_us = result["longest_gap"] * 1000
    if gap_us < 20000 or result["p99"] < gap_us / 3:
        raise AssertionError(result)
    if not all(result[f"cpu_per_op_{i}"] > 0 for i in range(3)):
        raise AssertionError(f"the dead one cost nothing: {result}")


def start_bench(*words):
    os.mkdir("files")
    process = subprocess.Popen([PROGRAM, "bench", "--in-memory", "--clients", "2", "--time", "100",
                                "--requests", "1000000000", "--dir", "files", *words], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    def replicas():
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat") as stat, open(f"/proc/{pid}/cmdline") as line:
                    parent = int(stat.read().rsplit(")", 1)[1].split()[1])
                    if parent == process.pid and "\0replica\0" in line.read():
                        found.append(int(pid))
            except OSError:
                pass
        return sorted(found) if len(found) == 3 else None
    pids = until(replicas, "three replicas")
    def works():
        with open(f"/proc/{pids[0]}/stat") as file:
            return sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13])) > 60
    until(works, "they work")
    return process, pids


@test
def a_bench_that_is_interrupted_ends_at_once_and_leaves_nothing():
    process, pids = start_bench("--pin", "0")
    for pid in pids:
        equal(os.sched_getaffinity(pid), {0})
    process.send_signal(signal.SIGINT)
    out, words = process.communicate(timeout=LIMIT)
    equal(process.returncode, 130)
    contains(words, "interrupted")
    contains(out, "throughput")
    equal(os.listdir("files"), [])
    equal([pid for pid in pids if os.path.exists(f"/proc/{pid}")], [])


@test
def a_replica_that_dies_is_noticed():
    process, pids = start_bench("--set", "timeout=100ms")
    os.kill(pids[1], signal.SIGKILL)
    _, words = process.communicate(timeout=LIMIT)
    equal(process.returncode, 1)
    contains(words, "replica 1 ended unexpectedly (signal 9)")
    equal(os.listdir("files"), [])


@test
def a_file_that_another_makes_is_left_alone():
    with Cluster():
        pass
    os.mkdir("other")
    with open("other/replica-0.vr.new", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        contains(vr("replica", "--config", "cluster.conf", "--index", 0, "--data", "other",
                    "--format", check=1).stderr, "another process is creating this file")
    contains(vr("status", "--config", "cluster.conf", "--timeout", "0.2", check=1).stdout,
             "no answer")


@test
def requests_larger_than_a_datagram_travel_in_pieces():
    result = json.loads(vr("bench", "--in-memory", "--clients", 3, "--requests", 150, "--warmup", 0,
                           "--payload", 5000, "--set", "datagram=1400", "--json").stdout)
    equal(result["requests"], 150)
    equal(result["unanswered"], 0)
    if result["packets_sent_per_op"] < 6:
        raise AssertionError(result)


@test
def every_option_stands_in_the_manual_page():
    page = (ROOT / "docs/man/assay-vr.1.scd").read_text()
    for command in ("bench", "replica", "key", "client", "kv", "status", "reconfigure", "backup", "restore",
                    "sim"):
        for line in vr(command, "--help").stdout.splitlines():
            for word in line.split():
                if word.startswith("--"):
                    contains(page, word.rstrip(",;:").split("=")[0])


main()
