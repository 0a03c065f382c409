# SPDX-License-Identifier: MIT
"""A large store on PostgreSQL, filled by the server itself: {count} experiments like the first one
(of SPEC), each of 50 runs with 4 values.  Written directly, so that a million runs take a minute."""

SPEC = """name: small
command: "true {v}"
factors: {v: [a, b]}
rounds: 3
warmup: 0
baseline: {v: a}
"""

FILL = """
SET session_replication_role = replica;
INSERT INTO experiment (uuid, name, question, state, selection, baseline, headline, spec_path,
    spec_hash, git_commit, seed, started_at_ns, updated_at_ns, owner, cell_count, run_count,
    failed_count, disturbed_count)
  SELECT 'u' || g, 'perf' || g % 500, '', 'done', '', baseline, headline, spec_path, 'h' || g,
    md5(g::text), 1, g, g, '', 2, 50, 0, 0 FROM experiment, generate_series(1, {count}) g
  WHERE id = 1;
INSERT INTO factor SELECT id, 0, 'f' || id FROM experiment WHERE id > 1;
INSERT INTO document SELECT 's' || id, 'subject ' || id FROM experiment WHERE id > 1;
INSERT INTO attachment SELECT id, 'subject', 's' || id FROM experiment WHERE id > 1;
INSERT INTO cell (experiment, ordinal, label, command)
  SELECT e.id, c, 'v=' || c, 'c' FROM experiment e, generate_series(0, 1) c WHERE e.id > 1
  ORDER BY e.id, c;
INSERT INTO level SELECT id, 0, ordinal FROM cell WHERE experiment > 1;
INSERT INTO run (experiment, cell, round, attempt, position, started_at_ns, wall_ns, status,
    disturbed, layout)
  SELECT c.experiment, c.id, r, 0, 0, 0, 1000, 0, 0, '' FROM cell c, generate_series(0, 24) r
  WHERE c.experiment > 1 ORDER BY c.experiment, r, c.id;
INSERT INTO value SELECT r.id, m, random() FROM run r, generate_series(1, 4) m
  WHERE r.experiment > 1;
INSERT INTO series SELECT r.id, 1, 'x' FROM run r WHERE r.experiment > 1 AND r.id % 4 = 0;
INSERT INTO disturbance SELECT r.id, 'steal', 1, '' FROM run r WHERE r.id % 4 = 0;
ANALYZE;
"""
