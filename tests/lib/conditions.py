# SPDX-License-Identifier: MIT
"""Conditions under which every test must pass: see CONDITIONS, and docs/TESTING.md.

Several can hold at once, "load+locale+long-path": a test that passes then passes under each.  A condition that needs another checkout (an ordinary user's, or one at an unusual path) has a copy of
this one below the system's folder for temporary files, built there once and brought up to date."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
USER = 65534  # nobody
BUSY = "while True: pass"


class Impossible(Exception):
    """The condition cannot be had here, and why."""


class Condition:
    """As it is: the environment, the words before a command, the build folder."""
    summary = "as they are"
    before = ()

    def folder(self):
        """The build folder whose tests are run, made ready at the first call; None: any."""
        return None

    def environment(self, ours):
        """What becomes of these variables."""
        return ours

    @contextlib.contextmanager
    def holding(self):
        """While a test runs."""
        yield


class Load(Condition):
    summary = "a busy loop on each processor"

    @contextlib.contextmanager
    def holding(self):
        loops = [subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.DEVNULL)
                 for _ in os.sched_getaffinity(0)]
        try:
            yield
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()


class Nice(Condition):
    summary = "nice -n 10"
    before = ("nice", "-n", "10")


class OneProcessor(Condition):
    summary = "taskset to one processor"

    @property
    def before(self):
        return ("taskset", "-c", str(min(os.sched_getaffinity(0))))


class EmptyEnvironment(Condition):
    summary = "no variables but PATH"

    def environment(self, ours):
        return {"PATH": PATH}


class OtherLocale(Condition):
    summary = "TZ=Asia/Kathmandu, LC_ALL=de_DE.UTF-8 (decimal commas)"

    def environment(self, ours):
        folder = place("locale")
        if not (folder / "de_DE.UTF-8").exists():
            made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8",
                                   str(folder / "de_DE.UTF-8")], capture_output=True, text=True)
            if made.returncode:
                raise Impossible("localedef: " + (made.stderr.strip() or "no locales package"))
        return dict(ours, TZ="Asia/Kathmandu", LC_ALL="de_DE.UTF-8", LANG="de_DE.UTF-8",
                    LOCPATH=str(folder))


class Copy(Condition):
    """In a checkout of its own, whose name is also that of the folder for temporary files."""
    name = ""
    owner = None  # the user number, None for ours

    def __init__(self):
        self.ready = False
        self.lock = threading.Lock()

    def words(self):
        return ()

    def checkout(self):
        return place(self.name) / "checkout"

    def temporary(self):
        return place(self.name) / "tmp"

    def folder(self):
        with self.lock:
            if not self.ready:
                self.update()
                self.ready = True
        return self.checkout() / "build"

    def update(self):
        where = self.checkout()
        for folder in (where, self.temporary()):
            folder.mkdir(parents=True, exist_ok=True)
        files = subprocess.run(["git", "ls-files", "-z", "--cached", "--others",
                                "--exclude-standard"], cwd=ROOT, check=True,
                               capture_output=True).stdout.decode().split("\0")
        copy_changed([name for name in files if name and (ROOT / name).is_file()], where)
        if (ROOT / "web/node_modules").is_dir() and not (where / "web/node_modules").exists():
            shutil.copytree(ROOT / "web/node_modules", where / "web/node_modules", symlinks=True)
        if self.owner is not None:
            subprocess.run(["chown", "-R", f"{self.owner}:{self.owner}", place(self.name)],
                           check=True)
        built = subprocess.run([*self.words(), "./dev", "build"], cwd=where, text=True,
                               env=self.environment(os.environ), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if built.returncode:
            raise AssertionError(f"./dev build in {where} fails:\n{built.stdout}")

    def environment(self, ours):
        return dict(ours, TMPDIR=str(self.temporary()))


class LongPath(Copy):
    summary = "checkout and TMPDIR at a path of some 200 characters"
    name = "a-long-path-" + "-".join(["that-goes-on-and-on"] * 8)


class ForeignPath(Copy):
    summary = "checkout and TMPDIR at a path with spaces, umlauts and Chinese"
    name = "ein Pfad mit Ümläuten und 中文"


class OrdinaryUser(Copy):
    summary = "an ordinary user, a checkout of theirs, no sudo"
    name = "user"
    owner = USER if os.geteuid() == 0 else None

    def words(self):
        if self.owner is None:
            return ()
        return ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--")

    before = property(words)

    def environment(self, ours):
        home = place(self.name) / "home"
        home.mkdir(parents=True, exist_ok=True)
        if self.owner is not None:
            os.chown(home, USER, USER)
        return {"PATH": PATH, "HOME": str(home), "TMPDIR": str(self.temporary()),
                "LANG": "C.UTF-8"}


class Together(Condition):
    """Several conditions at once, of which one at most has a checkout."""

    def __init__(self, names):
        self.parts = [CONDITIONS[name] for name in names.split("+")]

    @property
    def before(self):
        return tuple(word for part in self.parts for word in part.before)

    def folder(self):
        folders = [folder for folder in (part.folder() for part in self.parts) if folder]
        if len(folders) > 1:
            raise Impossible("one checkout cannot be at two places")
        return folders[0] if folders else ROOT / "build"

    def environment(self, ours):
        for part in self.parts:
            ours = part.environment(ours)
        return dict(ours)

    @contextlib.contextmanager
    def holding(self):
        with contextlib.ExitStack() as stack:
            for part in self.parts:
                stack.enter_context(part.holding())
            yield


def copy_changed(names, where):
    """Brings a copy up to date; a file that is the same keeps its time, for ninja."""
    for name in names:
        source, target = ROOT / name, where / name
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    kept = set(names)
    for path in where.rglob("*"):
        name = str(path.relative_to(where))
        if name.startswith(("build", "web/node_modules", "out/")):
            continue
        if path.is_file() and name not in kept:
            path.unlink()


def place(name):
    folder = pathlib.Path(tempfile.gettempdir()) / "assay-flakes" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


CONDITIONS = {
    "plain": Condition(),
    "load": Load(),
    "nice": Nice(),
    "one-cpu": OneProcessor(),
    "user": OrdinaryUser(),
    "empty-env": EmptyEnvironment(),
    "long-path": LongPath(),
    "foreign-path": ForeignPath(),
    "locale": OtherLocale(),
}

# Every condition once, and every test under each: as few runs as that takes.  What an ordinary user
# skips, root runs under the other ones.
SETS = ("plain", "user", "load+locale+long-path", "nice+foreign-path", "empty-env+one-cpu")
