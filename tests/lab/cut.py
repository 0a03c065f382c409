# SPDX-License-Identifier: MIT
"""The connection to the store is lost in the middle of experiments, servers stop, writers are
killed: nothing is lost, nothing is there twice, and the result is the one of a single machine."""
import json
import os
import pathlib
import random
import signal
import subprocess
import time

from harness import *
from server import Server, why_not

WAIT_S = 480

# Each run says which it is; its figure follows from cell and round alone.
SPEC = """name: cut
command: sh -c 'echo "{n} {round}" >> log; sleep 0.02; while [ -e hold ]; do sleep 0.02; done; eval "echo assay.metric figure $((100 * {n} + {round})) B >&$ASSAY_METRICS_FD"'
factors:
  n: [1, 2, 3]
metrics:
  figure: {better: lower, headline: true}
rounds: 8
warmup: 0
baseline: {n: 1}
"""
RUNS = 3 * 8

server = None


def database(name):
    global server
    if why_not():
        skip(why_not())
    if not server:
        server = Server()
    pathlib.Path("cut.yaml").write_text(SPEC)
    return server.make(name)


def spool():
    return pathlib.Path("spool").absolute()


def start(place):
    return subprocess.Popen([ASSAY, "run", "cut.yaml", "--seed", "3", "--db", place],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True,
                            env=dict(os.environ, ASSAY_SPOOL=str(spool())))


def until(condition, process=None):
    end = time.monotonic() + WAIT_S
    while not condition():
        if process and process.poll() is not None:
            raise AssertionError("ended early: " + process.stderr.read())
        if time.monotonic() > end:
            raise AssertionError("waited in vain")
        time.sleep(0.01)


def started_runs():
    path = pathlib.Path("log")
    return len(path.read_text().splitlines()) if path.exists() else 0


def figures(place):
    """What does not depend on time: each cell's figures by round, and the counts."""
    shown = json.loads(assay("show", "last", "--json", "--db", place, check=0).stdout)
    return ([(c["label"], c["values"]["figure"]) for c in shown["cells"]],
            shown["state"], json.loads(assay("list", "--json", "--db", place, check=0).stdout)
            ["experiments"][0]["runs_count"])


def of_one_machine():
    pathlib.Path("log").unlink(missing_ok=True)
    assay("run", "-q", "cut.yaml", "--seed", 3, "--db", "alone.db", check=0)
    return figures("alone.db")


def ended(process, code=0):
    out, said = process.communicate(timeout=WAIT_S)
    equal(process.returncode, code, said)
    lacks(out + said, "Sanitizer")
    return said


def left():
    return sorted(spool().glob("*.spool")) if spool().exists() else []


@test
def a_cut_connection_is_made_anew():
    place = database("cuts")
    process = start(place)
    for count in (3, 9, 15):
        until(lambda: started_runs() >= count, process)
        server.cut("cuts")
    said = ended(process)
    contains(said, "been delivered")
    equal(left(), [])
    equal(figures(place), of_one_machine())


@test
def a_server_that_stops_and_comes_back():
    place = database("back")
    process = start(place)
    until(lambda: started_runs() >= 5, process)
    server.stop()
    until(lambda: started_runs() >= 12, process)
    equal(len(left()), 1)
    pathlib.Path("hold").touch()  # the run in flight waits for the server, however long that takes
    server.start()
    pathlib.Path("hold").unlink()
    ended(process)
    equal(left(), [])
    equal(figures(place), of_one_machine())


