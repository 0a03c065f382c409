# SPDX-License-Identifier: MIT
"""ci/: the steps of the GitHub action and the GitLab job, against a local bare repository and a
stand-in for the servers' calls that keeps what it is sent."""
import hashlib
import http.server
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tarfile
import threading
import urllib.parse

from harness import *

STEPS = ROOT / "ci" / "gate.sh"
MARK = "<!-- assay gate -->"
PROGRAM = """#!/usr/bin/env python3
import os, random
with open(os.environ['COUNTER'], 'a+') as counter:
    counter.write('.')
    seed = counter.tell()
value = FACTOR * random.Random(seed).gauss(1, 0.001)
os.write(int(os.environ['ASSAY_METRICS_FD']), f'assay.metric v {value!r}\\n'.encode())
"""


class Server(http.server.ThreadingHTTPServer):
    """Comments of one request, as GitHub's and GitLab's calls show and change them, and files."""

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.comments, self.calls = folder, [{"id": 7, "body": "Looks good."}], []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def reply(self, code, body=b"{}"):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        path = self.path.split("?")[0]
        file = self.server.folder / path.lstrip("/")
        if path.startswith("/releases/"):
            return self.reply(200, file.read_bytes()) if file.exists() else self.reply(404)
        self.server.calls.append(("GET", self.path, dict(self.headers)))
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        size, page = int(query["per_page"][0]), int(query["page"][0])
        self.reply(200, json.dumps(self.server.comments[(page - 1) * size:page * size]).encode())

    def change(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.calls.append((self.command, self.path, dict(self.headers)))
        if self.command == "POST":
            self.server.comments.append({"id": 41 + len(self.server.comments), **body})
        else:
            wanted = int(self.path.rsplit("/", 1)[1])
            [c for c in self.server.comments if c["id"] == wanted][0].update(body)
        self.reply(201)

    do_POST = do_PATCH = do_PUT = change


def git(*args, cwd=None):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *args], check=True,
                   capture_output=True, cwd=cwd)


def write(factor):
    path = pathlib.Path("clone/prog")
    path.write_text(PROGRAM.replace("FACTOR", str(factor)))
    path.chmod(0o755)


def repository():
    """A bare repository with a main branch, and a clone of it on a branch of its own."""
    git("init", "-q", "--bare", "-b", "main", "bare.git")
    git("clone", "-q", "bare.git", "clone")
    git("checkout", "-q", "-b", "main", cwd="clone")
    pathlib.Path("clone/g.yaml").write_text(
        "name: g\ncommand: ./prog\nmetrics: {v: {better: lower}}\nwarmup: 0\nrounds: 10\n")
    write(100)
    git("add", "-A", cwd="clone")
    git("commit", "-qm", "base", cwd="clone")
    git("push", "-q", "origin", "main", cwd="clone")
    git("checkout", "-q", "-b", "change", cwd="clone")


def release(folder, spoil=False):
    """What ./dev release leaves, with the program of this build."""
    name = f"assay-0.2.0-{platform.machine()}-linux"
    place = folder / "releases"
    place.mkdir()
    with tarfile.open(place / f"{name}.tar.xz", "w:xz", preset=0) as archive:
        link = place / "assay"
        link.write_text(f'#!/bin/sh\nexec "{ASSAY}" "$@"\n')
        link.chmod(0o755)
        archive.add(link, f"{name}/bin/assay")
    sum_ = hashlib.sha256((place / f"{name}.tar.xz").read_bytes()).hexdigest()
    (place / "SHA256SUMS").write_text(f"{'0' * 64 if spoil else sum_}  ./{name}.tar.xz\n")


def step(*words, check=0, **env):
    folder = pathlib.Path.cwd()
    environment = os.environ | {"COUNTER": str(folder / "counter"), "ASSAY_BASE": "origin/main",
                                "ASSAY_COMMAND": "g.yaml", "ASSAY_VERSION": "0.2.0",
                                "PATH": f"{folder}/path:{os.environ['PATH']}"} | env
    environment.pop("ASSAY", None)
    result = subprocess.run(["bash", STEPS, *words], cwd="clone", text=True, capture_output=True,
                            env=environment)
    equal(result.returncode, check, result.stdout + result.stderr)
    return result


def prepare(spoil=False):
    if not shutil.which("curl"):
        skip("curl is not installed")
    folder = pathlib.Path.cwd()
    repository()
    release(folder, spoil)
    return Server(folder)


def installed(server):
    where = step("install", str(pathlib.Path.cwd() / "got"),
                 ASSAY_RELEASES=server.address + "/releases").stdout.strip()
    os.symlink(where, "path")


