# SPDX-License-Identifier: MIT
"""Roles of a spec on different hosts: all here, over (a stand-in for) ssh, in network namespaces; and
the parts of an experiment on several hosts with GNU parallel, as docs/LAB.md shows."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import namespaces as in_namespace
from harness import *

SSHD_PROGRAM = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin")
ROLES = """name: roles
hosts: {client: 1, server: 2}
setup: ["{on.server2}", sh, -c, 'echo "$WHERE" > setup-ran']
command: ["{on.client}", sh, -c, 'echo "here=$WHERE to={host.server2} all={hosts.server}" >> log']
rounds: 1
warmup: 0
"""

# Does what ssh does, on this host: joins the words, gives them to a shell, and says where it is.
SSH = """#!/bin/sh
while :; do case $1 in -o) shift 2 ;; -*) shift ;; *) break ;; esac; done
host=$1; shift
[ "$1" != -- ] || shift
echo "$host" >> %s
SHELL=/bin/sh WHERE=$host exec sh -c "$*"
"""


def fake_ssh():
    folder = pathlib.Path("tools").absolute()
    folder.mkdir()
    (folder / "ssh").write_text(SSH % pathlib.Path("ssh.log").absolute())
    (folder / "ssh").chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def run_roles(*words, env=None, check=0):
    pathlib.Path("roles.yaml").write_text(ROLES)
    return assay("run", "-q", "roles.yaml", "--db", "r.db", *words, env=env, check=check)


@test
def without_a_placement_all_is_here():
    run_roles(env={"WHERE": "home"})
    equal(pathlib.Path("log").read_text(), "here=home to=127.0.0.1 all=127.0.0.1,127.0.0.1\n")
    equal(pathlib.Path("setup-ran").read_text(), "home\n")


@test
def roles_are_placed_in_their_order_or_by_name():
    # Words go through a shell on the other side, as ssh has it, so this command is one word.
    spec = ROLES.replace("sh, -c, 'echo \"$WHERE\" > setup-ran'", "'touch setup-$WHERE'")
    pathlib.Path("roles.yaml").write_text(spec)
    environment = dict(fake_ssh(), WHERE="home")
    assay("run", "-q", "roles.yaml", "--db", "r.db", "--hosts", "m1,m2,m3@10.1.1.3",
          env=environment, check=0)
    equal(pathlib.Path("log").read_text(), "here=home to=10.1.1.3 all=m2,10.1.1.3\n")
    equal(pathlib.Path("ssh.log").read_text(), "m3\n")
    equal(pathlib.Path("setup-m3").exists(), True)
    pathlib.Path("log").unlink()
    pathlib.Path("hosts").write_text("server2=b\nclient=c\nserver1=a\n")
    assay("run", "-q", "--fresh", "roles.yaml", "--db", "r.db", "--hosts", "@hosts",
          env=environment, check=0)
    equal(pathlib.Path("log").read_text(), "here=home to=b all=a,b\n")


@test
def what_is_wrong_is_told():
    for words, said in ((("--hosts", "a,b"), "no host given for the role 'server2'"),
                        (("--hosts", "x=1"), "the spec has no role 'x'"),
                        (("--hosts", "a,b,-oProxyCommand=x"), "no role '-oProxyCommand'"),
                        (("--hosts", "a,b,-x"), "'-x' is not a host"),
                        (("--hosts", "a,b,c;d"), "'c;d' is not a host")):
        contains(run_roles(*words, check=1).stderr, said)
    pathlib.Path("plain.yaml").write_text("name: p\ncommand: 'true'\n")
    contains(assay("run", "plain.yaml", "--hosts", "a", check=1).stderr, "has no 'hosts'")
    pathlib.Path("bad.yaml").write_text("name: p\ncommand: 'echo {host.other}'\nhosts: [one]\n")
    contains(assay("run", "bad.yaml", check=1).stderr, "bad.yaml:2")


NETNS = """name: netns
hosts: [sender, receiver]
setup:
  start: ["{on.receiver}", BINARY, --listen, "{host.receiver}:7000"]
  ready: {output: listening}
