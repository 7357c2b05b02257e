#!/usr/bin/env bash
# Prints the folder of etcd, kube-apiserver and kubectl, which the tests and the demo need: KUBEBUILDER_ASSETS if it is set;
# otherwise bin/k8s, if a previous run has filled it; otherwise the binaries of envtest, if they can be downloaded;
# otherwise binaries that it builds from source. KUBE_ASSETS_FROM=source skips the download. Prints only the folder to
# stdout.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

version=$(required kube k8s.io/kubernetes)
dir=$bin/k8s/$version

complete() { [ -x "$1/etcd" ] && [ -x "$1/kube-apiserver" ] && [ -x "$1/kubectl" ]; }

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
  complete "$KUBEBUILDER_ASSETS" ||
    die "KUBEBUILDER_ASSETS is $KUBEBUILDER_ASSETS, which does not have all of etcd, kube-apiserver and kubectl: unset it, or add what is missing"
  echo "$KUBEBUILDER_ASSETS"
  exit 0
fi

if ! complete "$dir"; then
  mkdir -p "$bin/k8s"
  lock "$bin/k8s/.lock"
  trap 'rm -rf "$bin/k8s/.lock" "$bin/k8s/.new"' EXIT
fi

# reachable: reports whether the index of envtest responds within 10 seconds. A firewall that drops packets would block
# longer.
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

# The index does not have every patch release: use the newest of the same minor version.
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
  say "building etcd, kube-apiserver and kubectl from source, once: 4 to 5 minutes on 2 cores with nothing cached"
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
