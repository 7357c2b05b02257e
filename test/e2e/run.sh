#!/usr/bin/env bash
# Runs the e2e tests on the test cluster, which it starts, or on the cluster of E2E_KUBECONFIG, which must have OLM and
# pull images from REGISTRY (docs/development/testing-cluster.md). With E2E=short, it leaves out those with the label long,
# and what only they need. Arguments are passed to go test.
set -euo pipefail
. "$(dirname "$0")/../../hack/lib.sh"

if [ -z "${E2E_KUBECONFIG:-}" ]; then
  "$root/test/cluster/up.sh"
  . "${CLUSTER_STATE:-$cache/cluster}/env"
  export E2E_APISERVER_LOG=${CLUSTER_STATE:-$cache/cluster}/log/kube-apiserver.log
else
  export KUBECONFIG=$E2E_KUBECONFIG KUBECTL=${KUBECTL:-kubectl} OPERATOR_SDK=${OPERATOR_SDK:-$bin/operator-sdk}
  export OPM_IMAGE=${OPM_IMAGE:-quay.io/operator-framework/opm:latest}
  [ -n "${REGISTRY:-}" ] || die "set REGISTRY to one that you may push to and the cluster pulls from, such as registry.example.com/me"
fi
for tool in operator-sdk opm image kustomize controller-gen helm; do "$root/hack/tool.sh" "$tool"; done

# The previous version is built from the same sources: an upgrade replaces everything, and only names differ.
export E2E_VERSION=${VERSION:?run it through make test-e2e} E2E_PREVIOUS=0.0.9
# Names are unique to this run: a node caches the image that it has pulled under a name.
export E2E_IMAGES=$REGISTRY/run-$(date +%s)/private-cloud-operator E2E_FOLDER=$bin/e2e

cd "$root"
mkdir -p "$E2E_FOLDER"
export IMAGE_DIGESTS=$E2E_FOLDER/image-digests.txt
rm -f "$IMAGE_DIGESTS"
platform=$(go env GOOS)/$(go env GOARCH)
bundles=() plain=()
for version in $E2E_PREVIOUS $E2E_VERSION; do
  bundle=$E2E_FOLDER/$version/bundle
  bundles+=("$bundle")
  # The digests of the images are known before they are pushed, and that of the bundle once its image is built.
  release=(make --no-print-directory VERSION="$version" IMAGE_TAG_BASE="$E2E_IMAGES" BUNDLE_DIR="$bundle"
    IMAGES_DIR="$E2E_FOLDER/$version/images" PLATFORMS="$platform" USE_IMAGE_DIGESTS=true)
  "${release[@]}" images image-digests
  "${release[@]}" bundle bundle-image image-digests images-push

  [ "${E2E:-}" != short ] || continue
  # The version of OLM v1 on the cluster refuses bundles with webhooks or NetworkPolicies.
  bundle=$E2E_FOLDER/$version/olmv1/bundle
  plain+=("$bundle")
  "${release[@]}" bundle BUNDLE_DIR="$bundle" WEBHOOK=none NETWORK_POLICY=none
  BUNDLE_DIR="$bundle" PLATFORMS="$platform" hack/bundle-image.sh "$bundle-image"
  "$bin/image" push --tag "$E2E_IMAGES-olmv1-bundle:v$version" "$bundle-image"/* >>"$IMAGE_DIGESTS"
done

# catalog NAME VERSION BUNDLE...: builds and pushes the catalog NAME-catalog:vVERSION of bundles with the images NAME-bundle.
# A catalog of the previous version has no later one in its channels.
catalog() {
  local name=$1 version=$2 folder=$E2E_FOLDER/${1##*/}-catalog-$2
  shift 2
  rm -rf "$folder" "$folder-image"
  mkdir -p "$folder/private-cloud-operator"
  awk -v previous="$E2E_PREVIOUS" -v version="$version" '
    /^- name: / { omitted = version == previous && $3 !~ ("[.]v" previous "$") }
    !/^(- name:|  )/ { omitted = 0 }
    !omitted' catalog/private-cloud-operator/index.yaml >"$folder/private-cloud-operator/index.yaml"
  make --no-print-directory catalog USE_IMAGE_DIGESTS=true IMAGE_TAG_BASE="$name" CATALOG_DIR="$folder" BUNDLE_DIR="$*"
  "$bin/image" build --output "$folder-image" --base "$OPM_IMAGE" --entrypoint '["/bin/opm"]' \
    --cmd '["serve","/configs"]' --label operators.operatorframework.io.index.configs.v1=/configs \
    --file "$folder=/configs" >/dev/null
  "$bin/image" push --tag "$name-catalog:v$version" "$folder-image"
}
filter=()
if [ "${E2E:-}" = short ]; then
  filter=(-ginkgo.label-filter='!long')
else
  catalog "$E2E_IMAGES" "$E2E_PREVIOUS" "${bundles[0]}"
  catalog "$E2E_IMAGES" "$E2E_VERSION" "${bundles[@]}"
  catalog "$E2E_IMAGES-olmv1" "$E2E_VERSION" "${plain[@]}"
fi

go test -v -count=1 -timeout 60m ./test/e2e "${filter[@]}" "$@"
