# SPDX-License-Identifier: MIT
"""assay-vr and its operator: disks lost, formatted, copied and brought back; groups that cannot work;
settings that do not fit.  Nothing that was acknowledged may be lost by a mistake."""
import json
import os
import re
import shutil
import signal
import subprocess
import threading

from harness import *
from vr_cluster import *


def kv(*args, check=0, timeout=120):
    return vr("kv", "--config", "cluster.conf", "--timeout", timeout, *args, check=check)


def reconfigure(*args, check=0):
    return vr("reconfigure", "--config", "cluster.conf", "--timeout", 120, *args, check=check)


def state(cluster, index):
    return cluster.status()[index]["state"]


def stop(cluster, index):
    cluster.signal(index, signal.SIGTERM)
    cluster.processes[index].wait()


@test
def a_formatted_member_has_no_vote():
    """Two of three have x = new; one of them loses its disk.  The third knows only x = old."""
    with Cluster() as cluster:
        cluster.leader()
        kv("put", "x", "old")
        cluster.all_equal()
        leader = cluster.leader()
        lost, behind = [i for i in range(3) if i != leader]
        cluster.signal(behind, signal.SIGSTOP)
        kv("put", "x", "new")
        cluster.kill(lost)
        os.unlink(f"replica-{lost}.vr")
        cluster.start(lost, "--format")
        until(lambda: state(cluster, lost) == "new", "the formatted one is new")
        cluster.kill(leader)
        cluster.signal(behind, signal.SIGCONT)
        # Those two are a majority by their numbers, and must not serve.
        until(lambda: state(cluster, behind) == "view change" or state(cluster, behind) == "backup",
              "the third is there")
        kv("get", "x", check=3, timeout=2)
        equal(state(cluster, lost), "new")
        cluster.start(leader)
        equal(kv("get", "x").stdout, "new\n")
        text = vr("status", "--config", "cluster.conf").stdout
        contains(text, f"'assay-vr reconfigure --replace {lost}'")
        contains(reconfigure("--members", "0,1,2", check=2).stderr, f"use --replace {lost}")
        reconfigure("--replace", lost)
        cluster.all_equal()
        # And now it counts.
        cluster.kill(behind)
        kv("put", "x", "newer")
        equal(kv("get", "x").stdout, "newer\n")


@test
def all_of_the_first_group_must_be_there_once():
    with Cluster() as cluster:
        cluster.leader()
        kv("put", "x", "1")
        cluster.kill(0, 1, 2)
        # A majority has lost its disks: what is left must not begin again.
        for index in (0, 1):
            os.unlink(f"replica-{index}.vr")
            cluster.start(index, "--format")
        cluster.start(2)
        until(lambda: state(cluster, 2) and state(cluster, 0) == state(cluster, 1) == "new", "new")
        kv("get", "x", check=3, timeout=2)
        equal([state(cluster, i) for i in (0, 1)], ["new", "new"])


@test
def an_old_copy_of_a_file_is_noticed():
    with Cluster() as cluster:
        leader = cluster.leader()
        kv("put", "x", "old")
        cluster.all_equal()
        one = (leader + 1) % 3
        stop(cluster, one)
        shutil.copy(f"replica-{one}.vr", "copy")
        cluster.start(one)
        until(lambda: state(cluster, one) == "backup", "it is back")
        kv("put", "x", "new")
        cluster.all_equal()
        stop(cluster, one)
        shutil.copy("copy", f"replica-{one}.vr")
        cluster.start(one)
        until(lambda: state(cluster, one) == "new", "the old copy is noticed")
        contains(open("replicas.log").read(), "is an old copy")
        # It stays what it is, and the others serve.
        stop(cluster, one)
        cluster.start(one)
        until(lambda: state(cluster, one) == "new", "it knows after a restart, too")
        equal(kv("get", "x").stdout, "new\n")
        reconfigure("--replace", one)
        cluster.all_equal()


