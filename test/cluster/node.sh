#!/usr/bin/env bash
# Process 1 of the node: configures the network and keeps the other processes running, each with a log in /var/log.
set -euo pipefail
pki=/var/lib/pki
services=10.96.0.0/16

# keep NAME COMMAND...: starts COMMAND, and starts it again one second after it exits.
keep() {
  local name=$1 status
  shift
  while :; do
    echo "$(date '+%F %T') $name starts" >>"/var/log/$name.log"
    status=0
    "$@" >>"/var/log/$name.log" 2>&1 </dev/null || status=$?
    echo "$(date '+%F %T') $name ended with status $status" >>"/var/log/$name.log"
    sleep 1
  done &
}

# The machine creates eth0.
until [ -e /sys/class/net/eth0 ]; do sleep 0.1; done
ip link set lo up
ip address add "$NODE_IP" peer "$MACHINE_IP" dev eth0
ip link set eth0 up
# Addresses of Services need a route before they are rewritten. All other addresses are unreachable, so that connections
# fail at once.
ip route add "$services" via "$MACHINE_IP" src "$NODE_IP"
ip route add unreachable default
echo 1 >/proc/sys/net/ipv4/ip_forward

keep registry image serve --dir /var/lib/registry --listen :5000 --listen :443 --cert $pki/server.crt --key $pki/server.key
keep containerd containerd
# Without fsync, a crash of the machine can destroy the state, which is acceptable for tests and makes them faster.
keep etcd etcd --name node1 --data-dir /var/lib/etcd --unsafe-no-fsync \
  --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
  --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
  --initial-cluster node1=http://127.0.0.1:2380
keep kube-apiserver kube-apiserver --etcd-servers=http://127.0.0.1:2379 --advertise-address="$NODE_IP" \
  --service-cluster-ip-range=$services --allow-privileged \
  --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
  --token-auth-file=$pki/tokens.csv --client-ca-file=$pki/ca.crt \
  --tls-cert-file=$pki/server.crt --tls-private-key-file=$pki/server.key \
  --kubelet-certificate-authority=$pki/ca.crt --kubelet-preferred-address-types=InternalIP \
  --kubelet-client-certificate=$pki/kubelet-client.crt --kubelet-client-key=$pki/kubelet-client.key \
  --requestheader-client-ca-file=$pki/ca.crt --requestheader-allowed-names=front-proxy \
  --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
  --requestheader-extra-headers-prefix=X-Remote-Extra- \
  --proxy-client-cert-file=$pki/front-proxy.crt --proxy-client-key-file=$pki/front-proxy.key \
  --service-account-issuer=https://kubernetes.default.svc.cluster.local \
  --service-account-key-file=$pki/sa.key --service-account-signing-key-file=$pki/sa.key

until (: </dev/tcp/127.0.0.1/6443) 2>/dev/null; do sleep 0.1; done
keep kube-controller-manager kube-controller-manager --kubeconfig=$pki/controller-manager.kubeconfig \
  --authentication-kubeconfig=$pki/controller-manager.kubeconfig --authorization-kubeconfig=$pki/controller-manager.kubeconfig \
  --bind-address=127.0.0.1 --leader-elect=false --use-service-account-credentials \
  --root-ca-file=$pki/ca.crt --service-account-private-key-file=$pki/sa.key \
  --cluster-signing-cert-file=$pki/ca.crt --cluster-signing-key-file=$pki/ca.key
keep kube-scheduler kube-scheduler --kubeconfig=$pki/scheduler.kubeconfig \
  --authentication-kubeconfig=$pki/scheduler.kubeconfig --authorization-kubeconfig=$pki/scheduler.kubeconfig \
  --bind-address=127.0.0.1 --leader-elect=false
# kube-proxy omits Services if the rules of a previous process exist, which an older nft does not list completely.
keep kube-proxy bash -c 'for family in ip ip6; do nft delete table $family kube-proxy; done
  exec kube-proxy --config=/etc/kubernetes/kube-proxy.yaml'
until [ -S /run/containerd/containerd.sock ]; do sleep 0.1; done
keep kubelet kubelet --config=/etc/kubernetes/kubelet.yaml --kubeconfig=$pki/kubelet.kubeconfig \
  --hostname-override=node1 --node-ip="$NODE_IP" --cgroup-root="$CGROUP"
wait
