#!/usr/bin/env bash
# Ends the cluster: its processes, mounts and network go with the holder. PURGE=1 deletes its state, too.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

mkdir -p "$state"
lock "$state/.lock"
trap 'rm -rf "$state/.lock"' EXIT
start=$SECONDS
end_node
if [ "${PURGE:-}" = 1 ]; then
  rm -rf "$state"
  say "the cluster is down, and its state deleted, after $((SECONDS - start)) s"
else
  say "the cluster is down after $((SECONDS - start)) s; its state stays in $state for the next time (PURGE=1 deletes it)"
fi
