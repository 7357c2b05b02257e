#!/usr/bin/env bash
# hack/kind-load.sh CLUSTER: builds the images of VERSION for this machine's architecture and loads them into the nodes of the
# kind cluster CLUSTER, with the names that config/ and the chart use. make kind-load sets the variables.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

cluster=${1:?usage: hack/kind-load.sh CLUSTER}
: "${VERSION:?run it through make kind-load}" "${IMAGE_TAG_BASE:?}"
kind=${KIND:-kind}
command -v "$kind" >/dev/null || die "there is no $kind: install kind (https://kind.sigs.k8s.io), or set KIND to its path"
clusters=$("$kind" get clusters 2>/dev/null)
grep -qxF "$cluster" <<<"$clusters" ||
  die "there is no kind cluster $cluster: create it with kind create cluster --name $cluster, or set KIND_CLUSTER"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
platform=linux/$(go env GOARCH)
PLATFORMS=$platform "$root/hack/images.sh" "$scratch"
for image in '' -metrics-api -mock-cloud; do
  "$bin/image" archive --tag "$IMAGE_TAG_BASE$image:v$VERSION" --output "$scratch/image.tar" "$scratch/private-cloud-operator$image/${platform/\//-}"
  "$kind" load image-archive --name "$cluster" "$scratch/image.tar"
  say "loaded $IMAGE_TAG_BASE$image:v$VERSION into the kind cluster $cluster"
done
