#!/usr/bin/env bash
# hack/fuzz.sh [NAME]: runs each fuzz target of the module for FUZZTIME, FUZZ_JOBS at a time; with NAME, those whose name
# contains it. Inputs that fail are written to testdata/fuzz of the package, where go test runs them from then on. make
# fuzz sets the variables.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

only=${1:-}
: "${FUZZTIME:?run it through make fuzz}" "${FUZZ_JOBS:?}"
export FUZZTIME
cd "$root"

# targets: prints PACKAGE NAME for each fuzz target.
targets() {
  git ls-files -co --exclude-standard -- '*_test.go' | while read -r file; do
    [ ! -f "$file" ] || sed -n "s,^func \(Fuzz[A-Za-z0-9_]*\)(f \*testing\.F).*,./$(dirname "$file") \1,p" "$file"
  done | LC_ALL=C sort | awk -v only="$only" 'index($2, only)'
}

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export logs

# run PACKAGE NAME: fuzzes one target, and prints what it found. A worker for each job is enough: there are more targets
# than processors.
run() {
  local start=$SECONDS status=0 log=$logs/$2 found
  go test -run '^$' -fuzz "^$2\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 10s -parallel 1 "$1" >"$log" 2>&1 || status=$?
  found=$(grep -vE '^(fuzz: elapsed|warning: starting|PASS|FAIL|ok|exit status|--- FAIL)' "$log" || true)
  # Go before 1.27 may report the end of the time as a failure: https://go.dev/issue/75804
  [ "$found" != '    context deadline exceeded' ] || status=0
  if [ "$status" -ne 0 ]; then
    echo "$1 $2" >>"$logs/failed"
    printf '%s\n' "$found"
  fi
  printf '=== %s %s: %s after %d s, %s\n' "$1" "$2" "$([ "$status" -eq 0 ] && echo passed || echo FAILED)" $((SECONDS - start)) \
    "$(sed -n 's/.*\(execs: [0-9]*\).*/\1/p' "$log" | tail -1)"
  return "$status"
}
export -f run

list=$(targets)
[ -n "$list" ] || die "no fuzz target has a name with \"$only\""
n=$(wc -l <<<"$list")
say "fuzzing $n targets for $FUZZTIME each, $FUZZ_JOBS at a time"
start=$SECONDS
# One after the other: several builds at a time would build the same packages.
for package in $(cut -d' ' -f1 <<<"$list" | uniq); do
  go test -run '^$' -fuzz '^FuzzNothing$' "$package" >/dev/null || die "$package cannot be built for fuzzing"
done
say "built the tests in $((SECONDS - start)) s"
xargs -n 2 -P "$FUZZ_JOBS" bash -euo pipefail -c 'run "$1" "$2"' run <<<"$list" ||
  die "these targets failed, see above and testdata/fuzz of the package: $(paste -sd, "$logs/failed")"
say "fuzzed $n targets in $((SECONDS - start)) s"
