# SPDX-License-Identifier: MIT
"""Whether a document fits its schema (schemas/), as a validator has it."""
import json

from harness import ROOT, skip

try:
    import jsonschema
except ImportError:
    jsonschema = None

SCHEMAS = ROOT / "schemas"


def fits(name, document):
    if jsonschema is None:
        skip("python3-jsonschema is not installed")
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    errors = sorted(jsonschema.Draft7Validator(schema).iter_errors(document), key=str)
    if errors:
        where = "/".join(map(str, errors[0].absolute_path))
        raise AssertionError(f"{name}: {where}: {errors[0].message[:300]} ({len(errors)} errors)")
