#!/usr/bin/env bash
# Starts the cluster for tests: one real node, DNS, a registry, and OLM v0 and v1. It does not restart what is running.
# docs/development/testing-cluster.md describes how it works.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

other="or set E2E_KUBECONFIG to the kubeconfig of another cluster with OLM (docs/development/testing-cluster.md)"
[ "$(uname -s)" = Linux ] || die "the cluster needs Linux: use a Linux machine, $other"
[ "$(id -u)" = 0 ] || die "the cluster needs root: run this as root, $other"
begun=$SECONDS

api() { kubectl get --raw /readyz; }
node_ready() {
  kubectl get --raw "/api/v1/nodes/$node/proxy/healthz" >/dev/null &&
    kubectl wait --for=condition=Ready "node/$node" --timeout=1s
}
dns() { inside busybox nslookup -type=a kubernetes.default.svc.cluster.local 10.96.0.10; }
dns_log() {
  kubectl -n kube-system get pods -o wide
  kubectl -n kube-system events --types=Warning | tail -n 10
}

# node_hash: prints a hash of the files of the node, which is restarted when the hash changes.
node_hash() {
  { readlink -f "$state"/bin/*; find "$here"/{etc,node.sh,root.sh} -type f -exec cat {} +; } | cksum
}

# start_node: starts the node in namespaces of its own, and connects it to the machine.
start_node() {
  [ ! -e "/sys/class/net/$link" ] ||
    die "the cluster $(cat "/sys/class/net/$link/ifalias") uses $subnet: set another CLUSTER_SUBNET and CLUSTER_STATE"
  rm -f "$state"/log/*.log
  node_hash >"$state/node-hash"
  setsid flock --no-fork --timeout 10 "$state/alive" unshare --net --mount --pid --fork --kill-child --propagation private \
    bash "$here/root.sh" "$state" "$node_ip" "$machine_ip" "$cgroup" >>"$state/log/node.log" 2>&1 </dev/null &
  eventually 10 'the holder process runs' "$state/log/node.log" first
  ip link add "$link" type veth peer name eth0 netns "$(first)"
  ip link set "$link" alias "$state"
  ip address add "$machine_ip" peer "$node_ip" dev "$link"
  ip link set "$link" up
}

# running: waits until the processes of the node run, which may have just been restarted.
running() {
  local process log=$state/log
  eventually 30 'containerd runs' "$log/containerd.log" inside busybox pidof containerd || return 1
  for process in registry:5000 etcd:2379 kube-apiserver:6443 kube-controller-manager:10257 kube-scheduler:10259 \
    kube-proxy:10256 kubelet:10248; do
    eventually 60 "${process%:*} runs" "$log/${process%:*}.log" inside bash -c ": </dev/tcp/127.0.0.1/${process#*:}" || return 1
  done
  eventually 60 'the API server is ready' "$log/kube-apiserver.log" api &&
    eventually 60 'the node is ready' "$log/kubelet.log" node_ready
}

up_node() {
  if first >/dev/null && [ -e "/sys/class/net/$link" ] && [ "$(node_hash)" = "$(cat "$state/node-hash")" ]; then
    say "the node is already running as process $(holder)"
    if running; then return; fi
    say "the node does not recover and is restarted"
  fi
  end_node
  start_node
  running || die "the node is not running; its logs are in $state/log"
}

mkdir -p "$state/log"
lock "$state/.lock"
trap 'rm -rf "$state/.lock"' EXIT
"$here/binaries.sh"
"$here/pki.sh"
up_node
"$here/images.sh"
kubectl apply --server-side --force-conflicts -f "$here/manifests/coredns.yaml" >/dev/null
eventually 120 'DNS responds' dns_log dns
"$here/olm.sh"
[ "${E2E:-}" = short ] || "$here/olmv1.sh"

# Environment variables of the tests.
cat >"$state/env" <<EOF
export KUBECONFIG=$state/kubeconfig
export REGISTRY=$registry
export SSL_CERT_FILE=$state/ca-bundle.crt
export NO_PROXY=$node_ip${NO_PROXY:+,$NO_PROXY}
export KUBECTL=$state/bin/kubectl
export OPERATOR_SDK='$here/with-names.sh $state/bin/operator-sdk'
export OPM=$state/bin/opm
export OPM_IMAGE=$registry/operator-framework/opm:latest
export IMAGE=$state/bin/image
export SCORECARD_FLAGS='--storage-image=quay.io/operator-framework/scorecard-storage:latest --untar-image=quay.io/operator-framework/scorecard-untar:latest'
EOF
cat >&2 <<EOF

The cluster is running after $((SECONDS - begun)) s.
  export KUBECONFIG=$state/kubeconfig
  export SSL_CERT_FILE=$state/ca-bundle.crt    # to push to and pull from its registry $registry
  . $state/env    # these two, and the paths of kubectl, operator-sdk and opm
Logs are in $state/log. make cluster-down stops it.
EOF
