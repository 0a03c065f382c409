# SPDX-License-Identifier: MIT
"""A stand-in for Slurm: what assay calls of it, on this host, without daemons and without root.

    with FakeSlurm(nodes=3) as slurm:
        slurm.environment            with a PATH on which sbatch, squeue, sinfo, … are found
        slurm.kill("n2")             the node is down, and with it what ran there
        slurm.calls                  the words of every call

Each node runs one task at a time; an array's tasks are dealt to the nodes in turn, so that a test
knows how many each gets.  tests/lab has the real one; this one can be made to fail in ways
that the real one shows once in a year, and answers at once.
"""
import itertools
import json
import os
import pathlib
import re
import shlex
import signal
import socketserver
import subprocess
import sys
import tempfile
import threading

TOOLS = ("sbatch", "squeue", "sinfo", "scontrol", "scancel", "sacct", "srun")

CLIENT = """#!{python} -IS
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect({path!r})
s.sendall(json.dumps(sys.argv).encode() + b"\\n")
code, out, err = json.loads(b"".join(iter(lambda: s.recv(65536), b"")))
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(code)
"""


def kill_session(leader):
    """A task with all that it started: commands have process groups of their own."""
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text().rpartition(")")[2].split()[3]) == leader:
                os.kill(int(path.parent.name), signal.SIGKILL)
        except (OSError, ValueError, IndexError):
            pass


class Task:
    def __init__(self, job, index, words, script, output, excluded):
        self.job, self.index, self.words, self.script = job, index, words, script
        self.output, self.excluded = output, excluded
        self.state, self.node, self.meant_for, self.process = "PENDING", "", "", None


