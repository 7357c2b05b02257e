#!/usr/bin/env bash
# Stops the cluster. Its processes, mounts and network end with the holder process. PURGE=1 also deletes its state.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

mkdir -p "$state"
lock "$state/.lock"
trap 'rm -rf "$state/.lock"' EXIT
start=$SECONDS
end_node
if [ "${PURGE:-}" = 1 ]; then
  rm -rf "$state"
  say "stopped the cluster and deleted its state after $((SECONDS - start)) s"
else
  say "stopped the cluster after $((SECONDS - start)) s; its state is kept in $state (PURGE=1 deletes it)"
fi
