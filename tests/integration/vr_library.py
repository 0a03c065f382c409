# SPDX-License-Identifier: MIT
"""libassay-vr as programs of others use it: installed, found by pkg-config, called from C and from Python; and
clusters whose addresses are names or IPv6, or whose packets are encrypted."""
import contextlib
import ctypes.util
import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from harness import *
from vr_cluster import *

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STRICT = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror", "-O2"]
installed = {}


def library():
    """Installs once; the folder of everything, of the library, and the flags that pkg-config gives."""
    if os.environ.get("ASSAY_SANITIZED"):
        skip("the library has the sanitizer in it")
    if not shutil.which("meson") or not shutil.which("pkg-config"):
        skip("meson or pkg-config is missing")
    if not installed:
        installed["keep"] = tempfile.TemporaryDirectory()
        folder = installed["keep"].name
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--tags", "devel,runtime",
                        "--destdir", folder], check=True, timeout=400)
        found = [path for path, _, names in os.walk(folder) if "assay-vr.pc" in names]
        equal(len(found), 1, "one assay-vr.pc is installed")
        installed["flags"] = subprocess.run(
            ["pkg-config", "--cflags", "--libs", "assay-vr"], check=True, text=True, capture_output=True,
            env=dict(os.environ, PKG_CONFIG_PATH=found[0], PKG_CONFIG_SYSROOT_DIR=folder,
                     PKG_CONFIG_ALLOW_SYSTEM_CFLAGS="1")).stdout.split()
        installed["folder"] = next(path for path, _, names in os.walk(folder) if "libassay-vr.so.0" in names)
        os.environ["LIBRARY"] = os.path.join(installed["folder"], "libassay-vr.so.0")
    return installed["folder"], installed["flags"]


def binding():
    """The example for Python as a module."""
    library()
    sys.path.insert(0, os.path.join(ROOT, "examples/vr-python"))
    import assay_vr
    return assay_vr


def fails(module, result, function, *args):
    try:
        function(*args)
    except module.Failed as failure:
        equal(failure.result, result, str(failure))
        return str(failure)
    raise AssertionError(f"{args}: it did not fail with {result}")


@test
def the_example_in_c_compiles_against_what_is_installed_and_runs():
    folder, flags = library()
    compilers = [c for c in ("gcc", "clang") if shutil.which(c)]
    source = os.path.join(ROOT, "examples/vr-c/store.c")
    static = [word for word in flags if word.startswith("-I")] + [os.path.join(folder, "libassay-vr.a")]
    with Cluster() as cluster:
        cluster.leader()
        number = 0
        for compiler in compilers:
            for way in (flags, static):
                subprocess.run([compiler, "-std=c11", *STRICT, source, "-o", "store", *way], check=True, timeout=400)
                result = subprocess.run(["./store", "cluster.conf"], text=True, capture_output=True, timeout=240,
                                        env=dict(os.environ, LD_LIBRARY_PATH=folder))
                number += 1
                equal((result.returncode, result.stdout, result.stderr),
                      (0, f"counter {number}\n200 ended, 0 failed\n", ""))
    result = subprocess.run(["./store", "nothing.conf"], text=True, capture_output=True, timeout=240,
                            env=dict(os.environ, LD_LIBRARY_PATH=folder))
    equal((result.returncode, result.stderr), (1, "store: open: nothing.conf: No such file or directory\n"))


@test
def the_header_is_cxx_too():
    _, flags = library()
    if not shutil.which("g++"):
        skip("no C++ compiler")
    with open("header.cc", "w") as file:
        file.write("#include <assay_vr.h>\nint main() { return assay_vr_error()[0]; }\n")
    subprocess.run(["g++", "-std=c++17", *STRICT, "header.cc", "-o", "header", *flags], check=True, timeout=400)


