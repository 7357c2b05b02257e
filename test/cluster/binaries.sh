#!/usr/bin/env bash
# Links everything that the cluster runs into bin/ of its state, and builds what is not in the cache.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# In the order of their first use.
tools=(
  image containerd containerd-shim-runc-v2 runc bridge loopback host-local portmap
  kube-controller-manager kube-scheduler kubelet kube-proxy coredns
  helm olm catalog package-server copy-content cpb opm grpc-health-probe operator-sdk scorecard-test
  catalogd operator-controller
)

# need COMMAND PACKAGE: adds the Debian package PACKAGE to missing unless COMMAND exists.
missing=()
need() { command -v "$1" >/dev/null || missing+=("$2"); }
need nft nftables
need ip iproute2
need openssl openssl
need unshare util-linux
need gcc gcc
need pkg-config pkg-config
[ -f /usr/include/seccomp.h ] || missing+=(libseccomp-dev)
[[ $(ldd "$(command -v busybox || echo /none)" 2>&1) = *'not a dynamic executable'* ]] || missing+=(busybox-static)
[ -f /etc/ssl/certs/ca-certificates.crt ] || missing+=(ca-certificates)
[ ${#missing[@]} -eq 0 ] || install_packages "" "${missing[@]}"

mkdir -p "$state/bin"
[ -d "$cache/tools/scorecard-test" ] ||
  say "building all components of the cluster from source, once for all clones: about 19 minutes on 2 cores with nothing cached"
assets=$("$root/hack/kube-assets.sh")
for tool in etcd kube-apiserver kubectl; do ln -sfn "$assets/$tool" "$state/bin/$tool"; done

n=0
for tool in "${tools[@]}"; do
  n=$((n + 1))
  PROGRESS="[$n of ${#tools[@]}] " "$root/hack/tool.sh" "$tool" "$state/bin"
done
