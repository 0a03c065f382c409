# SPDX-License-Identifier: MIT
"""The experiments that come with assay: each can be laid out, and the replication's runs."""
import json

from harness import *

FOLDER = ROOT / "experiments"


@test
def every_spec_can_be_laid_out():
    specs = sorted(FOLDER.glob("*.yaml"))
    between(len(specs), 8, 100, "specs")
    for spec in specs:
        for option in ([], ["--quick"] if "\nquick:" in spec.read_text() else []):
            result = assay("run", "--dry-run", *option, spec, check=0)
            contains(result.stdout, " cells")


@test
def a_cell_of_the_replication_runs():
    if not (ROOT / "build/workloads/vr/assay-vr").exists():
        skip("the specs take their programs from build/")
    spec = FOLDER / "replication.yaml"
    assay("run", "--rounds", 1, "--cells", "transport=epoll,replicas=3,clients=8", spec, check=0)
    shown = json.loads(assay("show", "--json", "--all", "last", check=0).stdout)
    text = json.dumps(shown)
    for name in ("throughput", "p50", "cpu_per_op", "cpu_per_op_2", "packets_sent_per_op"):
        contains(text, f'"{name}"')


main()