@test
def the_library_shows_only_its_own_names():
    folder, _ = library()
    for words in (["-D", "libassay-vr.so.0"], ["-g", "libassay-vr.a"]):
        text = subprocess.run(["nm", words[0], "--defined-only", os.path.join(folder, words[1])], check=True, text=True,
                              capture_output=True).stdout
        names = [line.split()[-1] for line in text.splitlines() if len(line.split()) == 3]
        equal([name for name in names if not name.lower().startswith("assay_vr_")], [])


@test
def the_example_in_python_runs():
    library()
    with Cluster() as cluster:
        cluster.leader()
        result = subprocess.run([sys.executable, os.path.join(ROOT, "examples/vr-python/assay_vr.py"), "cluster.conf"],
                                text=True, capture_output=True, timeout=240)
        equal((result.returncode, result.stdout, result.stderr),
              (0, "colour green changed True False now blue\n100 ended, 0 failed, 100 found\n", ""))


@test
def a_session_outlives_a_reconfiguration_and_a_new_leader():
    module = binding()
    with Cluster(spares=1) as cluster:
        store = module.Store("cluster.conf", timeout=120)
        store.put(b"x", b"1")
        cluster.start(3, "--format")
        until(lambda: cluster.status()[3]["state"], "the spare is there")
        ended = []
        equal(store.begin_put(b"y", b"during", ended.append), True)
        vr("reconfigure", "--config", "cluster.conf", "--timeout", 120, "--members", "1,2,3")
        while store.pending():
            store.turn()
        equal(ended, [0])
        cluster.kill(0)
        equal(store.cas(b"x", b"1", b"2"), True)
        cluster.kill(cluster.leader())
        equal((store.get(b"x"), store.get(b"y")), (b"2", b"during"))
        equal(list(store.scan()), [(b"x", b"2"), (b"y", b"during")])
        store.close()


@test
def time_outs_refusals_and_errors_have_their_numbers():
    module = binding()
    contains(fails(module, -errno.ENOENT, module.Store, "nothing.conf"), "nothing.conf")
    with Cluster() as cluster:
        store = module.Store("cluster.conf", timeout=120)
        store.put(b"x", b"1")
        contains(fails(module, -errno.E2BIG, store.put, b"k" * 65, b""), "maximum is 64")
        fails(module, -errno.E2BIG, store.put, b"k", b"v" * 513)
        equal((store.get(b"none"), store.delete(b"none"), store.get(b"x")), (None, False, b"1"))
        ended = []
        for index in range(3):
            cluster.signal(index, signal.SIGSTOP)
        module.library.assay_vr_set_timeout(store.store, 300)
        begin = time.monotonic()
        for index in range(16):
            equal(store.begin_put(b"%d" % index, b"", ended.append), True)
        equal(store.begin_put(b"one more", b"", ended.append), False)
        while store.pending():
            equal(0 <= module.library.assay_vr_wait(store.store) <= 301, True)
            store.turn()
        equal(ended, [-errno.ETIMEDOUT] * 16)
        equal(0.3 <= time.monotonic() - begin < 60, True, "as long as was asked for")
        for index in range(3):
            cluster.signal(index, signal.SIGCONT)
        module.library.assay_vr_set_timeout(store.store, 120000)
        equal(store.get(b"x"), b"1")
        store.close()
        # A key that may only read.
        vr("key", "--config", "cluster.conf", "--role", "read", "reader.key")
        with open("cluster.conf") as file:
            text = file.read()
        with open("reader.conf", "w") as file:
            file.write(text + "key-file reader.key\n")
        reader = module.Store("reader.conf", timeout=120)
        equal(reader.get(b"x"), b"1")
        contains(fails(module, -errno.EACCES, reader.put, b"x", b"2"), "role 'read'")
        reader.close()


@contextlib.contextmanager
def inside(name):
    """A folder of its own: a cluster's files are in the present one."""
    before = os.getcwd()
    os.mkdir(name)
    os.chdir(name)
    try:
        yield
    finally:
        os.chdir(before)


def ipv6():
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind(("::1", 0))
        return True
    except OSError:
        return False


