#!/usr/bin/env bash
# Puts everything that the cluster runs, as links, into bin/ of its state; builds what the cache does not have.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# In the order in which they are needed.
tools=(
  image containerd containerd-shim-runc-v2 runc bridge loopback host-local portmap
  kube-controller-manager kube-scheduler kubelet kube-proxy coredns
  helm olm catalog package-server copy-content cpb opm grpc-health-probe operator-sdk scorecard-test
  catalogd operator-controller
)

# lacks COMMAND PACKAGE: PACKAGE of Debian has COMMAND.
missing=()
lacks() { command -v "$1" >/dev/null || missing+=("$2"); }
lacks nft nftables
lacks ip iproute2
lacks openssl openssl
lacks unshare util-linux
lacks gcc gcc
lacks pkg-config pkg-config
[ -f /usr/include/seccomp.h ] || missing+=(libseccomp-dev)
[[ $(ldd "$(command -v busybox || echo /none)" 2>&1) = *'not a dynamic executable'* ]] || missing+=(busybox-static)
[ -f /etc/ssl/certs/ca-certificates.crt ] || missing+=(ca-certificates)
if [ ${#missing[@]} -gt 0 ]; then
  install=(apt-get install --yes --no-install-recommends "${missing[@]}")
  [ "${CI:-}" = true ] || die "packages are missing: ${missing[*]}. On Debian or Ubuntu: ${install[*]}"
  say "installing packages: ${missing[*]}"
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive "${install[@]}" -q; } >/dev/null || die "${install[*]} does not work; say it by hand"
fi

mkdir -p "$state/bin"
[ -d "$cache/tools/scorecard-test" ] ||
  say "building all that a cluster is made of, from source, once for all clones: about 19 minutes on 2 cores with nothing cached"
assets=$("$root/hack/kube-assets.sh")
for tool in etcd kube-apiserver kubectl; do ln -sfn "$assets/$tool" "$state/bin/$tool"; done

n=0
for tool in "${tools[@]}"; do
  n=$((n + 1))
  PROGRESS="[$n of ${#tools[@]}] " "$root/hack/tool.sh" "$tool" "$state/bin"
done
