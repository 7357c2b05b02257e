#!/usr/bin/env bash
# Prints a folder that holds etcd, kube-apiserver and kubectl, which the tests and the demo need. In this order:
# KUBEBUILDER_ASSETS where it is set; bin/k8s, where they are from the last time; prebuilt ones, where they can be
# downloaded; or built from source through the Go module proxy. KUBE_ASSETS_FROM=source skips the download.
# Only the folder goes to stdout.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

version=$(required kube k8s.io/kubernetes)
dir=$bin/k8s/$version

complete() { [ -x "$1/etcd" ] && [ -x "$1/kube-apiserver" ] && [ -x "$1/kubectl" ]; }

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
  complete "$KUBEBUILDER_ASSETS" ||
    die "KUBEBUILDER_ASSETS is $KUBEBUILDER_ASSETS, which lacks one of etcd, kube-apiserver, kubectl; unset it or complete it"
  echo "$KUBEBUILDER_ASSETS"
  exit 0
fi

if ! complete "$dir"; then
  mkdir -p "$bin/k8s"
  lock "$bin/k8s/.lock"
  trap 'rm -rf "$bin/k8s/.lock" "$bin/k8s/.new"' EXIT
fi

# Within 10 seconds, so that a machine that cannot reach the index is not kept waiting by a firewall that drops packets.
reachable() {
  local pid
  "$bin/setup-envtest" list --bin-dir "$bin/k8s/.new" >/dev/null 2>&1 &
  pid=$!
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    kill -0 "$pid" 2>/dev/null || break
    sleep 1
  done
  kill "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null
}

# The index has no build of every patch release: the newest of the same minor is taken.
prebuilt() {
  local minor=${version#v} found
  minor=${minor%.*}
  "$root/hack/tool.sh" setup-envtest || return 1
  reachable || { say "prebuilt etcd and kube-apiserver cannot be downloaded from here"; return 1; }
  found=$("$bin/setup-envtest" use "$minor.x!" --bin-dir "$bin/k8s/.new" -p path 2>/dev/null) && complete "$found" ||
    { say "there is no prebuilt kube-apiserver $minor for this machine"; return 1; }
  chmod -R u+w "$found"
  mv "$found" "$dir"
  say "downloaded etcd, kube-apiserver and kubectl ($(basename "$found"))"
}

from_source() {
  local tool
  say "building etcd, kube-apiserver and kubectl from source, once: about 4 minutes on 2 cores, seconds where they have been built before"
  rm -rf "$bin/k8s/.new"
  for tool in etcd kube-apiserver kubectl; do
    "$root/hack/tool.sh" "$tool" "$bin/k8s/.new"
  done
  mv "$bin/k8s/.new" "$dir"
}

if ! complete "$dir"; then
  rm -rf "$dir"
  mkdir -p "$bin/k8s/.new"
  if [ "${KUBE_ASSETS_FROM:-}" = source ] || ! prebuilt; then
    from_source
  fi
fi
ln -sfn "$version" "$bin/k8s/current"
echo "$dir"
