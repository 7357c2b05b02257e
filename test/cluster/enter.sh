#!/usr/bin/env bash
# Runs a command on the node, or a shell: its network, its processes, its files.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
first >/dev/null || die "no node runs: make cluster-up"
if [ $# -eq 0 ]; then set -- bash; fi
PATH=/opt/bin:$PATH inside "$@"
