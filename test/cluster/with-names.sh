#!/usr/bin/env bash
# with-names.sh COMMAND...: runs COMMAND with /etc/hosts that resolves the names of public registries to the registry of the
# cluster, as on the node. operator-sdk pulls images on the machine, and some of them cannot be set with a flag.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
export SSL_CERT_FILE=$state/ca-bundle.crt

{ cat /etc/hosts; echo "$node_ip docker.io registry-1.docker.io gcr.io ghcr.io quay.io registry.access.redhat.com registry.k8s.io"; } >"$state/hosts"
exec unshare --mount --propagation private \
  bash -c 'mount --no-mtab --bind "$1" /etc/hosts && shift && exec "$@"' with-names "$state/hosts" "$@"
