# SPDX-License-Identifier: MIT
"""assay plot: one plot as a file."""
import pathlib
import shutil
import xml.etree.ElementTree as ElementTree

from harness import *
from pages import *


@test
def every_listed_plot_is_an_svg():
    experiment()
    names = [line.split()[0] for line in assay("plot", "--list", check=0).stdout.splitlines()]
    for wanted in ("curve", "ratio", "scaling", "efficiency", "strip", "ecdf", "percentiles"):
        if wanted not in names:
            raise AssertionError(f"no {wanted} in {names}")
    for name in names:
        assay("plot", "-p", name, "-o", f"{name}.svg", check=0)
        root = ElementTree.parse(f"{name}.svg").getroot()
        equal(root.tag, "{http://www.w3.org/2000/svg}svg", name)
        equal(root.find("{http://www.w3.org/2000/svg}script"), None, name)


@test
def one_point_is_no_curve():
    pathlib.Path("spec.yaml").write_text("""name: cross
command: 'echo rate {x}{y}; exit 0'
shell: true
factors: {v: [a, b], x: [1, 2, 4], y: [1, 2, 4]}
exclude: [{x: [1, 4], y: [2, 4]}]
metrics: {rate: {regex: 'rate ([0-9]+)', unit: op/s, better: higher}}
rounds: 3
warmup: 0
""")
    assay("run", "spec.yaml", check=0)
    titles = [line.split(None, 1)[1].strip() for line in assay("plot", "--list", check=0).stdout.splitlines()]
    curves = [title for title in titles if title.startswith("rate v ")]
    equal(curves, ["rate v x, y=1", "rate v y, x=2"], f"plots along a factor, of {titles}")


@test
def a_png_is_one():
    if not shutil.which("rsvg-convert"):
        skip("rsvg-convert is not installed")
    experiment()
    assay("plot", "-p", "ratio", "-o", "ratio.png", "--width", "640", check=0)
    content = pathlib.Path("ratio.png").read_bytes()
    equal(content[:8], b"\x89PNG\r\n\x1a\n", "the file's beginning")
    equal(int.from_bytes(content[16:20], "big"), 640, "width")


@test
def without_rsvg_convert_it_says_so():
    experiment()
    result = assay("plot", "-o", "x.png", check=1, env={"PATH": "/nonexistent"})
    contains(result.stderr, "librsvg2-bin")
    equal(pathlib.Path("x.png").exists(), False, "a file")


@test
def a_recording_gives_a_flame_graph():
    recordings()
    assay("plot", "old.data", "new.data", "-p", "diff", "-o", "diff.svg", check=0)
    text = pathlib.Path("diff.svg").read_text()
    contains(text, "removed")
    lacks(text, "<img")
    ElementTree.parse("diff.svg")


@test
def what_is_not_there_is_told():
    experiment()
    contains(assay("plot", "-p", "nonsense", "-o", "x.svg", check=1).stderr, "--list")
    contains(assay("plot", "-p", "misses", "-o", "x.svg").stderr, "PMU")
    contains(assay("plot", "-o", "x.gif", check=2).stderr, ".svg or .png")
    contains(assay("plot", "--width", "5", check=2).stderr, "16")


main()
