# shellcheck shell=bash disable=SC2034
# Shared by the scripts of this folder, which source it. bash, and POSIX tools only.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=$root/bin
# What takes long to build is kept here for all clones, each under a name that says what it was built from.
cache=${CLUSTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/private-cloud-operator}

say() { printf '%s\n' "$*" >&2; }

die() {
  say "error: $*"
  exit 1
}

# required MODULE PATH: the version of the module PATH that hack/tools/MODULE/go.mod pins.
required() {
  awk -v path="$2" '$1 == "require" { $1 = ""; $0 = $0 } $1 == path && $2 ~ /^v/ { print $2; exit }' \
    "$root/hack/tools/$1/go.mod"
}

# pinned PATH: the version of the module PATH that hack/tools/modules.sum pins.
pinned() { awk -v path="$1" '$1 == path { print $2 }' "$root/hack/tools/modules.sum"; }

# fetched PATH: the folder of that module, in the module cache, once it is found to be what modules.sum says.
fetched() {
  local path=$1 version sum json
  version=$(pinned "$path")
  sum=$(awk -v path="$path" '$1 == path { print $3 }' "$root/hack/tools/modules.sum")
  json=$(cd / && GOWORK=off GOFLAGS='' go mod download -json "$path@$version") ||
    die "cannot get $path $version: $(sed -n 's/.*"Error": "\(.*\)".*/\1/p' <<<"$json")"
  grep -qF "\"Sum\": \"$sum\"" <<<"$json" ||
    die "$path $version is not what hack/tools/modules.sum says: with another version goes another sum. Got: $json"
  sed -n 's/.*"Dir": "\(.*\)".*/\1/p' <<<"$json"
}

# lock DIR: waits for the folder DIR to be ours, which only one process can have made. A lock whose owner is dead is taken
# over; mv decides between two that notice at once.
lock() {
  local owner told=
  until mkdir "$1" 2>/dev/null; do
    owner=$(cat "$1/pid" 2>/dev/null || true)
    if [ -n "$owner" ] && ! kill -0 "$owner" 2>/dev/null; then
      mv "$1" "$1.$$" 2>/dev/null && rm -rf "$1.$$"
      continue
    fi
    [ -n "$told" ] || say "waiting for process ${owner:-?}, which is building the same (lock: $1)"
    told=yes
    sleep 1
  done
  echo $$ >"$1/pid"
}

# patiently WHAT COMMAND...: runs COMMAND and says every 15 seconds that WHAT is still going on.
# An interrupt reaches COMMAND too.
patiently() {
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