command: ["{on.sender}", BINARY, --connect, "{host.receiver}:7000", -S, "0.1", --warmup, "0.05"]
rounds: 2
warmup: 0
"""


def namespaces(names):
    """Two network namespaces with a cable between them; why they cannot be had, else ""."""
    a, b = names
    for words in (["netns", "add", a], ["netns", "add", b],
                  ["-n", a, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", b],
                  ["-n", a, "addr", "add", "10.97.0.1/24", "dev", "eth0"],
                  ["-n", b, "addr", "add", "10.97.0.2/24", "dev", "eth0"],
                  ["-n", a, "link", "set", "eth0", "up"], ["-n", b, "link", "set", "eth0", "up"],
                  ["-n", a, "link", "set", "lo", "up"], ["-n", b, "link", "set", "lo", "up"]):
        try:
            in_namespace.ip(*words)
        except subprocess.CalledProcessError as error:
            return f"ip {' '.join(words)}: {error.stderr.strip()}"
    return ""


@test
def sender_and_receiver_in_two_network_namespaces():
    binary = pathlib.Path(os.environ.get("BUILD", "build")) / "workloads/move/assay-move"
    if os.geteuid() != 0 or not shutil.which("ip"):
        skip("network namespaces need root and ip")
    names = [f"assay-{side}-{os.getpid()}" for side in "ab"]
    try:
        why = namespaces(names)
        if why:
            skip(why)
        pathlib.Path("netns.yaml").write_text(NETNS.replace("BINARY", str(binary)))
        assay("run", "-q", "netns.yaml", "--db", "n.db", "--launcher",
              "nsenter --net=/var/run/netns/{host}", "--hosts", f"{names[0]},{names[1]}@10.97.0.2", check=0)
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    shown = json.loads(assay("show", "last", "--json", "--db", "n.db", check=0).stdout)
    equal(len(shown["cells"][0]["values"]["throughput"]), 2, "rounds with a throughput")


SSHD = """Port 22
ListenAddress {address}
HostKey {folder}/host-key
AuthorizedKeysFile {folder}/key.pub
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
PidFile none
"""
SSH_CONFIG = """Host *
IdentityFile {folder}/key
UserKnownHostsFile {folder}/known
StrictHostKeyChecking no
ConnectTimeout 10
"""


@contextlib.contextmanager
def ssh_servers(network, count):
    """A real sshd in each of the first namespaces; the environment in which "ssh" logs in there."""
    folder = pathlib.Path("ssh").absolute()
    folder.mkdir(mode=0o700)
    for name in ("host-key", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    (folder / "config").write_text(SSH_CONFIG.format(folder=folder))
    (folder / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/config "$@"\n')
    (folder / "ssh").chmod(0o755)
    pathlib.Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    servers = []
    try:
        for index in range(count):
            address = f"10.77.0.{index + 1}"
            config = folder / f"sshd-{index}"
            config.write_text(SSHD.format(folder=folder, address=address))
            servers.append(subprocess.Popen(
                network.command(index, SSHD_PROGRAM, "-D", "-e", "-f", config),
                stderr=(folder / f"log-{index}").open("w")))
        environment = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}")
        for index in range(count):
            for _ in range(50):
                done = subprocess.run(network.command(-1, folder / "ssh", f"10.77.0.{index + 1}", "true"),
                                      capture_output=True, text=True, timeout=60, check=False)
                if done.returncode == 0:
                    break
                time.sleep(0.1)
            else:
                skip(f"sshd lets nobody in: {done.stderr.strip()}")
        yield environment
    finally:
        for server in servers:
            server.terminate()
            server.wait(60)


def until(condition):
    for _ in range(300):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("what was waited for did not happen in 30 seconds")


@test
def sender_and_receiver_by_real_ssh():
    binary = pathlib.Path(os.environ.get("BUILD", "build")).absolute() / "workloads/move/assay-move"
    if not SSHD_PROGRAM or not shutil.which("ssh-keygen"):
        skip("no sshd: openssh-server is not installed")
    if not in_namespace.possible():
        skip("network namespaces need root and ip")
    pathlib.Path("netns.yaml").write_text(NETNS.replace("BINARY", str(binary)))
    pathlib.Path("long.yaml").write_text(
        "name: long\nhosts: [there]\ncommand: ['{on.there}', sleep, '54321']\nrounds: 1\nwarmup: 0\n")
    with in_namespace.Network(2) as network, ssh_servers(network, 2) as environment:
        def run(*words):
            return network.command(-1, ASSAY, "run", "-q", "--db", "s.db", *words)
        done = subprocess.run(run("netns.yaml", "--hosts", "sender=10.77.0.1,receiver=10.77.0.2"),
                              env=environment, capture_output=True, text=True, timeout=120, check=False)
        equal(done.returncode, 0, done.stderr)
        shown = json.loads(assay("show", "last", "--json", "--db", "s.db", check=0).stdout)
        equal(len(shown["cells"][0]["values"]["throughput"]), 2, "rounds with a throughput")
        # What was started there ends with assay.
        asleep = ["sleep", "54321"]
        process = subprocess.Popen(run("long.yaml", "--hosts", "there=10.77.0.2"), env=environment,
                                   stderr=subprocess.PIPE, text=True)
        until(lambda: processes(words=asleep))
        process.send_signal(signal.SIGINT)
        equal(process.wait(60), 130, process.stderr.read())
        until(lambda: not processes(words=asleep))


@test
def parts_of_an_experiment_with_gnu_parallel():
    if not shutil.which("parallel") or "GNU parallel" not in subprocess.run(
            ["parallel", "--version"], capture_output=True, text=True, check=False).stdout:
        skip("GNU parallel is not installed")
    doc = (ROOT / "docs/LAB.md").read_text()
    command = re.search(r"```\n(parallel .*?)\nassay list", doc, re.S)[1]
    project = pathlib.Path("project").absolute()
    project.mkdir()
    (project / "sort.yaml").write_text("name: sort\ncommand: 'echo {variant} {size}'\nfactors:\n"
                                       "  variant: [quick, heap]\n  size: [1000, 10000, 100000]\n"
                                       "baseline: {variant: quick}\nrounds: 3\nwarmup: 0\n")
    # A login, here or over ssh, sets SHELL; GNU parallel goes by it.
    environment = dict(os.environ, **fake_ssh(), SHELL="/bin/sh",
                       ASSAY_DB=str(pathlib.Path("lab.db").absolute()),
                       PARALLEL_HOME=str(pathlib.Path("parallel").absolute()))
    command = command.replace("cd project", f"cd {project}").replace("assay run", f"{ASSAY} run")
    done = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True,
                          timeout=400, stdin=subprocess.DEVNULL, check=False)
    equal(done.returncode, 0, done.stderr)
    listed = json.loads(assay("list", "--json", "--name", "sort", "--db", "lab.db", check=0).stdout)
    equal(sorted((e["selection"], e["runs_count"], e["state"]) for e in listed["experiments"]),
          [(f" cells=size={size}", 6, "done") for size in (1000, 10000, 100000)])
    equal({"m1", "m2", "m3"} >= set(pathlib.Path("ssh.log").read_text().split()), True)


main()