@test
def the_released_program_is_checked():
    server = prepare(spoil=True)
    refused = step("install", "got", check=125, ASSAY_RELEASES=server.address + "/releases")
    contains(refused.stderr, "does not have the checksum")
    missing = step("install", "got", check=125, ASSAY_RELEASES=server.address + "/releases/none")
    contains(missing.stderr, "cannot fetch")


@test
def a_regression_fails_and_is_told_in_one_comment():
    server = prepare()
    installed(server)
    github = {"GITHUB_TOKEN": "secret", "GITHUB_REPOSITORY": "o/r", "ASSAY_REQUEST": "5",
              "GITHUB_API_URL": server.address}
    summary = pathlib.Path.cwd() / "summary.md"
    write(120)
    step("measure", GITHUB_STEP_SUMMARY=str(summary))
    contains(summary.read_text(), "### assay gate: regression")
    step("github", **github)
    equal(len(server.comments), 2)
    contains(server.comments[1]["body"], MARK + "\n### assay gate: regression")
    equal([(c[0], c[1].split("?")[0]) for c in server.calls],
          [("GET", "/repos/o/r/issues/5/comments"), ("POST", "/repos/o/r/issues/5/comments")])
    equal(server.calls[1][2]["Authorization"], "Bearer secret")
    step("status", check=1)
    contains(pathlib.Path("clone/assay-gate/gate.html").read_text(), "<html")
    contains(pathlib.Path("clone/assay-gate/gate.xml").read_text(), 'failures="1"')
    # Mended: the same comment is updated, another's is left alone.
    write(100)
    step("measure")
    step("github", **github)
    equal(server.calls[-1][:2], ("PATCH", f"/repos/o/r/issues/comments/{server.comments[1]['id']}"))
    equal([c["body"].splitlines()[-1 if i == 0 else 1] for i, c in enumerate(server.comments)],
          ["Looks good.", "### assay gate: pass"])
    step("status", check=0)


@test
def gitlab_gets_a_note():
    server = prepare()
    installed(server)
    gitlab = {"GITLAB_TOKEN": "secret", "CI_API_V4_URL": server.address, "CI_PROJECT_ID": "3",
              "CI_MERGE_REQUEST_IID": "9"}
    server.comments = [{"id": i, "body": None if i == 3 else f"remark {i}"} for i in range(150)]
    step("measure")
    for _ in range(2):
        step("gitlab", **gitlab)
    equal([c[0] for c in server.calls], ["GET", "GET", "POST", "GET", "GET", "PUT"])
    equal(server.calls[2][1], "/projects/3/merge_requests/9/notes")
    equal(server.calls[5][1], f"/projects/3/merge_requests/9/notes/{server.comments[150]['id']}")
    equal(server.calls[2][2]["PRIVATE-TOKEN"], "secret")
    equal(len(server.comments), 151)


@test
def inconclusive_is_neutral_and_trouble_is_not():
    prepare()
    out = pathlib.Path("clone/assay-gate")
    out.mkdir()
    (out / "gate.code").write_text("3\n")
    summary = pathlib.Path.cwd() / "summary.md"
    neutral = step("status", GITHUB_STEP_SUMMARY=str(summary)).stdout
    contains(neutral, "::warning title=assay gate::inconclusive: this machine could not tell")
    contains(summary.read_text(), "was not checked.** Policy: neutral.")
    # GitLab has a state for it, by the exit code.
    step("status", check=3, ASSAY_NEUTRAL_CODE="3")
    contains(step("status", check=1, ASSAY_INCONCLUSIVE="fail").stdout, "::error")
    contains(step("status", ASSAY_INCONCLUSIVE="pass", ASSAY_NEUTRAL_CODE="3").stdout, "::warning")
    for verb in "status", "measure":
        contains(step(verb, check=125, ASSAY_INCONCLUSIVE="ignore").stderr, "must be neutral, fail or pass")
    pathlib.Path("path").symlink_to(pathlib.Path(ASSAY).resolve().parent)
    contains(step("measure", check=125, ASSAY_BASE="origin/none").stderr, "could not be run")
    contains(step("github", check=125, GITHUB_TOKEN="t", GITHUB_REPOSITORY="o/r", ASSAY_REQUEST="5",
                  GITHUB_API_URL="http://127.0.0.1:1").stderr, "gate.sh measure")


