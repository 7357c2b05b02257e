#!/usr/bin/env bash
# hack/bundle-image.sh DIR: builds the image of the bundle BUNDLE_DIR for each of PLATFORMS in DIR. The contents are the same
# for every platform; the labels are those of the Dockerfile that operator-sdk has generated.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

target=${1:?usage: hack/bundle-image.sh DIR}
: "${PLATFORMS:?run it through make images}" "${BUNDLE_DIR:?}"
labels=()
while read -r label; do labels+=(--label "$label"); done < <(sed -n 's/^LABEL //p' "$BUNDLE_DIR.Dockerfile")
for platform in ${PLATFORMS//,/ }; do
  "$bin/image" build --output "$target/${platform/\//-}" --platform "$platform" "${labels[@]}" \
    --file "$BUNDLE_DIR/manifests=/manifests" --file "$BUNDLE_DIR/metadata=/metadata" --file "$BUNDLE_DIR/tests=/tests" >/dev/null
done
