# SPDX-License-Identifier: MIT
"""A Slurm cluster of a test's own on this one host: munged, slurmctld and several slurmd, each a
node; private ports, keys and folders, nothing left behind.

    with Cluster(nodes=3) as cluster:
        cluster.environment          for sbatch and its like, and for assay run --on slurm
        cluster.kill("n2")           the node with all that runs on it, as when its power fails

All daemons are children of a keeper (keeper.py), which is this file, run as a program.  No timeout of
theirs is short unless it is asked for: on a machine that is busy a node must not be taken for dead.
"""
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

from keeper import WAIT_S, Kept, free_ports, keep

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo", "scontrol")

CONF = """
ClusterName=assaylab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
TaskProlog={folder}/task-prolog
MailProg=/bin/true
MpiDefault=none
SwitchType=switch/none
SelectType=select/linear
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout={node_timeout}
SlurmctldTimeout=600
MessageTimeout=60
KillWait=2
InactiveLimit=0
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=100000
AccountingStorageType={accounting}
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
{nodes}
PartitionName=lab Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

# The daemon of the accounting, with a MariaDB of its own behind it.
ACCOUNTING_PROGRAMS = ("slurmdbd", "sacctmgr", "sacct", "mariadbd", "mariadb-install-db", "mariadb-admin",
                       "mariadb")
ACCOUNTING_PACKAGES = ("slurmdbd", "mariadb-server")
ACCOUNTING = """accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={folder}/munge.socket"""
DBD_CONF = """
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
PidFile={folder}/slurmdbd.pid
LogFile={folder}/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={storage}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm
"""
DATABASE = """
CREATE DATABASE slurm;
CREATE USER 'slurm'@'127.0.0.1' IDENTIFIED BY 'slurm';
GRANT ALL ON slurm.* TO 'slurm'@'127.0.0.1';
"""

# What each node is to lack stands in a file of its own name.
PROLOG = """#!/bin/sh
[ ! -e {folder}/lacks.$SLURMD_NODENAME ] || echo "export ASSAY_LACKS=$(cat {folder}/lacks.$SLURMD_NODENAME)"
"""


def program(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


def why_not():
    """Why no cluster can be started here; "" when it can."""
    if os.environ.get("ASSAY_SLURM_MISSING"):
        return os.environ["ASSAY_SLURM_MISSING"]
    missing = [name for name in PROGRAMS if not program(name)]
    if missing:
        return "not installed: " + ", ".join(missing)
    if os.geteuid() != 0:
        return "slurmd must be started by root"
    return ""


def has_accounting():
    return all(program(name) for name in ACCOUNTING_PROGRAMS)


class Cluster(Kept):
    program, what = __file__, "cluster"

    def __init__(self, nodes=3, node_timeout=600):
        """With accounting where its programs are installed."""
        self.nodes = [f"n{i + 1}" for i in range(nodes)]
        self.launch("assay-slurm-", lambda: [str(nodes), str(node_timeout)])
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def kill(self, node, is_told=True):
        """With all that runs there; the controller is told, as by an administrator or a watchdog,
        because it would take its time to find out."""
        self.tell("kill " + node, "killed")
        if is_told:
            self.run("scontrol", "update", "NodeName=" + node, "State=DOWN", "Reason=killed")

    def start(self, node):
        self.tell("start " + node, "started")

    def lacks(self, node, what):
        path = self.folder / ("lacks." + node)
        path.write_text(what) if what else path.unlink(missing_ok=True)

    def run(self, *words):
        result = subprocess.run(words, env=dict(os.environ, **self.environment), timeout=240,
                                capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise RuntimeError(f"{words[0]}: {result.stderr}")
        return result.stdout

    def states(self):
        return dict(line.split() for line in
                    self.run("sinfo", "-h", "-N", "-o", "%N %T").splitlines())

    def until_idle(self):
        end = time.monotonic() + WAIT_S
        while set(self.states().values()) != {"idle"}:
            if time.monotonic() > end:
                raise RuntimeError(f"the nodes are not idle: {self.states()}")
            time.sleep(0.2)


# ---- the keeper ----

def parents():
    """Who is whose child."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            found[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            pass
    return found