def steps_of_action(inputs, values):
    """(name, command, environment) of the steps of action.yml that run something, as GitHub fills them."""
    text = (ROOT / "ci" / "action.yml").read_text()
    declared, steps = text.split("\nruns:")
    given = dict(re.findall(r"^  ([\w-]+):\n    description: .*\n    default: '?(.*?)'?$", declared, re.M)) | inputs

    def fill(expression):
        word = expression[1].strip()
        if word.startswith("inputs."):
            return re.sub(r"\$\{\{(.*?)\}\}", fill, given[word.removeprefix("inputs.")])
        return values[word]

    for step in steps.split("\n    - name: ")[1:]:
        command = re.search(r"^      run: '(.*)'$", step, re.M)
        if command:
            env = re.findall(r"^        (\w+): (.*)$", step.split("      env:")[1] if "      env:" in step else "", re.M)
            yield step.splitlines()[0], command[1], {k: re.sub(r"\$\{\{(.*?)\}\}", fill, v) for k, v in env}


def run_action(server, **inputs):
    """Runs the action's own commands; the exit code of each, by the step's name."""
    folder = pathlib.Path.cwd()
    values = {"github.token": "secret", "github.event.pull_request.number": "5",
              "github.base_ref || github.event.repository.default_branch": "main"}
    inputs = {"releases": server.address + "/releases"} | inputs
    common = os.environ | {"GITHUB_ACTION_PATH": str(ROOT / "ci"), "GITHUB_PATH": str(folder / "path.txt"),
                           "RUNNER_TEMP": str(folder / "temp"), "GITHUB_REPOSITORY": "o/r",
                           "GITHUB_API_URL": server.address, "COUNTER": str(folder / "counter"),
                           "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    common.pop("ASSAY", None)
    codes = {}
    for name, command, env in steps_of_action(inputs, values):
        paths = (folder / "path.txt").read_text().split() if (folder / "path.txt").exists() else []
        path = {"PATH": ":".join([*reversed(paths), os.environ["PATH"]])}
        result = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", command], cwd="clone", text=True,
                                capture_output=True, env=common | path | env, check=False)
        print(f"# {name}: {result.returncode} {result.stderr.strip()[-300:]}")
        codes[name] = result.returncode
    return codes


@test
def the_steps_of_the_action_run_as_they_stand():
    server = prepare()
    inputs = {"command": "g.yaml", "max-regression": "5%", "judge": "median"}
    equal(run_action(server, **inputs), {"install assay": 0, "measure": 0, "comment": 0, "status": 0})
    contains(server.comments[1]["body"], "### assay gate: pass")
    write(130)
    equal(run_action(server, **inputs), {"install assay": 0, "measure": 0, "comment": 0, "status": 1})
    contains(server.comments[1]["body"], "### assay gate: regression")
    equal(len(server.comments), 2)
    contains(pathlib.Path("summary.md").read_text(), "### assay gate: regression")
    contains((ROOT / "ci/action.yml").read_text(), "path: assay-gate/")
    assert pathlib.Path("clone/assay-gate/gate.html").exists()


@test
def the_job_of_gitlab_runs_as_it_stands():
    server = prepare()
    shutil.copy(STEPS, "releases/gate.sh")
    text = (ROOT / "ci" / "gitlab.yml").read_text()
    variables = re.findall(r"^    (\w+): (.*)$", text.split("  variables:\n")[1].split("  rules:")[0], re.M)
    script = "\n".join(re.findall(r"^    - (.*)$", text.split("  script:\n")[1].split("  artifacts:")[0], re.M))
    equal(script.count("bash gate.sh"), 4, script)
    project = {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "CI_PROJECT_DIR": os.getcwd() + "/clone",
               "CI_API_V4_URL": server.address, "CI_PROJECT_ID": "3", "CI_MERGE_REQUEST_IID": "9",
               "GITLAB_TOKEN": "secret", "ASSAY_CI": server.address + "/releases",
               "ASSAY_RELEASES": server.address + "/releases", "ASSAY_COMMAND": "g.yaml",
               "ASSAY_JUDGE": "median", "COUNTER": os.getcwd() + "/counter"}
    environment = os.environ | project | {k: v.replace("$CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main")
                                          for k, v in variables}
    environment.pop("ASSAY", None)
    write(130)
    result = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd="clone", text=True,
                            capture_output=True, env=environment, check=False)
    equal(result.returncode, 1, result.stdout + result.stderr)
    contains(server.comments[1]["body"], "### assay gate: regression")


@test
def the_action_names_what_the_steps_take():
    """Variables of the steps and of the two files are the same."""
    steps = STEPS.read_text()
    for file in "action.yml", "gitlab.yml":
        text = (ROOT / "ci" / file).read_text()
        for name in set(re.findall(r"\b(ASSAY_[A-Z_]+):", text)) - {"ASSAY_CI"}:
            contains(steps, name)
        for verb in "install", "measure", "status":
            contains(text, verb)


main()