@test
def a_server_that_stays_away_gets_it_later():
    place = database("later")
    process = start(place)
    until(lambda: started_runs() >= 5, process)
    server.stop()
    said = ended(process)
    contains(said, "nothing is lost")
    contains(said, "assay db deliver")
    equal(len(left()), 1)
    refused = assay("db", "deliver", "--db", place, check=1, env={"ASSAY_SPOOL": str(spool())})
    contains(refused.stderr, "cannot connect")
    server.start()
    kept = left()[0].read_bytes()
    delivered = assay("db", "deliver", "--db", place, check=0, env={"ASSAY_SPOOL": str(spool())})
    contains(delivered.stdout, "files: 1 delivered")
    equal(left(), [])
    expected = of_one_machine()
    equal(figures(place), expected)
    # A file that was delivered but not removed does no harm.
    (spool() / kept_name(place)).write_bytes(kept)
    again = assay("db", "deliver", "--db", place, check=0, env={"ASSAY_SPOOL": str(spool())})
    contains(again.stdout, "runs: 0 delivered")
    equal(figures(place), expected)


def kept_name(place):
    import hashlib
    return hashlib.sha256(place.encode()).hexdigest()[:16] + "-again1.spool"


def backends(database):
    """The server's processes that serve this database."""
    return [int(pid) for pid in server.sql("SELECT pid FROM pg_stat_activity WHERE datname = "
                                           f"'{database}'").splitlines()]


@test
def a_backend_that_hangs_is_given_up():
    place = database("hangs") + "?connect_timeout=2"  # eight seconds for an answer
    process = start(place)
    until(lambda: started_runs() >= 5, process)
    stopped = backends("hangs")
    between(len(stopped), 1, 9, "backends")
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        until(lambda: started_runs() >= RUNS, process)  # it does not wait for the stopped one
    finally:
        for pid in stopped:  # what it then does of what it was sent, it does not do twice
            os.kill(pid, signal.SIGCONT)
    said = ended(process)
    contains(said, "the server has not answered for 8 s")
    assay("db", "deliver", "--db", place, check=0, env={"ASSAY_SPOOL": str(spool())})
    equal(left(), [])
    equal(figures(place), of_one_machine())


class Silent:
    """Passes bytes on to the server, until it keeps them all to itself without closing anything."""

    def __init__(self, port):
        import socket
        import threading
        self.silent, self.to, self.sockets = threading.Event(), port, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.connect = lambda: socket.create_connection(("127.0.0.1", port))
        self.spawn = lambda *words: threading.Thread(target=words[0], args=words[1:], daemon=True).start()
        self.spawn(self.accept)

    def accept(self):
        while True:
            client = self.listener.accept()[0]
            behind = self.connect()
            self.sockets += [client, behind]
            self.spawn(self.pump, client, behind)
            self.spawn(self.pump, behind, client)

    def pump(self, source, sink):
        try:
            while data := source.recv(65536):
                if not self.silent.is_set():
                    sink.sendall(data)
        except OSError:
            pass
        if not self.silent.is_set():
            sink.close()


@test
def a_silent_proxy_is_given_up():
    place = database("silent")
    proxy = Silent(server.port)
    through = place.replace(f":{server.port}/", f":{proxy.port}/") + "?connect_timeout=2"
    process = start(through)
    until(lambda: started_runs() >= 5, process)
    proxy.silent.set()
    said = ended(process)  # all runs were made, without an end of the silence
    contains(said, "nothing is lost")
    contains(said, "assay db deliver")
    equal(started_runs(), RUNS)
    proxy.silent.clear()
    assay("db", "deliver", "--db", through, check=0, env={"ASSAY_SPOOL": str(spool())})
    equal(left(), [])
    equal(figures(place), of_one_machine())


@test
def killed_while_the_server_is_away_it_goes_on_where_it_was():
    place = database("killed")
    process = start(place)
    until(lambda: started_runs() >= 5, process)
    server.stop()
    until(lambda: started_runs() >= 11, process)
    process.kill()
    process.communicate()
    before = started_runs()
    server.start()
    equal(len(left()), 1)
    with open(left()[0], "ab") as file:
        file.write(b"\x40\0\0\0\0\0\0\0half a record")  # as if killed while writing
    said = ended(start(place))
    contains(said, "resuming experiment 1")
    equal(left(), [])
    between(started_runs(), RUNS, before + (RUNS - before) + 2, "runs that were made")
    equal(figures(place), of_one_machine())