@test
def a_group_without_a_majority_is_refused():
    with Cluster(spares=2) as cluster:
        cluster.leader()
        kv("put", "x", "1")
        cluster.start(3, "--format")
        until(lambda: state(cluster, 3) == "new", "the spare is there")
        contains(reconfigure("--members", "0,3,4", check=1).stderr, "replica 4 does not answer")
        cluster.kill(1, 2)
        words = reconfigure("--members", "1,2,3", check=1).stderr
        contains(words, "only 1 answer (not 1, 2)")
        contains(words, "--force")
        # Undecided: there is no majority.  What is taken back does not happen later.
        contains(vr("reconfigure", "--config", "cluster.conf", "--timeout", 2, "--members", "0,1,3",
                    check=3).stderr, "--cancel undoes it")
        cluster.start(1)
        cluster.start(2)
        cluster.leader()
        reconfigure("--cancel")
        epoch = max(s["epoch"] for s in cluster.status() if s["state"])
        equal(kv("get", "x").stdout, "1\n")
        equal(max(s["epoch"] for s in cluster.status() if s["state"]), epoch)


@test
def exit_codes_and_settings_are_told():
    with Cluster() as cluster:
        cluster.leader()
        contains(kv("put", "x", "v" * 600, check=2).stderr, "the maximum is 512")
        contains(kv("put", "k" * 65, "v", check=2).stderr, "the maximum is 64")
        stop(cluster, 2)
        text = open("cluster.conf").read()
        with open("other.conf", "w") as file:
            file.write(text.replace("slots 256", "slots 512"))
        words = vr("replica", "--config", "other.conf", "--index", 2, check=1).stderr
        contains(words, "formatted with slots 256, but the configuration says 512")
    contains(vr("kv", "--config", "nowhere.conf", "get", "x", check=2).stderr, "nowhere.conf")


def contents():
    return {pair["key"]: pair["value"] for pair in json.loads(kv("--json", "scan").stdout)}


@test
def a_backup_is_one_moment_and_goes_into_a_new_cluster():
    with Cluster() as cluster:
        cluster.leader()
        kv("put", "a", "0")
        kv("put", "b", "0")
        for i in range(40):
            kv("put", f"key {i}", "v" * (i * 13))
        stop_writing = threading.Event()

        def count():
            """a is never less than b, and never more than one ahead."""
            number = 0
            while not stop_writing.is_set():
                number += 1
                kv("put", "a", number)
                kv("put", "b", number)
        writer = threading.Thread(target=count)
        writer.start()
        try:
            told = json.loads(vr("backup", "--json", "--config", "cluster.conf", "--timeout", 120,
                                 "one").stdout)
        finally:
            stop_writing.set()
            writer.join()
        equal(told["keys"], 42)
        kv("put", "last", "words")
        kv("delete", "key 7")
        # What was acknowledged before the call is in it, however few operations there were.
        vr("backup", "--config", "cluster.conf", "--timeout", 120, "two")
        final = contents()
        equal(os.stat("two").st_mode & 0o777, 0o600)
        contains(vr("backup", "--config", "cluster.conf", "two", check=2).stderr, "already exists")
        contains(vr("restore", "--config", "cluster.conf", "--timeout", 120, "two", check=1).stderr,
                 "holds keys already")
        with open("other.conf", "w") as file:
            file.write(open("cluster.conf").read().replace("keys 1024", "keys 512"))
        contains(vr("backup", "--config", "other.conf", "--timeout", 120, "three", check=1).stderr,
                 "does not fit this configuration")
        equal(os.path.exists("three"), False)
    os.mkdir("new")
    os.chdir("new")
    with Cluster() as cluster:
        cluster.leader()
        contains(vr("restore", "--config", "cluster.conf", "--timeout", 120, "../one").stdout,
                 "restored 42 keys")
        found = contents()
        equal(len(found), 42)
        equal({key: value for key, value in found.items() if key not in "ab"},
              {f"key {i}": "v" * (i * 13) for i in range(40)})
        a, b = int(found["a"]), int(found["b"])
        equal(a - b in (0, 1), True)
        # An interrupted restore is finished by the same file; here it is another, so that it shows.
        vr("restore", "--again", "--config", "cluster.conf", "--timeout", 120, "../two")
        found = contents()
        del found["key 7"]
        equal(found, final)
        cluster.all_equal()
    os.chdir("..")


