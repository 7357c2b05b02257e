#!/usr/bin/env bash
# Installs OLM v1 from the manifests of its module. A certificate of the cluster's CA replaces those of cert-manager. The CA
# has also signed the certificate of the registry.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

path=github.com/operator-framework/operator-controller
version=$(pinned $path)
namespace=olmv1-system
folder=$state/olmv1
umask 077

runs() { kubectl -n $namespace rollout status deployment/{catalogd,operator-controller}-controller-manager --timeout=1s; }
# accepts: reports whether both kinds are served and the webhook of catalogd responds.
accepts() {
  kubectl create --dry-run=server -f - <<'OBJECTS'
apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata: {name: any}
spec: {source: {type: Image, image: {ref: "example.com/any:v1"}}}
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: any}
spec: {namespace: any, serviceAccount: {name: any}, source: {sourceType: Catalog, catalog: {packageName: any}}}
OBJECTS
}
olmv1_log() {
  kubectl -n $namespace get pods
  kubectl -n $namespace events --types=Warning | tail -n 10
  for deployment in catalogd operator-controller; do
    kubectl -n $namespace logs deployment/$deployment-controller-manager --tail=10
  done
}

rendered() {
  local source
  source=$(fetched "$path")
  rm -rf "$folder/config"
  mkdir -p "$folder"
  cp -r "$source/config" "$folder"
  chmod -R u+w "$folder"
  cp "$here/manifests/olmv1.yaml" "$folder/kustomization.yaml"
  sed -i "s/VERSION/$version/" "$folder/kustomization.yaml"
  cp "$state/lib/pki/ca.crt" "$folder/ca.crt"
  [ -e "$folder/tls.crt" ] || certified
  kubectl kustomize "$folder" >"$folder/olmv1.yaml"
}

certified() {
  local output
  output=$(openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=olmv1 \
    -addext basicConstraints=critical,CA:FALSE -addext extendedKeyUsage=serverAuth \
    -addext "subjectAltName=DNS:catalogd-service.$namespace.svc,DNS:operator-controller-service.$namespace.svc" \
    -CA "$state/lib/pki/ca.crt" -CAkey "$state/lib/pki/ca.key" -keyout "$folder/tls.key" -out "$folder/tls.crt" 2>&1) ||
    die "openssl req: $output"
}

rendered
kubectl apply --server-side --force-conflicts -f "$folder/olmv1.yaml" >/dev/null
eventually 120 "operator-controller $version runs" olmv1_log runs
eventually 60 'it accepts catalogs and extensions' olmv1_log accepts