@test
def damage_is_told_and_nothing_thrown_away():
    place = database("damage")
    process = start(place)
    until(lambda: started_runs() >= 3, process)
    server.stop()
    until(lambda: len(left()) == 1 and left()[0].stat().st_size > 3000, process)
    process.kill()
    process.communicate()
    server.start()
    content = bytearray(left()[0].read_bytes())
    content[len(content) // 3] ^= 0xff
    left()[0].write_bytes(content)
    refused = assay("db", "deliver", "--db", place, check=1, env={"ASSAY_SPOOL": str(spool())})
    contains(refused.stderr, "damaged at byte")
    equal(len(left()), 1)


WRITERS = 64
WRITER_RUNS = 30


@test
def many_writers_killed_at_random_lose_nothing_acknowledged():
    place = database("writers")
    assay("db", "upgrade", "--db", place, check=0)
    tool = pathlib.Path(os.environ["BUILD"]) / "tests/tools/tool-store-writer"
    chance = random.Random(7)
    environment = dict(os.environ, ASSAY_SPOOL=str(spool()))
    outputs = [open(f"ack{w}", "w+", encoding="utf8") for w in range(WRITERS)]
    writers = [subprocess.Popen([tool, place, f"writer{w}", str(WRITER_RUNS)], env=environment,
                                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
               for w, out in enumerate(outputs)]
    doomed = chance.sample(range(WRITERS), WRITERS // 2)

    def acknowledged(w):
        return pathlib.Path(f"ack{w}").read_text().count("\n")

    # Some die at once, at whatever they are then; each of the others after a number of runs of its
    # own.  Connections are cut when every writer has begun: to begin, one is needed.
    for w in doomed[:8]:
        writers[w].send_signal(signal.SIGKILL)
    until(lambda: all(acknowledged(w) or writers[w].poll() is not None for w in range(WRITERS)))
    server.cut("writers")
    after = {w: chance.randrange(1, WRITER_RUNS) for w in doomed[8:]}
    until(lambda: step_writers(writers, after, acknowledged))
    lines = []
    for w, out in enumerate(outputs):
        if w not in doomed:
            equal(writers[w].returncode, 0, pathlib.Path(f"ack{w}").read_text()[-500:])
        lines += [line.split() for line in pathlib.Path(f"ack{w}").read_text().splitlines()
                  if line.startswith("ack ") and len(line.split()) == 4]
        out.close()
    assay("db", "deliver", "--db", place, check=0, env={"ASSAY_SPOOL": str(spool())})
    equal(left(), [])
    there = server.sql("SELECT e.uuid || ' ' || c.label || ' ' || r.round, count(v.metric) FROM run r"
                       " JOIN experiment e ON e.id = r.experiment JOIN cell c ON c.id = r.cell"
                       " JOIN value v ON v.run = r.id GROUP BY e.uuid, c.label, r.round, r.id",
                       "writers").splitlines()
    runs = [line.split("|") for line in there]
    equal({count for _, count in runs}, {"12"}, "values of each run")
    names = [name for name, _ in runs]
    equal(len(names), len(set(names)), "runs, each once")
    missing = {" ".join(line[1:]) for line in lines} - set(names)
    equal(missing, set(), "acknowledged runs that are not there")
    between(len(lines), WRITERS // 2 * WRITER_RUNS, WRITERS * WRITER_RUNS, "acknowledged runs")
    wrong = server.sql("SELECT count(*) FROM experiment e WHERE run_count <>"
                       " (SELECT count(*) FROM run r WHERE r.experiment = e.id)", "writers")
    equal(wrong, "0", "experiments whose count is wrong")


def step_writers(writers, after, acknowledged):
    """Kills who is due, now and then cuts the connections of all; true when all have ended."""
    for w in list(after):
        if writers[w].poll() is not None or acknowledged(w) >= after[w]:
            writers[w].send_signal(signal.SIGKILL)
            del after[w]
            if len(after) % 8 == 0:
                server.cut("writers")
    return all(writer.poll() is not None for writer in writers)


try:
    main()
finally:
    if server:
        server.close()
