#!/usr/bin/env bash
# The main job, start to finish, on the jobs of a real Slurm that are in datasets/lab.
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf .demo && mkdir .demo
# Four fifths of the jobs were submitted before.
CUT=2026-11-16T06:54
export PREMORTEM_STORE_URL=sqlite:///.demo/jobs.db PREMORTEM_ZONE=UTC PREMORTEM_REGISTRY_URL=.demo/models

run() {
    printf '\n\033[1m$ %s\033[0m\n' "$*"
    "$BIN/$1" "${@:2}"
}
ids() {
    "$BIN/python" -c 'import json, sys; print(*(job["job_id"] for job in json.load(sys.stdin)))'
}

echo "Jobs that a lab's Slurm really ran, with their scripts and what they used (datasets/lab):"
run premortem load datasets/lab/jobs.parquet
run premortem stats
run premortem jobs --cause out_of_memory --limit 5
run premortem show "$("$BIN/premortem" jobs --cause out_of_memory --limit 1 --json | ids)"
echo
echo "Loading the same file again changes nothing:"
run premortem load datasets/lab/jobs.parquet
echo
echo "A model learns from the jobs before a moment, and is asked about jobs that came later and failed:"
run premortem train --until "$CUT" --trials 1 --points submit,running@10s --html .demo/report.html
late=$("$BIN/premortem" jobs --since "$CUT" --outcome failed --limit 400 --json | "$BIN/python" -c '
import json, sys
ran = [job for job in json.load(sys.stdin) if (job["elapsed_s"] or 0) > 12]
print(*(job["job_id"] for job in ran[-3:]))')
# shellcheck disable=SC2086
run premortem predict $late --point running@10s
echo
echo "The report of the model is .demo/report.html. The store is in .demo/jobs.db. Next, with your own cluster:"
echo "  $BIN/premortem collect --once --since 30d      # asks Slurm; or, from a file:"
echo "  sacct -aXP -S 2026-01-01 --format=\"\$($BIN/premortem columns)\" | $BIN/premortem load -"
echo "  $BIN/premortem stats"
