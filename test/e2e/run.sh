#!/usr/bin/env bash
# Runs the e2e tests on the test cluster, which it starts, or on the cluster of E2E_KUBECONFIG, which must have OLM and
# pull images from REGISTRY (docs/development/testing-cluster.md). Arguments are passed to go test.
set -euo pipefail
. "$(dirname "$0")/../../hack/lib.sh"

if [ -z "${E2E_KUBECONFIG:-}" ]; then
  "$root/test/cluster/up.sh"
  . "${CLUSTER_STATE:-$cache/cluster}/env"
else
  export KUBECONFIG=$E2E_KUBECONFIG KUBECTL=${KUBECTL:-kubectl} OPERATOR_SDK=${OPERATOR_SDK:-$bin/operator-sdk}
  export OPM_IMAGE=${OPM_IMAGE:-quay.io/operator-framework/opm:latest}
  [ -n "${REGISTRY:-}" ] || die "set REGISTRY to one that you may push to and the cluster pulls from, such as registry.example.com/me"
fi
for tool in operator-sdk opm image kustomize controller-gen; do "$root/hack/tool.sh" "$tool"; done

# The previous version is built from the same sources: an upgrade replaces everything, and only names differ.
export E2E_VERSION=${VERSION:?run it through make test-e2e} E2E_PREVIOUS=0.0.9
# Names are unique to this run: a node caches the image that it has pulled under a name.
export E2E_IMAGES=$REGISTRY/run-$(date +%s)/private-cloud-operator E2E_FOLDER=$bin/e2e

cd "$root"
mkdir -p "$E2E_FOLDER"
platform=$(go env GOOS)/$(go env GOARCH)
bundles=() webhookless=()
for version in $E2E_PREVIOUS $E2E_VERSION; do
  bundle=$E2E_FOLDER/$version/bundle
  bundles+=("$bundle")
  make --no-print-directory bundle images images-push VERSION="$version" IMAGE_TAG_BASE="$E2E_IMAGES" BUNDLE_DIR="$bundle" \
    IMAGES_DIR="$E2E_FOLDER/$version/images" PLATFORMS="$platform"

  # The version of OLM v1 on the cluster refuses bundles with webhooks.
  bundle=$E2E_FOLDER/$version/olmv1/bundle
  webhookless+=("$bundle")
  make --no-print-directory bundle WEBHOOK=none VERSION="$version" IMAGE_TAG_BASE="$E2E_IMAGES" BUNDLE_DIR="$bundle"
  BUNDLE_DIR="$bundle" PLATFORMS="$platform" hack/bundle-image.sh "$bundle-image"
  "$bin/image" push --tag "$E2E_IMAGES-olmv1-bundle:v$version" "$bundle-image"/*
done

# catalog NAME BUNDLE...: builds and pushes the catalog NAME-catalog of bundles with the images NAME-bundle.
catalog() {
  local folder=$E2E_FOLDER/${1##*/}-catalog
  rm -rf "$folder" "$folder-image"
  make --no-print-directory catalog IMAGE_TAG_BASE="$1" CATALOG_DIR="$folder" BUNDLE_DIR="${*:2}"
  "$bin/image" build --output "$folder-image" --base "$OPM_IMAGE" --entrypoint '["/bin/opm"]' \
    --cmd '["serve","/configs"]' --label operators.operatorframework.io.index.configs.v1=/configs \
    --file "$folder=/configs" >/dev/null
  "$bin/image" push --tag "$1-catalog:v$E2E_VERSION" "$folder-image"
}
catalog "$E2E_IMAGES" "${bundles[@]}"
catalog "$E2E_IMAGES-olmv1" "${webhookless[@]}"

go test -v -count=1 -timeout 60m ./test/e2e "$@"
