#!/usr/bin/env bash
# Runs a command, or a shell, in the namespaces of the node.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
first >/dev/null || die "the node is not running: make cluster-up"
if [ $# -eq 0 ]; then set -- bash; fi
PATH=/opt/bin:$PATH inside "$@"
