# SPDX-License-Identifier: MIT
"""assay serve: who gets an answer, what is in it, and that nobody holds up the others."""
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import sqlite3
import subprocess
import time
import urllib.parse

from harness import *
from pages import *
from schema import fits
from terminal import Terminal


class Server:
    """assay serve on the store of this folder."""

    def __init__(self, *words):
        self.process = subprocess.Popen([ASSAY, "serve", *words], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            error = self.process.stderr.read()
            if "without libmicrohttpd" in error:
                skip("assay was built without libmicrohttpd")
            raise AssertionError(error)
        self.url = urllib.parse.urlsplit(line.strip())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        _, error = self.process.communicate(timeout=400)
        equal(self.process.returncode, 0, "exit code\n" + error)
        lacks(error, "Sanitizer")

    def get(self, path="", method="GET", host=None, body=None, absolute=False):
        connection = http.client.HTTPConnection("127.0.0.1", self.url.port, timeout=400)
        connection.request(method, path if absolute else self.url.path + path, body,
                           {"Host": host} if host else {})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text, response


@test
def the_views_are_there():
    experiment()
    experiment(seed="2")
    experiment(seed="3")
    with Server() as server:
        status, text, response = server.get()
        equal(status, 200)
        contains(text, 'href="e/3"')
        contains(response.headers["Referrer-Policy"], "no-referrer")
        for path, part in (("e/1", "16 cells, 128 runs"), ("e/1/runs?page=2", "Page 2 of 2"),
                           ("e/2/report", 'id="plot-ratio"'), ("?q=DEMO", 'href="e/1"'),
                           ("compare?base=1&new=2", 'id="verdict"'),
                           ("history?name=demo", 'data-kind="history"')):
            status, text, _ = server.get(path)
            equal(status, 200, path)
            contains(text, part)
            contains(text, "default-src 'none'")
            lacks(text, server.url.path.strip("/"))
        lacks(server.get("?q=no-such-word")[1], 'href="e/1"')
        equal(server.get("e/1/runs?page=1")[1].count("<th scope=\"row\">"), 100, "runs on a page")


@test
def strangers_get_nothing():
    experiment()
    with Server() as server:
        host = f"127.0.0.1:{server.url.port}"
        equal(server.get("/", absolute=True)[0], 404, "without the token")
        equal(server.get("/" + "0" * 32 + "/", absolute=True)[0], 404, "a wrong token")
        equal(server.get(host="evil.example")[0], 403, "another host")
        equal(server.get(host=f"127.0.0.1.evil.example:{server.url.port}")[0], 403, "another host")
        equal(server.get(host=host)[0], 200, "this host")
        equal(server.get(host=f"localhost:{server.url.port}")[0], 200, "this host's other name")
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE"):
            equal(server.get(method=method, body="x=1" if method == "POST" else None)[0], 405, method)
        equal(server.get(method="HEAD")[0], 200, "HEAD")
        for path in ("e/99", "e/0", "e/-1", "e/+1", "e/01", "e/%201", "e/" + "9" * 40, "e/1/", "e/1/nothing", "e/1;x", "../..", "e/%2e%2e", "x",
                     "?page=99999", "e/1/runs?page=99999"):
            equal(server.get(path)[0], 404, path)
        contains(server.get("a/b/c")[1], '<a href="../../">Experiments</a>')
        status, _, response = server.get(server.url.path.rstrip("/"), absolute=True)
        equal((status, response.getheader("Location")), (301, server.url.path), "without its last slash")
        status, text, response = server.get("api/v1/experiments")
        equal((status, response.getheader("Content-Type")), (200, "application/json"), "a list for programs")
        equal([e["id"] for e in json.loads(text)["experiments"]], [1], "experiments")
        one = json.loads(server.get("api/v1/experiments/1")[1])
        equal((one["id"], len(one["cells"])), (1, 16), "one experiment")
        for path, code in (("api/v1/experiments/99", 404), ("api/v1/experiments/+1", 404), ("api/v1/x", 404),
                           ("api/v1/experiments?page=x", 400), ("api/v1/experiments?page=9", 404)):
            status, text, _ = server.get(path)
            equal((status, list(json.loads(text))), (code, ["error"]), path)
        for path in ("?page=0", "?page=x", "e/1/runs?page=-1", "compare", "compare?base=1&new=1",
                     "history"):
            equal(server.get(path)[0], 400, path)
        status, text, _ = server.get("?q=" + urllib.parse.quote("<script>'\"%\x01"))
        equal(status, 200)
        lacks(text, "<script>'")
        # Only this host can reach it at all.
        lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()
        listening = [line.split()[1] for line in lines
                     if line.split()[3] == "0A" and line.split()[1].endswith(f":{server.url.port:04X}")]
        if listening:
            equal(listening, [f"0100007F:{server.url.port:04X}"], "where it listens")


@test
def the_store_is_not_written():
    experiment()
    before = pathlib.Path("assay.db").read_bytes()
    with Server() as server:
        for path in ("", "e/1", "e/1/runs", "e/1/report"):
            server.get(path)
    equal(pathlib.Path("assay.db").read_bytes() == before, True, "the store is as it was")


@test
def slow_and_rude_clients_hold_up_nobody():
    experiment()
    with Server() as server:
        rude = []
        for text in (b"", b"GET /", b"GET / HTTP/1.1\r\nHost:", b"\x00\xff" * 1000,
                     b"GET /" + b"a" * 100000, b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
                     b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20000):
            for _ in range(12):
                client = socket.create_connection(("127.0.0.1", server.url.port), timeout=240)
                client.setblocking(False)
                try:
                    client.send(text)
                except OSError:
                    pass  # it was dropped already
                rude.append(client)
        reader = socket.create_connection(("127.0.0.1", server.url.port), timeout=240)
        reader.send(f"GET {server.url.path}e/1/report HTTP/1.1\r\nHost: 127.0.0.1:{server.url.port}\r\n\r\n".encode())
        for _ in range(50):
            equal(server.get("e/1")[0], 200)
        for client in [*rude, reader]:
            client.close()
        equal(server.get()[0], 200)


@test
def half_open_connections_hold_up_nobody():
    experiment()
    with Server() as server:
        whole = f"GET {server.url.path}e/1/report HTTP/1.1\r\nHost: 127.0.0.1:{server.url.port}\r\n\r\n"
        clients = []
        for text in [whole[:25]] * 50 + [whole] * 20:  # half a request, and those that read nothing
            client = socket.create_connection(("127.0.0.1", server.url.port), timeout=240)
            client.sendall(text.encode())
            clients.append(client)
        for path in ("", "e/1", "e/1/runs", "e/1/report"):
            equal(server.get(path)[0], 200, path)
        # Several requests on one connection are answered there, and none disturbs another.
        connection = http.client.HTTPConnection("127.0.0.1", server.url.port, timeout=400)
        connection.connect()
        first = connection.sock
        for _ in range(5):
            connection.request("GET", server.url.path + "e/1")
            response = connection.getresponse()
            equal((response.status, len(response.read()) > 1000), (200, True))
            equal(connection.sock is first, True, "the connection is kept")
        connection.close()
        for client in clients:
            client.close()


@test
def what_is_written_is_seen():
    experiment()
    with Server() as server:
        lacks(server.get()[1], 'href="e/2"')
        experiment(seed="2")
        contains(server.get()[1], 'href="e/2"')
        contains(server.get("e/2/report")[1], 'id="verdict"')
        assay("rm", "2", check=0)
        lacks(server.get()[1], 'href="e/2"')
        equal(server.get("e/2/report")[0], 404)


SLOW = """name: slow
question: how long?
command: ['sleep', '{pause}']
factors: {pause: [0.05, 0.06]}
rounds: 400
warmup: 0
"""


def events_of(server, most):
    """The documents of that many events, as they come."""
    with socket.create_connection(("127.0.0.1", server.url.port), timeout=240) as client:
        client.sendall(f"GET {server.url.path}events HTTP/1.1\r\nHost: 127.0.0.1:{server.url.port}\r\n\r\n"
                       .encode())
        text = b""
        while text.count(b"data: ") < most or not text.endswith(b"\n\n\r\n"):
            block = client.recv(65536)
            if not block:
                raise AssertionError(f"the stream ended: {text}")
            text += block
    contains(text.decode(), "text/event-stream")
    return [json.loads(line[6:]) for line in text.decode().splitlines() if line.startswith("data: ")]


@test
def an_experiment_under_way_tells_how_far_it_is():
    pathlib.Path("slow.yaml").write_text(SLOW)
    run = subprocess.Popen([ASSAY, "run", "-q", "slow.yaml"], start_new_session=True)
    try:
        while assay("list").returncode != 0:  # the store is there, with its tables
            time.sleep(0.05)
        with Server() as server:
            first, second = events_of(server, 2)[:2]
            while not second["running"]:
                first, second = events_of(server, 2)[:2]
            one = second["running"][0]
            equal((one["name"], one["runs_planned"]), ("slow", 800))
            equal(second["runs"] > first["runs"] or second["experiments"] > first["experiments"], True, "it goes on")
            while json.loads(server.get("api/v1/running")[1])["running"][0]["seconds_left"] is None:
                time.sleep(0.05)
            between(json.loads(server.get("api/v1/running")[1])["running"][0]["seconds_left"], 1, 40000)
            for path in ("", "e/1"):
                text = server.get(path)[1]
                contains(text, " of 800 runs, about ")
                contains(text, 'data-events="')
                contains(text, "connect-src 'self'")
            lacks(server.get("e/1/report")[1], "connect-src")
            os.killpg(run.pid, signal.SIGINT)
            run.wait(timeout=240)
            contains(server.get("e/1")[1], "was stopped before its end")
            equal(json.loads(server.get("api/v1/running")[1])["running"], [])
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()


@test
def programs_get_the_same_as_from_the_command_line():
    experiment()
    experiment(seed="2")
    with Server() as server:
        for path, words in (("experiments", ["list"]), ("experiments/1", ["show", "1"]),
                            ("compare?base=1&new=2", ["compare", "1", "2", "--all"]),
                            ("history?metric=throughput", ["history", "throughput"])):
            status, text, _ = server.get("api/v1/" + path)
            equal(status, 200, path)
            equal(json.loads(text), json.loads(assay(*words, "--json", check=0).stdout), path)
        runs = json.loads(server.get("api/v1/experiments/1/runs?page=2")[1])
        equal((runs["runs_count"], len(runs["runs"]), runs["metric"]), (128, 28, "throughput"))
        first = json.loads(server.get("api/v1/experiments/1/runs")[1])["runs"]
        ids = [run["id"] for run in first + runs["runs"]]
        equal(ids, sorted(set(ids)), "each run once")
        for path, code in (("experiments/1/runs?page=3", 404), ("experiments/9/runs", 404), ("compare?base=1", 400),
                           ("compare?base=1&new=1", 400), ("compare?base=1&new=nothing", 404), ("history", 400),
                           ("history?metric=nothing", 404)):
            status, text, _ = server.get("api/v1/" + path)
            equal((status, list(json.loads(text))), (code, ["error"]), path)
        equal(server.get("moved")[0], 200)
        text = server.get("e/2")[1]
        contains(text, 'href="../compare?base=1&amp;new=2"')
        lacks(server.get("e/1")[1], "Compare with")
        report = server.get("e/2/report")[1]
        contains(report, 'href="../../"')
        contains(report, '<a href="../../e/2">Experiment 2</a>')
        compared = server.get("compare?base=1&new=2")[1]
        for id in (1, 2):
            contains(compared, f'<a href="./e/{id}">Experiment {id}</a>')


@test
def the_documents_for_programs_fit_their_schemas():
    experiment()
    experiment(seed="2")
    with Server() as server:
        for path, name in (("experiments", "list"), ("experiments/1", "show"), ("experiments/1/runs", "serve"),
                           ("compare?base=1&new=2", "compare-1"), ("history?metric=throughput", "history-1"),
                           ("running", "serve"), ("x", "serve"), ("experiments/99", "serve"),
                           ("compare?base=1", "serve")):
            fits(f"assay-{name}", json.loads(server.get("api/v1/" + path)[1]))
        fits("assay-serve", events_of(server, 1)[0])
        try:
            fits("assay-serve", {"runs_count": 1, "page": 1, "page_size": 100, "metric": "", "runs": [{"id": 1}]})
        except AssertionError:
            return
        raise AssertionError("a run without its values fits")


@test
def many_runs_come_a_page_at_a_time():
    experiment()
    with sqlite3.connect("assay.db") as db:
        cell, = db.execute("SELECT min(id) FROM cell").fetchone()
        db.executemany("INSERT INTO run (experiment, cell, round, attempt, position, started_at_ns,"
                       " wall_ns, status, disturbed, layout) VALUES (1, ?, ?, 0, 0, 1, 1000, 0, 0, '')",
                       ((cell, number) for number in range(1000, 101000)))
        db.execute("UPDATE experiment SET run_count = (SELECT count(*) FROM run)")
    db.close()
    with Server() as server:
        text = server.get("e/1/runs?page=1001")[1]
        contains(text, "Page 1001 of 1002")
        equal(text.count("<th scope=\"row\">"), 100, "runs on a page")
        equal(len(text) < 100000, True, "a page is small")


@test
def a_store_that_is_gone_is_told_in_the_form_that_was_asked_for():
    needs_file_store("the store's file is taken away")
    experiment()
    with Server() as server:
        equal(server.get("e/1")[0], 200)
        os.rename("assay.db", "elsewhere.db")
        status, text, _ = server.get("e/1?q=another")
        equal((status, "<!doctype html>" in text), (500, True), "a page")
        status, text, response = server.get("api/v1/experiments?q=another")
        equal((status, response.getheader("Content-Type")), (500, "application/json"))
        fits("assay-serve", json.loads(text))
        os.rename("elsewhere.db", "assay.db")
        equal(server.get("e/1")[0], 200, "it is back")


@test
def ctrl_c_says_what_it_ends():
    experiment()
    with Terminal([ASSAY, "serve"]) as terminal:
        while "Ctrl-C stops the server" not in terminal.plain():
            if not terminal.read(0.2) and "without libmicrohttpd" in terminal.plain():
                skip("assay was built without libmicrohttpd")
        terminal.send("\x03")
        contains(terminal.finish(), "assay serve: stopped")
        equal(terminal.exit_code(), 0)


@test
def a_wrong_command_line_is_told():
    contains(assay("serve", check=1).stderr, "assay.db")
    contains(assay("serve", "--token", "short", check=2).stderr, "letters and digits")
    contains(assay("serve", "--port", "70000", check=2).stderr, "65535")
    contains(assay("serve", "x.db", check=2).stderr, "--db")


main()
