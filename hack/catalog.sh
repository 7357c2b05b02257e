#!/usr/bin/env bash
# hack/catalog.sh DIR BUNDLE...: renders bundles, which are folders, into the file-based catalog DIR and validates it. A new
# catalog gets its package and channels from catalog/. BUNDLE_REPOSITORY is the repository of the bundle images, which
# have their version as tag; they are referred to by digest if IMAGE_DIGESTS has it, and by tag otherwise.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

dir=${1:?usage: hack/catalog.sh DIR BUNDLE...}/private-cloud-operator
shift
: "${BUNDLE_REPOSITORY:?run it through make catalog}" "${IMAGE_DIGESTS:?}"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$dir"
[ -e "$dir/index.yaml" ] || cp "$root/catalog/private-cloud-operator/index.yaml" "$dir"
for bundle in "$@"; do
  tag=$BUNDLE_REPOSITORY:v$(sed -n 's/^  version: //p' "$bundle/manifests/"*.clusterserviceversion.yaml)
  image=$(by_digest "$tag")
  # OLM v1 does not pull an image by tag and digest.
  [ "$image" = "$tag" ] || image=$BUNDLE_REPOSITORY@${image#*@}
  # opm reads a registry configuration below HOME.
  HOME=$scratch "$bin/opm" render "$bundle" --migrate -o yaml --alpha-image-ref-template "$image" \
    >"$scratch/bundle.yaml" 2>"$scratch/log" || { cat "$scratch/log" >&2; die "opm render $bundle"; }
  version=$(awk '$1 == "name:" { sub(/^private-cloud-operator\./, "", $2); print $2; exit }' "$scratch/bundle.yaml")
  cp "$scratch/bundle.yaml" "$dir/$version.yaml"
done
HOME=$scratch "$bin/opm" validate "$dir/.." >"$scratch/log" 2>&1 ||
  { cat "$scratch/log" >&2; die "opm validate: each bundle of $dir must be in a channel of index.yaml, and each entry must have a bundle"; }
say "the catalog in $(dirname "$dir") is valid"
