#!/usr/bin/env bash
# hack/image-digests.sh FILE DIR REFERENCE: records the digests of the images in DIR, where make images and make bundle-image
# have built them, as REFERENCE:vVERSION@DIGEST, REFERENCE-bundle:vVERSION@DIGEST and so on in FILE. These are the digests
# that they get when they are pushed, so no registry is needed. FROM=registry records what the registry has instead.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

file=${1:?usage: hack/image-digests.sh FILE DIR REFERENCE} dir=${2:?} to=${3:?}
: "${VERSION:?run it through make image-digests}"

digest() {
  if [ "${FROM:-}" = registry ]; then
    "$bin/image" digest --registry "$to$1:v$VERSION"
  else
    "$bin/image" digest "$dir/private-cloud-operator$1"/*
  fi
}

fresh=$(mktemp)
trap 'rm -f "$fresh" "$fresh.log"' EXIT
[ ! -e "$file" ] || cp "$file" "$fresh"
for image in '' -metrics-api -mock-cloud -scorecard -bundle; do
  reference=$to$image:v$VERSION
  if ! found=$(digest "$image" 2>"$fresh.log"); then
    # The bundle is built after the digests of the other images are recorded.
    [ "$image" != -bundle ] || continue
    cat "$fresh.log" >&2
    die "no digest of $reference: run make images, or push the image and set FROM=registry"
  fi
  { awk -v reference="$reference@" 'index($0, reference) != 1' "$fresh"; echo "$reference@$found"; } >"$fresh.new"
  mv "$fresh.new" "$fresh"
done
{ grep '^#' "$fresh" || true; grep -v '^#' "$fresh" | LC_ALL=C sort; } >"$fresh.new"
mkdir -p "$(dirname "$file")"
mv "$fresh.new" "$file"
say "the digests of $VERSION are in $file"
