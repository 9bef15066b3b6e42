#!/usr/bin/env bash
# The main job, start to finish, on records made up for the occasion.
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf .demo && mkdir .demo
export PREMORTEM_STORE_URL=sqlite:///.demo/jobs.db PREMORTEM_ZONE=UTC

run() {
    printf '\n\033[1m$ %s\033[0m\n' "$*"
    "$BIN/$1" "${@:2}"
}

echo "A synthetic cluster writes what sacct would print, six lines of it damaged ..."
"$BIN/python" -m premortem.testing sacct .demo/sacct.txt --jobs 20000 --seed 7 --steps --spoil 6
run premortem load .demo/sacct.txt
run premortem rejects
run premortem stats
run premortem jobs --cause out_of_memory --limit 5
job=$("$BIN/premortem" jobs --cause out_of_memory --limit 1 --json | "$BIN/python" -c \
    'import json, sys; print(json.load(sys.stdin)[0]["job_id"])')
run premortem show "$job"
echo
echo "Loading the same file again changes nothing:"
run premortem load .demo/sacct.txt
echo
echo "A model learns from the first ten days, and is asked about jobs that came later and failed:"
export PREMORTEM_REGISTRY_URL=.demo/models
run premortem train --until 2024-01-11 --trials 3 --points submit,start --html .demo/report.html
late=$("$BIN/premortem" jobs --since 2024-01-11 --outcome failed --limit 3 --json | "$BIN/python" -c \
    'import json, sys; print(*(job["job_id"] for job in json.load(sys.stdin)))')
# shellcheck disable=SC2086
run premortem predict $late --point start
echo
echo "The report of the model is .demo/report.html. The store is in .demo/jobs.db. Next, with your own history:"
echo "  sacct -aXP -S 2026-01-01 --format=\"\$($BIN/premortem columns)\" | $BIN/premortem load -"
echo "  $BIN/premortem stats"
