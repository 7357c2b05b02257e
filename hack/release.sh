#!/usr/bin/env bash
# hack/release.sh DIR: builds all that a release of VERSION consists of and that needs no network. The same sources and the
# same Go version give the same bytes. make release sets the variables.
#
#   DIR/assets              what is attached to the release: SBOMs, chart, manifests, archives of the kubectl plugin with a
#                           manifest for krew, image-digests.txt, SHA256SUMS
#   DIR/images              the images as OCI layouts, also that of the bundle
#   DIR/bundle, DIR/catalog what refers to the images by their digests
#   DIR/image-subjects.txt  digest and repository of each image, for the provenance
#   DIR/notes.md            the section of the changelog
set -euo pipefail
. "$(dirname "$0")/lib.sh"

dir=${1:?usage: hack/release.sh DIR}
: "${VERSION:?run it through make release}" "${PLATFORMS:?}" "${IMAGE_TAG_BASE:?}"
cd "$root"
hack/version.sh check
rm -rf "$dir"
mkdir -p "$dir/assets"
dir=$(cd "$dir" && pwd)
digests=$dir/assets/image-digests.txt

build() {
  "${MAKE:-make}" --no-print-directory VERSION="$VERSION" PLATFORMS="$PLATFORMS" IMAGE_TAG_BASE="$IMAGE_TAG_BASE" USE_IMAGE_DIGESTS=true \
    IMAGES_DIR="$dir/images" IMAGE_DIGESTS="$digests" BUNDLE_DIR="$dir/bundle" CATALOG_DIR="$dir/catalog" "$@"
}

build images image-digests
build bundle bundle-image image-digests
# Bundles of older versions do not change.
cp -r catalog "$dir/catalog"
build catalog
mv "$dir"/images/*.spdx.json "$dir/assets"

# with_digests: replaces the tags of the images of this version.
with_digests() {
  sed -E -f <(sed -nE 's#^([^:]+:v[^@]+)(@.*)#s|\1$|\1\2|#p' "$digests")
}
for overlay in default overlays/production overlays/development; do
  "$bin/kustomize" build "config/$overlay" | with_digests >"$dir/assets/install-${overlay#overlays/}.yaml"
done

# helm package writes the present time into the archive. This has what it writes otherwise: a folder with the name of the chart.
created=$(sed -n 's/^ *createdAt: "\(.*\)"/\1/p' config/manifests/bases/*.clusterserviceversion.yaml)
tar --sort=name --mtime="$created" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --format=ustar -C charts -cf - private-cloud-operator |
  gzip -9n >"$dir/assets/private-cloud-operator-$VERSION.tgz"

hack/plugin.sh "$dir/assets"

sed -nE 's#^([^:]+):v[^@]+@sha256:(.*)#\2  \1#p' "$digests" >"$dir/image-subjects.txt"
hack/version.sh notes "$VERSION" >"$dir/notes.md"
(cd "$dir/assets" && sha256sum -- * | LC_ALL=C sort -k2 >"$dir/SHA256SUMS" && mv "$dir/SHA256SUMS" .)
say "the release of $VERSION is in $dir"
