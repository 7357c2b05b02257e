#!/usr/bin/env bash
# Installs OLM v0 with the chart of its module, without the public catalog, whose image cannot be pulled here.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

path=github.com/operator-framework/operator-lifecycle-manager
version=$(pinned $path)
opm=quay.io/operator-framework/opm:$(pinned github.com/operator-framework/operator-registry)
image=quay.io/operator-framework/olm:$version

csv() { [ "$(kubectl -n olm get csv packageserver -o 'jsonpath={.status.phase}')" = Succeeded ]; }
packages() { kubectl get --raw /apis/packages.operators.coreos.com/v1; }
olm_log() {
  kubectl -n olm get pods,csv
  kubectl -n olm events --types=Warning | tail -n 10
  kubectl -n olm logs deployment/olm-operator --tail=10
}

rendered() {
  local source chart=$state/chart
  source=$(fetched "$path")
  rm -rf "$chart"
  cp -r "$source/deploy/chart" "$chart"
  chmod -R u+w "$chart"
  # helm rejects the version of the chart.
  sed -i "s/^version:.*/version: ${version#v}/" "$chart/Chart.yaml"
  "$state/bin/helm" template olm "$chart" --namespace olm --values "$source/deploy/upstream/values.yaml" \
    --kube-version "$(kubectl version -o json | sed -n '/serverVersion/,$s/.*"gitVersion": "v\(.*\)".*/\1/p')" \
    --set "olm.image.ref=$image,catalog.image.ref=$image,package.image.ref=$image,package.image.pullPolicy=IfNotPresent" \
    --set "catalog.opmImageArgs=--opmImage=$opm" >"$state/olm.yaml"
  cp "$chart"/crds/*.yaml "$state/crds"
}

if ! { csv && packages; } >/dev/null 2>&1; then
  mkdir -p "$state/crds"
  rendered
  kubectl apply --server-side --force-conflicts -f "$state/crds" >/dev/null
  kubectl wait --for=condition=Established -f "$state/crds" --timeout=60s >/dev/null
  kubectl apply --server-side --force-conflicts -f "$state/olm.yaml" >/dev/null
  kubectl -n olm delete catalogsource operatorhubio-catalog --ignore-not-found >/dev/null
fi
eventually 240 "OLM $version has installed its packageserver" olm_log csv
eventually 60 'the packages API responds' olm_log packages
