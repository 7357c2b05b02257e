#!/usr/bin/env bash
# Creates the credentials of the cluster, once: a CA, certificates, tokens and kubeconfigs.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pki=$state/lib/pki
if [ -e "$pki/subnet" ]; then
  [ "$(cat "$pki/subnet")" = "$subnet" ] ||
    die "$state was created for CLUSTER_SUBNET=$(cat "$pki/subnet"), not $subnet: use that one, another CLUSTER_STATE, or delete it (PURGE=1 make cluster-down)"
  exit 0
fi
rm -rf "$pki"
(umask 077 && mkdir -p "$pki")
cd "$pki"
umask 077

curve=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
# quietly COMMAND...: runs COMMAND and prints its output only if it fails.
quietly() {
  local output
  output=$("$@" 2>&1) || die "$*: $output"
}

# certificate NAME SUBJECT EXTENSION...
certificate() {
  local name=$1 subject=$2
  shift 2
  printf '%s\n' 'keyUsage=critical,digitalSignature' "$@" >"$name.ext"
  quietly openssl req "${curve[@]}" -subj "$subject" -keyout "$name.key" -out "$name.csr"
  quietly openssl x509 -req -in "$name.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 -extfile "$name.ext" -out "$name.crt"
  rm "$name.csr" "$name.ext"
}

# identity NAME USER GROUP SERVER: creates a token and a kubeconfig with it.
identity() {
  local token
  token=$(openssl rand -hex 16)
  echo "$token,$2,$2,\"$3\"" >>tokens.csv
  cat >"$1.kubeconfig" <<EOF
apiVersion: v1
kind: Config
clusters: [{name: cluster, cluster: {server: "https://$4:6443", certificate-authority-data: $(base64 -w0 ca.crt)}}]
users: [{name: $1, user: {token: $token}}]
contexts: [{name: private-cloud-tests, context: {cluster: cluster, user: $1}}]
current-context: private-cloud-tests
EOF
}

quietly openssl req -x509 "${curve[@]}" -days 3650 -subj '/CN=private cloud test cluster' -keyout ca.key -out ca.crt
# For the API server, the kubelet and the registry, which also serves the names of public registries.
names=DNS:localhost,DNS:$node,IP:127.0.0.1,IP:$node_ip,IP:10.96.0.1
for name in kubernetes{,.default{,.svc{,.cluster.local}}} docker.io registry-1.docker.io gcr.io ghcr.io quay.io \
  registry.access.redhat.com registry.k8s.io; do
  names+=,DNS:$name
done
certificate server "/CN=$node" extendedKeyUsage=serverAuth "subjectAltName=$names"
certificate kubelet-client /O=system:masters/CN=kube-apiserver extendedKeyUsage=clientAuth
certificate front-proxy /CN=front-proxy extendedKeyUsage=clientAuth
quietly openssl genrsa -out sa.key 2048

identity admin admin system:masters "$node_ip"
identity controller-manager system:kube-controller-manager '' 127.0.0.1
identity scheduler system:kube-scheduler '' 127.0.0.1
identity kube-proxy system:kube-proxy '' 127.0.0.1
identity kubelet "system:node:$node" system:nodes 127.0.0.1

cp admin.kubeconfig "$state/kubeconfig"
# For tools on the machine that use the registry: the CAs of the machine and that of the cluster.
cat /etc/ssl/certs/ca-certificates.crt ca.crt >"$state/ca-bundle.crt"
echo "$subnet" >subnet