class FakeSlurm:
    def __init__(self, nodes=3):
        self.nodes = {f"n{i + 1}": "idle" for i in range(nodes)}
        self.lacks = {}  # of a node: findings that it has not
        self.forgets = False  # ended tasks vanish from the queue at once
        self.has_accounting = True
        self.limit = "UNLIMITED"  # of a task's time
        self.reasons = {}  # of a node: why it is drained
        self.broken = {}  # of a tool: what it says when it fails
        self.tasks, self.calls, self.numbers = [], [], itertools.count(100)
        self.lock = threading.RLock()
        self.folder = tempfile.TemporaryDirectory(prefix="assay-slurm-")
        socket_path = self.folder.name + "/socket"
        for name in TOOLS:
            path = pathlib.Path(self.folder.name, name)
            path.write_text(CLIENT.format(python=sys.executable, path=socket_path))
            path.chmod(0o755)
        self.environment = {"PATH": f"{self.folder.name}:{os.environ['PATH']}"}
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                answer = outer.answer(json.loads(self.rfile.readline()))
                self.wfile.write(json.dumps(answer).encode())

        self.server = socketserver.ThreadingUnixStreamServer(socket_path, Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        with self.lock:
            self.nodes.clear()
            for task in self.tasks:
                self.end(task, "CANCELLED")
        for task in self.tasks:
            if task.process:
                task.process.wait()
        self.server.server_close()
        self.folder.cleanup()

    def called(self, tool):
        return [words for words in list(self.calls) if words[0] == tool]

    # ---- what happens ----

    def schedule(self):
        with self.lock:
            busy = {task.node for task in self.tasks if task.state == "RUNNING"}
            for task in self.tasks:
                allowed = [name for name, state in self.nodes.items()
                           if state == "idle" and name not in task.excluded]
                if task.state != "PENDING" or not allowed:
                    continue
                if task.meant_for not in allowed:
                    task.meant_for = allowed[task.index % len(allowed)]
                if task.meant_for not in busy:
                    self.start(task, task.meant_for)
                    busy.add(task.node)

    def start(self, task, node):
        environment = dict(os.environ, **self.environment, SLURM_ARRAY_TASK_ID=str(task.index),
                           SLURM_ARRAY_JOB_ID=str(task.job), SLURMD_NODENAME=node)
        if node in self.lacks:
            environment["ASSAY_LACKS"] = self.lacks[node]
        with open(task.output.replace("%a", str(task.index)), "wb") as output:
            task.process = subprocess.Popen(["/bin/sh", task.script], stdin=subprocess.DEVNULL,
                                            stdout=output, stderr=output, env=environment,
                                            start_new_session=True)
        task.state, task.node = "RUNNING", node
        threading.Thread(target=self.watch, args=(task, task.process), daemon=True).start()

    def watch(self, task, process):
        code = process.wait()
        with self.lock:
            if task.state == "RUNNING":
                task.state = "COMPLETED" if code == 0 else "FAILED"
        self.schedule()

    def end(self, task, state):
        if task.state == "PENDING":
            task.state = state
        elif task.state == "RUNNING":
            task.state = state
            kill_session(task.process.pid)

    def stop(self, task, state):
        """As Slurm does it: a word to the task first, and the end a little later."""
        with self.lock:
            task.state = state
            os.kill(task.process.pid, signal.SIGTERM)

    def kill(self, node):
        with self.lock:
            self.nodes[node] = "down*"
            for task in self.tasks:
                if task.node == node:
                    self.end(task, "NODE_FAIL")
        self.schedule()

    # ---- what the programs say ----

    def answer(self, argv):
        tool, words = os.path.basename(argv[0]), argv[1:]
        self.calls.append([tool, *words])
        if tool in self.broken:
            return 1, "", self.broken[tool] + "\n"
        with self.lock:
            result = getattr(self, tool)(words)
        self.schedule()
        return result

    @staticmethod
    def value(words, name, default=""):
        found = [word.partition("=")[2] for word in words if word.startswith(f"--{name}=")]
        return found[-1] if found else default

    def of_jobs(self, words):
        jobs = {int(word) for word in self.value(words, "jobs").split(",")}
        return [task for task in self.tasks if task.job in jobs]

    def sbatch(self, words):
        number = next(self.numbers)
        last = int(re.match(r"0-(\d+)", self.value(words, "array"))[1])
        excluded = set(filter(None, self.value(words, "exclude").split(",")))
        for index in range(last + 1):
            self.tasks.append(Task(number, index, words, words[-1], self.value(words, "output"),
                                   excluded))
        return 0, f"{number}\n", ""

    def squeue(self, words):
        shown = [task for task in self.of_jobs(words)
                 if not self.forgets or task.state in ("PENDING", "RUNNING")]
        return 0, "".join(f"{t.job}|{t.index}|{t.state}|{t.node}|{self.limit}\n" for t in shown), ""

    def sacct(self, words):
        known = ("--noheader", "--parsable2", "--allocations", "--format=JobID,State,NodeList,Timelimit")
        for word in words:
            if word not in known and not word.startswith("--jobs="):
                return 1, "", f"sacct: unrecognized option '{word}'"
        if not self.has_accounting:
            return 1, "", "Slurm accounting storage is disabled"
        return 0, "".join(f"{t.job}_{t.index}|{t.state}{' by 0' * (t.state == 'CANCELLED')}|"
                          f"{t.node or 'None assigned'}|{self.limit}\n" for t in self.of_jobs(words)), ""

    def scancel(self, words):
        for task in self.tasks:
            if str(task.job) in words:
                self.end(task, "CANCELLED")
        return 0, "", ""

    def sinfo(self, words):
        return 0, "".join(f"{name}|{state}|{self.reasons.get(name, 'none')}\n"
                          for name, state in self.nodes.items()), ""

    def scontrol(self, words):
        words = [word for word in words if not word.startswith("-")]
        if words == ["show", "config"]:
            return 0, "MaxArraySize            = 1001\n", ""
        if words[:2] != ["show", "job"]:
            return 1, "", "scontrol " + shlex.join(words)
        jobs = [t for t in self.tasks if t.job == int(words[2])]
        return 0, "".join(f"JobId={9000 + t.index} ArrayJobId={t.job} ArrayTaskId={t.index} JobName=x "
                          f"JobState={t.state} Reason=None TimeLimit={self.limit} NodeList={t.node} BatchHost={t.node}\n"
                          for t in jobs), ""

    def srun(self, words):
        return 1, "", "srun: there are no steps here"
