#!/usr/bin/env bash
# hack/release-dry-run.sh DIR: builds the release of VERSION in DIR twice, checks what can be checked without a network, and
# compares both builds. REBUILD=1 compiles the second time without the build cache. make release-dry-run sets the variables.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

dir=${1:?usage: hack/release-dry-run.sh DIR}
scratch=$(mktemp -d)
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT

"$root/hack/release.sh" "$dir"
if [ "${REBUILD:-}" = 1 ]; then export GOCACHE=$scratch/cache; fi
"$root/hack/release.sh" "$scratch/again"
# Both names of the folder are in no file.
diff -r "$dir" "$scratch/again" || die "two builds of the same sources differ"

(cd "$dir/assets" && sha256sum --check --quiet SHA256SUMS)
"$bin/helm" lint --quiet "$dir"/assets/*.tgz
unpinned=$(grep -hE 'image: ghcr.io/privatecloud/' -r "$dir/bundle" "$dir"/assets/*.yaml | grep -v '@sha256:' || true)
[ -z "$unpinned" ] || die "the release refers to images without a digest:"$'\n'"$unpinned"
say "two builds gave the same bytes"
cat "$dir/assets/SHA256SUMS" "$dir/image-subjects.txt"