@test
def a_damaged_backup_restores_nothing():
    with Cluster() as cluster:
        cluster.leader()
        for i in range(20):
            kv("put", f"key {i}", "value")
        vr("backup", "--config", "cluster.conf", "--timeout", 120, "whole")
        for i in range(20):
            kv("delete", f"key {i}")
        data = open("whole", "rb").read()
        for name, content in (("cut", data[:-16]), ("short", data[:20]), ("longer", data + b"x"),
                              ("flipped", data[:300] + bytes([data[300] ^ 1]) + data[301:])):
            with open(name, "wb") as file:
                file.write(content)
            words = vr("restore", "--config", "cluster.conf", name, check=1).stderr
            contains(words, name)
        equal(contents(), {})
        with open("none", "w") as file:
            file.write("no backup, but a text that is longer than a head\n" * 4)
        contains(vr("restore", "--config", "cluster.conf", "none", check=1).stderr, "is not a backup")
        vr("restore", "--config", "cluster.conf", "nowhere", check=2)
        vr("restore", "--config", "cluster.conf", "--timeout", 120, "whole")
        equal(len(contents()), 20)


@test
def a_key_is_made_and_needed():
    with Cluster() as cluster:
        cluster.leader()
        equal(os.stat("cluster.key").st_mode & 0o777, 0o600)
        kv("put", "x", "1")
        # Whoever has none is not heard.
        text = open("cluster.conf").read()
        with open("stranger.conf", "w") as file:
            file.write(text + "open yes\n")
        vr("kv", "--config", "stranger.conf", "--timeout", "0.5", "get", "x", check=3)
        with open("none.conf", "w") as file:
            file.write(text + "key-file none\n")
        contains(vr("kv", "--config", "none.conf", "get", "x", check=2).stderr, "assay-vr key")
        os.chmod("cluster.key", 0o640)
        contains(kv("get", "x", check=2).stderr, "chmod 600")
        contains(vr("replica", "--config", "cluster.conf", "--index", 0, check=2).stderr, "chmod 600")
        os.chmod("cluster.key", 0o600)
        contains(vr("key").stdout, "already there: cluster.key")


@test
def a_role_may_do_its_part():
    with Cluster() as cluster:
        cluster.leader()
        kv("put", "x", "1")
        text = open("cluster.conf").read()
        for role in ("admin", "write", "read"):
            vr("key", "--role", role, f"{role}.key")
            equal(os.stat(f"{role}.key").st_mode & 0o777, 0o600)
            with open(f"{role}.conf", "w") as file:
                file.write(text + f"key-file {role}.key\n")
        vr("key", "--role", "read", "read.key", check=1)
        contains(vr("key", "--role", "king", "king.key", check=2).stderr, "admin, write or read")
        contains(vr("key", "--config", "read.conf", "--role", "write", "more.key", check=1).stderr,
                 "no key for 'write' follows")

        def as_role(role, *args, check=0):
            return vr(args[0], "--config", f"{role}.conf", "--timeout", 120, *args[1:], check=check)
        for role in ("admin", "write", "read"):
            equal(as_role(role, "kv", "get", "x").stdout, "1\n")
            as_role(role, "status")
        contains(as_role("read", "kv", "put", "x", "2", check=2).stderr, "'read'")
        as_role("write", "kv", "put", "x", "2")
        contains(as_role("write", "backup", "file", check=1).stderr, "'write'")
        as_role("admin", "backup", "file")
        contains(as_role("write", "reconfigure", "--cancel", check=1).stderr, "'write'")
        as_role("admin", "reconfigure", "--cancel")
        contains(vr("replica", "--config", "admin.conf", "--index", 0, check=2).stderr,
                 "a client's key")
        equal(as_role("read", "kv", "get", "x").stdout, "2\n")


