# shellcheck shell=bash disable=SC2034
# Functions that the scripts of this folder share. They need bash and POSIX tools only.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=$root/bin
# The cache of builds that take long, for all clones. Their paths contain a hash of the inputs.
cache=${CLUSTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/private-cloud-operator}

say() { printf '%s\n' "$*" >&2; }

die() {
  say "error: $*"
  exit 1
}

# required MODULE PATH: prints the version of the module PATH in hack/tools/MODULE/go.mod.
required() {
  awk -v path="$2" '$1 == "require" { $1 = ""; $0 = $0 } $1 == path && $2 ~ /^v/ { print $2; exit }' \
    "$root/hack/tools/$1/go.mod"
}

# pinned PATH: prints the version of the module PATH in hack/tools/modules.sum.
pinned() { awk -v path="$1" '$1 == path { print $2 }' "$root/hack/tools/modules.sum"; }

# fetched PATH: prints the folder of the module PATH in the module cache, after comparing it with modules.sum.
fetched() {
  local path=$1 version sum json
  version=$(pinned "$path")
  sum=$(awk -v path="$path" '$1 == path { print $3 }' "$root/hack/tools/modules.sum")
  json=$(cd / && GOWORK=off GOFLAGS='' go mod download -json "$path@$version") ||
    die "cannot get $path $version: $(sed -n 's/.*"Error": "\(.*\)".*/\1/p' <<<"$json")"
  grep -qF "\"Sum\": \"$sum\"" <<<"$json" ||
    die "$path $version does not match hack/tools/modules.sum, where a version needs its own sum. Got: $json"
  sed -n 's/.*"Dir": "\(.*\)".*/\1/p' <<<"$json"
}

# by_digest REFERENCE: prints REFERENCE@DIGEST as the file IMAGE_DIGESTS records it (hack/image-digests.sh), and REFERENCE
# if it does not. With USE_IMAGE_DIGESTS=true, a missing digest is an error.
by_digest() {
  local found
  found=$(awk -v reference="$1@" 'index($0, reference) == 1' "$IMAGE_DIGESTS" 2>/dev/null || true)
  [ -n "$found" ] || [ "${USE_IMAGE_DIGESTS:-}" != true ] ||
    die "$IMAGE_DIGESTS has no digest of $1: run make images image-digests, or make image-digests FROM=registry for pushed images"
  echo "${found:-$1}"
}

# lock DIR: acquires the lock DIR, a folder, which only one process can create. It removes the lock of a process that does
# not exist any more; mv succeeds for one process only.
lock() {
  local owner reported=
  until mkdir "$1" 2>/dev/null; do
    owner=$(cat "$1/pid" 2>/dev/null || true)
    if [ -n "$owner" ] && ! kill -0 "$owner" 2>/dev/null; then
      mv "$1" "$1.$$" 2>/dev/null && rm -rf "$1.$$"
      continue
    fi
    [ -n "$reported" ] || say "waiting for process ${owner:-?}, which holds the lock $1"
    reported=yes
    sleep 1
  done
  echo $$ >"$1/pid"
}

# install_packages HINT PACKAGE...: with CI=true, installs the Debian packages, as one process at a time; otherwise it dies
# and says how to install them, followed by HINT.
install_packages() {
  local hint=$1 install
  shift
  install=(apt-get install --yes --no-install-recommends "$@")
  [ "${CI:-}" = true ] || die "packages are missing: $*. On Debian or Ubuntu: ${install[*]}$hint"
  say "installing packages: $*"
  mkdir -p "$cache"
  lock "$cache/apt.lock"
  # With RUNLEVEL=1, no service of a package is started.
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 "${install[@]}" -q; } >/dev/null || {
    rm -rf "$cache/apt.lock"
    die "${install[*]} failed; run it by hand"
  }
  rm -rf "$cache/apt.lock"
}

# with_progress WHAT COMMAND...: runs COMMAND and prints every 15 seconds that WHAT is in progress. An interrupt stops
# COMMAND, too.
with_progress() {
  local what=$1 pid start=$SECONDS status=0
  shift
  "$@" &
  pid=$!
  trap 'kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; exit 130' INT TERM
  while sleep 1 && kill -0 "$pid" 2>/dev/null; do
    [ $(((SECONDS - start) % 15)) -ne 0 ] || say "  … $what: $((SECONDS - start)) s"
  done
  wait "$pid" || status=$?
  trap - INT TERM
  return "$status"
}
