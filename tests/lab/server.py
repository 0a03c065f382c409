# SPDX-License-Identifier: MIT
"""A PostgreSQL server of a test's own: a private port, a private folder, nothing left behind.

    with Server() as server:
        server.address("store")      postgresql://…/store, a database that is made

The server is the child of a keeper process (this file, run as a program), in a session of its own.
The keeper stops the server and removes the folder as soon as its standard input ends, that is when
the test closes it or is gone, however it died.  PostgreSQL refuses to run as root: then it runs as
the user postgres.
"""
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

WAIT_S = 60

SETTINGS = """
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = '{folder}'
max_connections = 120
shared_buffers = 64MB
max_wal_size = 2GB
logging_collector = off
log_line_prefix = ''
fsync = {fsync}
{more}
"""

HBA = """
host all guarded 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
local all all trust
"""


def programs():
    """The folder of initdb and postgres, None when they are not there."""
    folders = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"),
                     key=lambda p: int(p.parent.name) if p.parent.name.isdigit() else 0)
    folders = [pathlib.Path(p).parent for p in [shutil.which("pg_isready")] if p] + folders
    found = [f for f in folders
             if all((f / name).exists() for name in ("initdb", "postgres", "pg_isready"))]
    return found[-1] if found else None


def why_not():
    """Why no server can be started here; "" when it can."""
    if os.environ.get("ASSAY_LAB_MISSING"):
        return os.environ["ASSAY_LAB_MISSING"]
    if not programs():
        return "PostgreSQL's server is not installed"
    if os.geteuid() == 0:
        try:
            pwd.getpwnam("postgres")
        except KeyError:
            return "PostgreSQL does not run as root, and there is no user postgres"
    return ""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, more="", fsync=False):
        for tries in range(3):
            try:
                self._launch(more, fsync)
                return
            except RuntimeError:  # another may have taken the port meanwhile
                self.close()
                if tries == 2:
                    raise

    def _launch(self, more, fsync):
        self.port = free_port()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-lab-"))
        os.chmod(self.folder, 0o755)
        self.log = self.folder / "log"
        self.data = self.folder / "data"
        self.keeper = subprocess.Popen(
            [sys.executable, __file__, str(self.folder), str(self.port), "on" if fsync else "off",
             more], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            start_new_session=True)
        self._expect("ready")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.keeper.stdin.close()
        self.keeper.wait(WAIT_S)

    def _expect(self, word):
        line = self.keeper.stdout.readline().strip()
        if line != word:
            raise RuntimeError(f"the server is not {word}: {line or 'it ended'}")

    def stop(self):
        """At once and without a word to its clients, as when its machine fails."""
        self.keeper.stdin.write("stop\n")
        self.keeper.stdin.flush()
        self._expect("stopped")

    def start(self):
        self.keeper.stdin.write("start\n")
        self.keeper.stdin.flush()
        self._expect("ready")

    def sql(self, text, database="postgres", user="postgres"):
        """Rows as lines of columns that a | separates."""
        result = subprocess.run(
            ["psql", "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p",
             str(self.port), "-U", user, "-d", database, "-c", text],
            capture_output=True, text=True, timeout=300, check=False)
        if result.returncode != 0:
            raise RuntimeError(f"psql: {result.stderr}")
        return result.stdout.strip()

    def make(self, database):
        self.sql(f'CREATE DATABASE "{database}"')
        return self.address(database)

    def address(self, database, user="postgres"):
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def cut(self, database):
        """Ends every connection to the database; returns how many there were."""
        return int(self.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                            f"WHERE datname = '{database}'"))


# ---- the keeper ----

def as_server_user():
    return {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}


def keep(folder, port, fsync, more):
    folder, bin_folder = pathlib.Path(folder), programs()
    data, log = folder / "data", open(folder / "log", "ab")
    os.chmod(folder / "log", 0o666)
    if os.geteuid() == 0:
        entry = pwd.getpwnam("postgres")
        os.chown(folder, entry.pw_uid, entry.pw_gid)
    subprocess.run([bin_folder / "initdb", "-D", data, "-U", "postgres", "--auth=trust", "--no-sync",
                    "--encoding=UTF8", "--locale=C.UTF-8"], stdout=log, stderr=log, check=True,
                   cwd="/", **as_server_user())
    with open(data / "postgresql.conf", "a", encoding="utf8") as file:
        file.write(SETTINGS.format(port=port, folder=folder, fsync=fsync, more=more))
    (data / "pg_hba.conf").write_text(HBA)

    def start():
        server = subprocess.Popen([bin_folder / "postgres", "-D", data], stdin=subprocess.DEVNULL,
                                  stdout=log, stderr=log, cwd="/", **as_server_user())
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end and server.poll() is None:
            answer = subprocess.run([bin_folder / "pg_isready", "-q", "-h", "127.0.0.1", "-p", port],
                                    check=False)
            if answer.returncode == 0:
                return server
            time.sleep(0.05)
        stop(server)
        raise RuntimeError("it does not start: " + (folder / "log").read_text(errors="replace")[-600:])

    def stop(server):
        if server.poll() is None:
            server.send_signal(signal.SIGQUIT)
        server.wait()

    server = start()
    try:
        print("ready", flush=True)
        for line in sys.stdin:
            if line.strip() == "stop":
                stop(server)
                print("stopped", flush=True)
            elif line.strip() == "start":
                server = start()
                print("ready", flush=True)
    finally:
        stop(server)


def main():
    folder = sys.argv[1]
    os.chdir("/")  # the test's own folder goes away earlier
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the end of the input is what ends it
    try:
        keep(*sys.argv[1:5])
    except (OSError, RuntimeError, subprocess.SubprocessError) as failure:
        try:
            print(" ".join(str(failure).split()), flush=True)
        except BrokenPipeError:
            pass
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


if __name__ == "__main__":
    main()
