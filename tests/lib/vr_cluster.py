# SPDX-License-Identifier: MIT
"""assay-vr as processes: run it, wait for what it is to show, and a cluster in the present folder."""
import json
import os
import random
import subprocess
import time

PROGRAM = os.path.abspath(os.path.join(os.environ.get("BUILD", "build"), "workloads/vr/assay-vr"))
LIMIT = int(os.environ.get("VR_LIMIT", 240))  # seconds until a wait for a condition is given up


def vr(*args, check=0, timeout=400, env=None):
    result = subprocess.run([PROGRAM, *map(str, args)], text=True, errors="replace",
                            capture_output=True, timeout=timeout,
                            env=dict(os.environ, **(env or {})))
    if check is not None and result.returncode != check:
        raise AssertionError(f"assay-vr {args}: exit {result.returncode}, not {check}\n"
                             f"{result.stdout[-2000:]}\n{result.stderr[-4000:]}")
    if "Sanitizer" in result.stderr or "runtime error:" in result.stderr:
        raise AssertionError("sanitizer report:\n" + result.stderr)
    return result


def until(condition, what):
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"after {LIMIT} s still not: {what}")


class Cluster:
    """Replicas as processes in the present folder."""

    def __init__(self, replicas=3, transport="epoll", more="", options=(), spares=0, host=None):
        # Any address 127.x.y.z is this machine's: nobody else is at this one.
        port = 4701 if host is None else random.randint(20000, 30000)
        host = host or f"127.{random.randint(1, 254)}.{random.randint(1, 254)}.{random.randint(1, 254)}"
        lines = [f"cluster {random.randint(1, 1 << 30)}", f"transport {transport}",
                 "keys 1024", "slots 256", "checkpoint-every 64", "sessions 64",
                 "timeout 300ms"]
        lines += [f"replica {host}:{port + i}" for i in range(replicas)]
        lines += [f"spare {host}:{port + replicas + i}" for i in range(spares)]
        with open("cluster.conf", "w") as file:
            file.write("\n".join(lines) + "\n" + more)
        self.count = replicas
        self.options = list(options)
        self.processes = {}
        self.errors = open("replicas.log", "w+")

    def __enter__(self):
        for index in range(self.count):
            self.start(index, "--format")
        # The first of them makes the key, which clients read.
        if not any(word in open("cluster.conf").read() for word in ("key-file", "open yes")):
            until(lambda: os.path.exists("cluster.key"), "a key")
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.kill()
            process.wait()
        self.errors.seek(0)
        text = self.errors.read()
        self.errors.close()
        if "Sanitizer" in text or "runtime error:" in text or "Assertion" in text:
            raise AssertionError(text)

    def start(self, index, *options):
        self.processes[index] = subprocess.Popen(
            [PROGRAM, "replica", "--config", "cluster.conf", "--index", str(index),
             *self.options, *options], stdout=self.errors, stderr=self.errors)

    def signal(self, index, number):
        self.processes[index].send_signal(number)

    def kill(self, *indexes):
        for index in indexes:
            self.processes[index].kill()
        for index in indexes:
            self.processes[index].wait()

    def status(self):
        return json.loads(vr("status", "--config", "cluster.conf", "--json", "--timeout", "0.3",
                             check=None).stdout)

    def leader(self):
        """The replica that leads and can be asked."""
        def find():
            found = [(s["view"], s["replica"]) for s in self.status() if s["state"] == "primary"]
            return [max(found)[1]] if found else None
        return until(find, "a leader")[0]

    def all_equal(self):
        """Everybody has executed everything."""
        def same():
            status = self.status()
            return (all(s["state"] in ("primary", "backup") for s in status) and
                    len({s["commit"] for s in status}) == 1 and status)
        try:
            return until(same, "all replicas alike")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{json.dumps(self.status())}")

    def load(self, *options, name="history"):
        return subprocess.Popen([PROGRAM, "client", "--config", "cluster.conf", "--op", "mixed",
                                 "--keys", "12", "--clients", "6", "--history", name, "--json",
                                 "--warmup", "0", *map(str, options)],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(load, code=0):
    out, words = load.communicate(timeout=400)
    if load.returncode != code:
        raise AssertionError(f"client: exit {load.returncode}: {words}")
    return json.loads(out)
