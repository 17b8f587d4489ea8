#!/usr/bin/env python3
"""Writes a history of RUNS runs of METRICS metrics each, as sim/history/history.md describes the file, for the browser test.

    make_history.py FILE RUNS METRICS

Four programs, one of them on 1 to 8 chips; the cycles of 'down' rise by a tenth in the middle, and that was accepted.
"""
import json
import math
import sqlite3
import sys

path, runs, metrics = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
db = sqlite3.connect(path)
db.executescript("""
PRAGMA application_id = 1919186291; PRAGMA user_version = 2;
CREATE TABLE series(id INTEGER PRIMARY KEY, name TEXT NOT NULL, target TEXT NOT NULL, chips INTEGER NOT NULL,
  UNIQUE(name, target, chips));
CREATE TABLE metrics(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, unit TEXT NOT NULL, timed INTEGER NOT NULL,
  better INTEGER NOT NULL);
CREATE TABLE runs(id INTEGER PRIMARY KEY, series INTEGER NOT NULL REFERENCES series(id), time INTEGER NOT NULL,
  commit_id TEXT NOT NULL, parent TEXT NOT NULL, branch TEXT NOT NULL, host TEXT NOT NULL, version TEXT NOT NULL,
  program TEXT NOT NULL, program_sha256 TEXT NOT NULL, target_sha256 TEXT NOT NULL, options TEXT NOT NULL,
  verdict TEXT NOT NULL, report_sha256 TEXT NOT NULL, decisions TEXT NOT NULL DEFAULT '', gate INTEGER NOT NULL DEFAULT 0,
  UNIQUE(series, commit_id, report_sha256));
CREATE TABLE samples(run INTEGER NOT NULL REFERENCES runs(id), metric INTEGER NOT NULL REFERENCES metrics(id), value,
  PRIMARY KEY(run, metric)) WITHOUT ROWID;
CREATE INDEX samples_by_metric ON samples(metric, run);
CREATE TABLE acceptances(id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs(id), metric TEXT NOT NULL,
  reason TEXT NOT NULL, author TEXT NOT NULL, time INTEGER NOT NULL);
CREATE TABLE decisions(sha256 TEXT PRIMARY KEY, json TEXT NOT NULL) WITHOUT ROWID;
""")
series = [("down", "sn40l", 16), ("up", "sn40l", 1), ("up", "sn40l", 2), ("up", "sn40l", 4), ("up", "sn40l", 8)]
db.executemany("INSERT INTO series(name, target, chips) VALUES(?,?,?)", series)
db.executemany("INSERT INTO decisions VALUES(?,?)", [
    ("a", json.dumps({"collectives.down.all_reduce.algorithm": "ring"})),
    ("b", json.dumps({"collectives.down.all_reduce.algorithm": "direct"}))])
names = [("cycles.simulated", "cycles", 0, 0), ("cycles.predicted", "cycles", 0, 2), ("causes.compute", "cycles", 0, 0),
         ("causes.link", "cycles", 0, 0), ("host.wall_s", "s", 1, 0)]
names += [(f"stages.stage{i}.cycles", "cycles", 0, 0) for i in range(metrics - len(names))]
db.executemany("INSERT INTO metrics(name, unit, timed, better) VALUES(?,?,?,?)", names)
half = runs // 2
for n in range(runs):
    which = n % len(series)
    run = n + 1
    slow = which == 0 and n >= half
    db.execute("INSERT INTO runs VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
               (run, which + 1, 1700000000 + 600 * n, f"{n // len(series):040x}",
                f"{n // len(series) - 1:040x}" if n >= len(series) else "", "main", "host1", "0.1.0", series[which][0], "01",
                "02", "{}", "pass", str(n), "b" if slow else "a", 2))
    chips = series[which][2]
    link = 11000 if slow else 8000
    compute = 24171 if which == 0 else 400000 // chips
    wall = 1.0 + 0.05 * math.sin(n * 12.9898)
    values = [compute + link, compute + 9000, compute, link, wall]
    values += [1000 + i + (n * (i + 7919)) % 97 for i in range(metrics - len(values))]
    db.executemany("INSERT INTO samples VALUES(?,?,?)", [(run, m + 1, v) for m, v in enumerate(values)])
first = {w: w + 1 for w in range(len(series))}
for which, run in first.items():
    db.execute("INSERT INTO acceptances(run, metric, reason, author, time) VALUES(?,?,?,?,?)", (run, "", "first", "t", 1700000000))
moved = next((n + 1 for n in range(half, runs) if n % len(series) == 0), None)
if moved:
    db.execute("INSERT INTO acceptances(run, metric, reason, author, time) VALUES(?,?,?,?,?)",
               (moved, "cycles.simulated", "slower links, as ordered", "t", 1700000000))
db.commit()
db.close()
