#!/usr/bin/env bash
# hack/push.sh DIR REFERENCE: pushes the images that make images and make bundle-image have built in DIR to REFERENCE,
# REFERENCE-bundle and so on, with the tag VERSION. The platforms of an image become one index. SSL_CERT_FILE has the CAs to trust.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

dir=${1:?usage: hack/push.sh DIR REFERENCE} to=${2:?usage: hack/push.sh DIR REFERENCE}
: "${VERSION:?run it through make images-push}"
for image in '' -metrics-api -mock-cloud -scorecard -bundle; do
  [ -d "$dir/private-cloud-operator$image" ] || die "$dir has no private-cloud-operator$image: run make images bundle-image"
  "$bin/image" push --tag "$to$image:v$VERSION" "$dir/private-cloud-operator$image"/*
done
