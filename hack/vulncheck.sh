#!/usr/bin/env bash
# hack/vulncheck.sh: reports the known vulnerabilities that the released binaries can reach, and fails if there is one. It reads
# the Go vulnerability database as pinned in hack/tools/modules.sum, so that a commit has the same result tomorrow; VULNDB is the
# URL of another one. The tools must be in bin/ (make vulncheck builds them).
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root"

# database prints the URL of the pinned database, which it builds once for all clones from the reports in the module.
database() {
  local db
  db=$cache/vulndb/$(pinned golang.org/x/vulndb)
  if [ ! -d "$db" ]; then
    mkdir -p "$cache/vulndb"
    rm -rf "$db.$$"
    bin/indexdb -vulns "$(fetched golang.org/x/vulndb)/data/osv" -out "$db.$$" >&2 || die "cannot build the vulnerability database"
    mv "$db.$$" "$db" 2>/dev/null || rm -rf "$db.$$"
  fi
  echo "file://$db"
}

db=${VULNDB:-$(database)}
bin/govulncheck -db "$db" ./cmd/... ./mockcloud/cmd/... ./test/scorecard/... >&2