def below(roots):
    """All processes below those, themselves included."""
    tree, found, grown = parents(), set(roots), True
    while grown:
        more = {pid for pid, parent in tree.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return found


def node_of(pid):
    try:
        variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    for variable in variables:
        if variable.startswith(b"SLURMD_NODENAME="):
            return variable.partition(b"=")[2].decode()
    return ""


class Keeper:
    def __init__(self, folder, nodes, node_timeout):
        self.folder = pathlib.Path(folder)
        self.names = [f"n{i + 1}" for i in range(int(nodes))]
        self.children = {}
        ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: what daemons leave comes here
        port, self.accounting, self.storage, *ports = free_ports(3 + len(self.names))
        host = socket.gethostname().split(".")[0]
        lines = [f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={p} CPUs=1 "
                 f"RealMemory=64 Feature={name}" for name, p in zip(self.names, ports)]
        self.conf = self.folder / "slurm.conf"
        accounting = "accounting_storage/none"
        if has_accounting():
            accounting = ACCOUNTING.format(port=self.accounting, folder=self.folder)
        self.conf.write_text(CONF.format(host=host, port=port, folder=self.folder,
                                         accounting=accounting, node_timeout=node_timeout,
                                         nodes="\n".join(lines)))
        (self.folder / "state").mkdir()
        prolog = self.folder / "task-prolog"
        prolog.write_text(PROLOG.format(folder=self.folder))
        prolog.chmod(0o755)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(64))
        key.chmod(0o400)

    def spawn(self, name, *words):
        log = open(self.folder / (name + ".out"), "ab")
        environment = dict(os.environ, SLURM_CONF=str(self.conf))
        self.children[name] = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log,
                                               stderr=log, env=environment, cwd="/")

    def until(self, condition, what):
        end = time.monotonic() + WAIT_S
        while not condition():
            ended = [name for name, child in self.children.items() if child.poll() is not None]
            if ended or time.monotonic() > end:
                last = (self.folder / ((ended or [what])[0] + ".out"))
                words = last.read_text(errors="replace")[-400:] if last.exists() else ""
                raise RuntimeError(f"{what}: {'ended: ' + ended[0] if ended else 'too slow'} {words}")
            time.sleep(0.1)

    def ask(self, *words):
        return subprocess.run(words, env=dict(os.environ, SLURM_CONF=str(self.conf)), timeout=240,
                              capture_output=True, text=True, check=False)

    def start_node(self, name):
        self.spawn("slurmd." + name, program("slurmd"), "-D", "-N", name, "-f", str(self.conf))

    def is_idle(self, names):
        answer = self.ask("sinfo", "-h", "-N", "-o", "%N %T")
        states = dict(line.split() for line in answer.stdout.splitlines())
        return answer.returncode == 0 and all(states.get(name) == "idle" for name in names)

    def start_accounting(self):
        """MariaDB, slurmdbd and the cluster's entry there, which the controller wants at its start."""
        at = self.folder
        data, sock = at / "mariadb", at / "mariadb.socket"
        base = f"--no-defaults --datadir={data} --user=root".split()
        made = self.ask(program("mariadb-install-db"), *base, "--auth-root-authentication-method=socket",
                        "--skip-test-db")
        if made.returncode != 0:
            raise RuntimeError("mariadb-install-db: " + (made.stderr or made.stdout)[-400:])
        self.spawn("mariadbd", program("mariadbd"), *base, f"--socket={sock}", f"--port={self.storage}",
                   "--bind-address=127.0.0.1", f"--pid-file={at}/mariadbd.pid", "--skip-log-bin")
        admin = (program("mariadb-admin"), "--no-defaults", f"--socket={sock}", "--user=root", "ping")
        self.until(lambda: self.ask(*admin).returncode == 0, "mariadbd")
        made = self.ask(program("mariadb"), "--no-defaults", f"--socket={sock}", "--user=root",
                        f"--execute={DATABASE}")
        if made.returncode != 0:
            raise RuntimeError("mariadb: " + made.stderr)
        conf = at / "slurmdbd.conf"
        conf.write_text(DBD_CONF.format(port=self.accounting, storage=self.storage, folder=at))
        conf.chmod(0o600)
        self.spawn("slurmdbd", program("slurmdbd"), "-D")
        self.until(lambda: self.ask("sacctmgr", "--immediate", "list", "cluster").returncode == 0,
                   "slurmdbd")
        if not self.ask("sacctmgr", "--noheader", "list", "cluster").stdout.strip():
            made = self.ask("sacctmgr", "--immediate", "add", "cluster", "assaylab")
            if made.returncode != 0:
                raise RuntimeError("sacctmgr: " + made.stderr + made.stdout)

    def start(self):
        at = self.folder
        self.spawn("munged", program("munged"), "--foreground", "--force", f"--key-file={at}/munge.key",
                   f"--socket={at}/munge.socket", f"--pid-file={at}/munged.pid",
                   f"--seed-file={at}/munge.seed", f"--log-file={at}/munged.log", "--num-threads=2")
        self.until((at / "munge.socket").exists, "munged")
        if has_accounting():
            self.start_accounting()
        self.spawn("slurmctld", program("slurmctld"), "-D", "-c", "-f", str(self.conf))
        self.until(lambda: self.ask("scontrol", "ping").returncode == 0, "slurmctld")
        for name in self.names:
            self.start_node(name)
        self.until(lambda: self.is_idle(self.names), "slurmctld")

    def kill_node(self, name):
        """slurmd and every process that belongs to a job on that node, with what is above it."""
        self.children["slurmd." + name].kill()
        self.children.pop("slurmd." + name).wait()
        own = {os.getpid()} | {child.pid for child in self.children.values()}
        tree = parents()
        jobs = [pid for pid in below([os.getpid()]) if node_of(pid) == name]
        jobs = {pid for pid in jobs + [tree.get(pid) for pid in jobs] if pid} - own - {1}
        for number in (signal.SIGSTOP, signal.SIGKILL):  # none is to tell of another's end
            for pid in jobs:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass

    def obey(self, line):
        word, _, node = line.partition(" ")
        if word == "kill":
            self.kill_node(node)
            return "killed"
        self.start_node(node)
        self.until(lambda: self.is_idle([node]), "slurmd." + node)
        return "started"

    def stop(self):
        if "slurmctld" in self.children and self.children["slurmctld"].poll() is None:
            try:
                self.ask("scancel", "--quiet", "--user=root")
            except subprocess.TimeoutExpired:
                pass
        for _ in range(50):
            left = below([os.getpid()]) - {os.getpid()}
            if not left:
                break
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                break
            time.sleep(0.05)


if __name__ == "__main__":
    keep(Keeper)
