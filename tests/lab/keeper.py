# SPDX-License-Identifier: MIT
"""Daemons of a test's own that are gone when the test is, however it died.

The daemons are children of a keeper, a process in a session of its own, which stops them and removes
their folder as soon as its standard input ends.  The test's side of it is Kept, the other side keep():

    class Server(Kept):                          if __name__ == "__main__":
        program = __file__                           keep(start, "stop", …)

Both talk in lines: the test writes a command, the keeper answers with one word or, when something
went wrong, with what.
"""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

WAIT_S = 360


def free_ports(count):
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


class Kept:
    program = what = None  # the keeper's file; what is kept, for messages

    def launch(self, prefix, words):
        """words() gives the keeper's arguments behind the folder."""
        for tries in range(3):
            self.folder = pathlib.Path(tempfile.mkdtemp(prefix=prefix))
            os.chmod(self.folder, 0o755)
            self.keeper = subprocess.Popen(
                [sys.executable, self.program, str(self.folder), *words()], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True, start_new_session=True)
            try:
                self.expect("ready")
                return
            except RuntimeError:  # another may have taken a port meanwhile
                self.close()
                if tries == 2:
                    raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.keeper.stdin.close()
        self.keeper.wait(WAIT_S)

    def expect(self, word):
        line = self.keeper.stdout.readline().strip()
        if line != word:
            raise RuntimeError(f"the {self.what} is not {word}: {line or 'it ended'}")

    def tell(self, line, answer):
        self.keeper.stdin.write(line + "\n")
        self.keeper.stdin.flush()
        self.expect(answer)


def keep(make):
    """make(folder, words…) gives an object with start(), obey(line) -> answer, and stop()."""
    folder = sys.argv[1]
    os.chdir("/")  # the test's own folder goes away earlier
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the end of the input is what ends it
    kept = None
    try:
        kept = make(*sys.argv[1:])
        kept.start()
        print("ready", flush=True)
        for line in sys.stdin:
            print(kept.obey(line.strip()), flush=True)
    except (OSError, RuntimeError, subprocess.SubprocessError) as failure:
        try:
            print(" ".join(str(failure).split()), flush=True)
        except BrokenPipeError:
            pass
    finally:
        if kept:
            kept.stop()
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)
