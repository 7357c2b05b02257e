#!/usr/bin/env bash
# Checks that generated files are up to date, the code is formatted, linters report nothing and go.mod is tidy. It compares
# generated files with a copy, so that uncommitted changes do not affect the result. The tools must be in bin/ (make
# verify builds them).
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=()

# check WHAT REMEDY COMMAND...: continues after a failure, so that one run reports all failures.
check() {
  local what=$1 remedy=$2 start=$SECONDS
  shift 2
  if "$@"; then
    say "ok      $what ($((SECONDS - start)) s)"
  else
    say "FAILED  $what ($((SECONDS - start)) s): $remedy"
    failed+=("$what")
  fi
}

generated() {
  find api internal config bundle bundle.Dockerfile catalog charts docs/reference docs/kubectl-privatecloud -type f \
    \( -name 'zz_generated.*' -o -path 'config/crd/bases/*' -o -path config/rbac/role.yaml -o -path config/webhook/manifests.yaml -o -path 'config/manifests/bases/*' \
    -o -path 'bundle/*' -o -path 'catalog/*' -o -path 'charts/*/files/*' -o -path bundle.Dockerfile -o -path docs/reference/api.md \
    -o -path 'docs/kubectl-privatecloud/*' \) 2>/dev/null |
    LC_ALL=C sort
}

# snapshot DIR: copies the generated files into DIR.
snapshot() {
  local file
  mkdir -p "$1"
  generated | while read -r file; do
    mkdir -p "$1/$(dirname "$file")"
    cp "$file" "$1/$file"
  done
}

regenerate() {
  snapshot "$scratch/committed"
  "${MAKE:-make}" --no-print-directory generate manifests api-reference plugin-docs bundle catalog chart || return 1
  snapshot "$scratch/regenerated"
  diff -ru "$scratch/committed" "$scratch/regenerated"
}

formatted() {
  local files
  files=$(git ls-files -co --exclude-standard -- '*.go' | while read -r file; do [ ! -f "$file" ] || echo "$file"; done | xargs gofmt -l -s)
  [ -z "$files" ] || { say "$files"; return 1; }
}

tidy() {
  local diff
  diff=$(go mod tidy -diff 2>&1) || { awk '/^--- .*go.sum/ { exit } /^([+-]\t|go:)/' <<<"$diff" >&2; return 1; }
}

# Linters that may or may not be on the machine are not used.
workflows() {
  bin/actionlint -shellcheck= -pyflakes= || return 1
  ! grep -n 'uses:' .github/workflows/*.yml | grep -vE 'uses: [a-z/-]+@[0-9a-f]{40} # v[0-9.]+$'
}

# images prints each base image without a digest. That of opm has none recorded: a release builds the catalog by its tag.
images() {
  ! git grep -nE '^FROM |^ *image: golang' -- '*Dockerfile' .github/workflows | grep -vE '@sha256:[0-9a-f]{64}|FROM scratch$|/opm:v'
}

check 'generated files' 'they have been regenerated; commit them with their sources' regenerate
check 'gofmt' 'run make fmt' formatted
check 'go build' 'a package needs what only its tests have' go build ./...
check 'golangci-lint' 'run make lint; make fmt applies the proposed fixes' bin/golangci-lint run
check 'golangci-lint in hack/image' 'run make lint' env -C hack/image ../../bin/golangci-lint run
check 'golangci-lint in test/page' 'run make lint' env -C test/page ../../bin/golangci-lint run
check 'workflows' 'correct what it reports; pin each action by its commit, with the version as comment' workflows
check 'images' 'name each base image with its digest' images
check 'vulnerabilities' 'update the module, or the line toolchain in go.mod' hack/vulncheck.sh
check 'go.mod' 'run go mod tidy' tidy

[ ${#failed[@]} -eq 0 ] || die "make verify: ${#failed[@]} failed: ${failed[*]}"
