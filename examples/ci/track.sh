#!/usr/bin/env bash
# Compiles and runs the workloads that are watched, keeps their reports in a history, and fails where one got worse.
#
#   track.sh WORKLOAD.toml...
#
# RDUSIM          the program (default: rdusim)
# RDUSIM_DB       the history, kept from job to job (default: rdusim-history.db)
# RDUSIM_OUT      where reports, the gate's JUnit file and the dashboard go (default: rdusim-out)
# RDUSIM_OPTIONS  options of every compile (default: --chips 16 --shard row)
# RDUSIM_BEFORE   a folder of reports of the branch that this one is to be merged into, if there is one: the comparison goes to
#                 RDUSIM_OUT/summary.md. It tells; what judges is the gate, which knows what was accepted
#
# Status 1: the gate found something. What is right is accepted, once, by whoever reviewed it:
#   rdusim history accept --db rdusim-history.db --reason 'why the cycles changed'
set -euo pipefail
rdusim=${RDUSIM:-rdusim}
db=${RDUSIM_DB:-rdusim-history.db}
out=${RDUSIM_OUT:-rdusim-out}
read -r -a options <<<"${RDUSIM_OPTIONS:---chips 16 --shard row}"
mkdir -p "$out/reports"
for workload in "$@"; do
  name=$(basename "$workload" .toml)
  "$rdusim" compile "$workload" "${options[@]}" -o "$out/$name.bin" >/dev/null
  "$rdusim" run "$out/$name.bin" --report "$out/reports/$name.json" >/dev/null
done
status=0
if [ -n "${RDUSIM_BEFORE:-}" ] && [ -d "${RDUSIM_BEFORE:-}" ]; then
  "$rdusim" compare "$RDUSIM_BEFORE" "$out/reports" --markdown >"$out/summary.md" || [ $? -eq 1 ]
fi
"$rdusim" history add "$out/reports" --db "$db"
"$rdusim" history gate --db "$db" --junit "$out/gate.xml" || status=$?
"$rdusim" history export --db "$db" --format benchmark --metric 'cycles.simulated' -o "$out/benchmark.json"
"$rdusim" dashboard --db "$db" -o "$out/dashboard.html"
exit "$status"