@test
def keys_are_changed_without_a_stop():
    with Cluster() as cluster:
        cluster.leader()
        kv("put", "x", "1")
        text = open("cluster.conf").read()
        with open("new.key", "wb") as file:
            file.write(os.urandom(32))
        os.chmod("new.key", 0o600)
        with open("old.conf", "w") as file:
            file.write(text)
        number = 1
        for words in ("accept-key-file new.key\n", "key-file new.key\naccept-key-file cluster.key\n",
                      "key-file new.key\n"):
            with open("cluster.conf", "w") as file:
                file.write(text + words)
            for index in range(3):
                stop(cluster, index)
                # Two of three serve, whichever keys they have, and a client with either is answered.
                config = "old.conf" if "accept" in words else "cluster.conf"
                number += 1
                vr("kv", "--config", config, "--timeout", 120, "put", "x", number)
                cluster.start(index)
                cluster.all_equal()
        equal(kv("get", "x").stdout, f"{number}\n")
        vr("kv", "--config", "old.conf", "--timeout", "0.5", "get", "x", check=3)


@test
def metrics_are_read_by_prometheus():
    with Cluster() as cluster:
        leader = cluster.leader()
        kv("put", "x", "1")
        cluster.kill((leader + 1) % 3)
        text = vr("status", "--config", "cluster.conf", "--metrics", "--timeout", 5).stdout
        values = {}
        for _, samples in openmetrics_families(text):
            for name, labels, value in samples:
                values[name, tuple(sorted(labels.items()))] = value
        def value(name, index, **labels):
            return values.get((f"assay_vr_{name}",
                               tuple(sorted({"replica": str(index), **labels}.items()))))
        equal([value("up", i) for i in range(3)],
              [0 if i == (leader + 1) % 3 else 1 for i in range(3)])
        equal(value("state", leader, assay_vr_state="primary"), 1)
        equal(value("state", leader, assay_vr_state="backup"), 0)
        if not value("committed_operations_total", leader) >= 2:
            raise AssertionError(text)
        equal(value("dropped_packets_total", leader, reason="permission"), 0)
        vr("status", "--config", "cluster.conf", "--metrics", "--json", check=2)


@test
def histories_have_the_forms_of_others():
    with Cluster() as cluster:
        cluster.leader()
        words = ("--config", "cluster.conf", "--op", "mixed", "--keys", 5, "--clients", 3, "--requests",
                 200, "--warmup", 0, "--json")
        vr("client", *words, "--history", "edn", "--history-format", "edn")
        events = [line.strip() for line in open("edn")]
        equal(len(events), 400)
        waiting, time, kinds = {}, 0, set()
        for index, event in enumerate(events):
            fields = re.fullmatch(r"\{:index (\d+), :time (\d+), :process (\d+), :type :(\w+), :f :(\w+), "
                                  r":value \[(\d) (.*?)\](, :error :[a-z-]+)?\}", event)
            if not fields:
                raise AssertionError(event)
            number, when, process, kind, function, key = fields.groups()[:6]
            equal(int(number), index)
            equal(int(when) >= time, True)
            time = int(when)
            # One at a time for each process, and each ends as what it began as.
            if kind == "invoke":
                equal(process in waiting, False)
                waiting[process] = (function, key)
            else:
                equal(waiting.pop(process), (function, key))
            kinds.add((kind, function))
        equal(waiting, {})
        for kind in (("ok", "read"), ("ok", "write"), ("ok", "delete"), ("fail", "cas")):
            equal(kind in kinds, True)
        vr("client", *words, "--seed", 2, "--history", "json", "--history-format", "porcupine")
        operations = json.load(open("json"))
        equal(len(operations), 200)
        for operation in operations:
            equal(set(operation), {"ClientId", "Input", "Call", "Output", "Return"})
            equal(operation["Call"] <= operation["Return"], True)
        vr("client", *words, "--history", "x", "--history-format", "xml", check=2)


@test
def the_unit_of_systemd_is_valid():
    if not shutil.which("systemd-analyze"):
        skip("needs systemd-analyze")
    text = (ROOT / "examples/systemd/assay-vr@.service").read_text()
    os.makedirs("units", exist_ok=True)
    with open("units/assay-vr@.service", "w") as file:
        file.write(text.replace("/usr/bin/assay-vr", PROGRAM))
    result = subprocess.run(["systemd-analyze", "verify", "--man=no", "units/assay-vr@.service"],
                            text=True, capture_output=True)
    equal((result.returncode, result.stderr), (0, ""))


main()
