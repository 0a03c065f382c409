# SPDX-License-Identifier: MIT
"""A file as an array of C: bytes.py INPUT OUTPUT."""
import pathlib
import sys

data = pathlib.Path(sys.argv[1]).read_bytes()
rows = [", ".join(map(str, data[i:i + 24])) for i in range(0, len(data), 24)]
pathlib.Path(sys.argv[2]).write_text(
    '#include "bench/passes.h"\n\nconst unsigned char bench_interposer[] = {\n' + ",\n".join(rows)
    + "};\nconst size_t bench_interposer_size = sizeof(bench_interposer);\n")