def serves_at(host, shown, transport):
    with inside(transport), Cluster(host=host, transport=transport) as cluster:
        leader = cluster.leader()
        vr("kv", "--config", "cluster.conf", "--timeout", 120, "put", "x", "1")
        contains(vr("status", "--config", "cluster.conf").stdout, shown)
        cluster.kill(leader)
        equal(vr("kv", "--config", "cluster.conf", "--timeout", 120, "get", "x").stdout, "1\n")


@test
def replicas_have_ipv6_addresses():
    if not ipv6():
        skip("no IPv6 on this machine")
    for transport in ("epoll", "uring"):
        serves_at("[::1]", "[::1]:", transport)


@test
def replicas_have_names():
    serves_at("localhost", "127.0.0.1:", "epoll")


@test
def encrypted_packets_show_nothing():
    """All packets of a cluster, as the kernel hands them to a listener at the loopback device."""
    if os.geteuid() != 0:
        skip("to listen at a device takes root")
    if not ctypes.util.find_library("sodium"):
        skip("libsodium is not installed")
    secret = b"a-value-that-nobody-else-may-read"
    heard = {}
    for encrypt in ("no", "yes"):
        with inside(encrypt), Cluster(more=f"encrypt {encrypt}\n") as cluster, \
                socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as listener:
            cluster.leader()
            # Others may be busy at the same device: what was sent must not be lost among theirs.
            listener.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
            listener.bind(("lo", 0))
            listener.settimeout(2)
            vr("kv", "--config", "cluster.conf", "--timeout", 120, "put", "x", secret.decode())
            equal(vr("kv", "--config", "cluster.conf", "--timeout", 120, "get", "x").stdout.encode(), secret + b"\n")
            heard[encrypt] = False
            end = time.monotonic() + (20 if encrypt == "no" else 1)
            while time.monotonic() < end and not heard[encrypt]:
                heard[encrypt] = secret in listener.recv(65536)
            if encrypt == "no":
                continue
            # Who speaks openly is not heard, nor is who has another key.
            with open("cluster.conf") as file:
                text = file.read()
            with open("open.conf", "w") as file:
                file.write(text.replace("encrypt yes", "encrypt no"))
            vr("kv", "--config", "open.conf", "--timeout", 1, "get", "x", check=3)
            # A role's key is enough to read.
            vr("key", "--config", "cluster.conf", "--role", "read", "encrypted.key")
            with open("reader.conf", "w") as file:
                file.write(text + "key-file encrypted.key\n")
            equal(vr("kv", "--config", "reader.conf", "--timeout", 120, "get", "x").stdout.encode(), secret + b"\n")
            vr("kv", "--config", "reader.conf", "put", "x", "y", check=2)
            # Keys are changed while it serves: everybody takes the new key too, uses it, forgets the old one.
            os.rename("cluster.key", "old.key")
            vr("key", "--config", "cluster.conf")
            for settings in ("key-file old.key\naccept-key-file cluster.key\n",
                             "key-file cluster.key\naccept-key-file old.key\n", "key-file cluster.key\n"):
                with open("cluster.conf", "w") as file:
                    file.write(text + settings)
                for index in range(3):
                    cluster.signal(index, signal.SIGTERM)
                    cluster.processes[index].wait()
                    cluster.start(index)
                    equal(vr("kv", "--config", "cluster.conf", "--timeout", 120, "get", "x").stdout.encode(),
                          secret + b"\n")
            with open("old.conf", "w") as file:
                file.write(text + "key-file old.key\n")
            vr("kv", "--config", "old.conf", "--timeout", 1, "get", "x", check=3)
    equal(heard, {"no": True, "yes": False})
    with open("both.conf", "w") as file:
        file.write("replica 127.0.0.1:1\nencrypt yes\nopen yes\n")
    contains(vr("status", "--config", "both.conf", check=2).stderr, "cannot be used together")


main()
