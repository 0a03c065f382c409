# SPDX-License-Identifier: MIT
"""A PostgreSQL server of a test's own: a private port, a private folder, nothing left behind.

    with Server() as server:
        server.address("store")      postgresql://…/store, a database that is made

The server is the child of a keeper (keeper.py), which is this file, run as a program.  PostgreSQL
refuses to run as root: then it runs as the user postgres.
"""
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import time

from keeper import WAIT_S, Kept, free_ports, keep

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


class Server(Kept):
    program, what = __file__, "server"

    def __init__(self, more="", fsync=False):
        self.launch("assay-lab-", lambda: self._words(more, fsync))

    def _words(self, more, fsync):
        self.port = free_ports(1)[0]
        self.log = self.folder / "log"
        self.data = self.folder / "data"
        return str(self.port), "on" if fsync else "off", more

    def stop(self):
        """At once and without a word to its clients, as when its machine fails."""
        self.tell("stop", "stopped")

    def start(self):
        self.tell("start", "ready")

    def sql(self, text, database="postgres", user="postgres"):
        """Rows as lines of columns that a | separates."""
        result = subprocess.run(
            ["psql", "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p",
             str(self.port), "-U", user, "-d", database, "-c", text],
            capture_output=True, text=True, timeout=600, check=False)
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


class Keeper:
    def __init__(self, folder, port, fsync, more):
        self.folder, self.port, self.server = pathlib.Path(folder), port, None
        self.programs = programs()
        self.log = open(self.folder / "log", "ab")
        os.chmod(self.folder / "log", 0o666)
        if os.geteuid() == 0:
            entry = pwd.getpwnam("postgres")
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
        data = self.folder / "data"
        subprocess.run([self.programs / "initdb", "-D", data, "-U", "postgres", "--auth=trust",
                        "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8"], stdout=self.log,
                       stderr=self.log, check=True, cwd="/", **as_server_user())
        with open(data / "postgresql.conf", "a", encoding="utf8") as file:
            file.write(SETTINGS.format(port=port, folder=folder, fsync=fsync, more=more))
        (data / "pg_hba.conf").write_text(HBA)

    def start(self):
        self.server = subprocess.Popen([self.programs / "postgres", "-D", self.folder / "data"],
                                       stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                       cwd="/", **as_server_user())
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end and self.server.poll() is None:
            answer = subprocess.run([self.programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p",
                                     self.port], check=False)
            if answer.returncode == 0:
                return
            time.sleep(0.05)
        raise RuntimeError("it does not start: "
                           + (self.folder / "log").read_text(errors="replace")[-600:])

    def obey(self, line):
        if line == "stop":
            self.stop()
            return "stopped"
        self.start()
        return "ready"

    def stop(self):
        if self.server and self.server.poll() is None:
            self.server.send_signal(signal.SIGQUIT)
            self.server.wait()


if __name__ == "__main__":
    keep(Keeper)
