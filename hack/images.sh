#!/usr/bin/env bash
# hack/images.sh DIR: builds the images of VERSION without a container engine, as OCI layouts DIR/NAME/OS-ARCH. Each image
# has one static binary, whose SBOM is DIR/NAME-OS-ARCH.spdx.json. The same sources give the same digests. make images sets the variables.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

target=${1:?usage: hack/images.sh DIR}
: "${VERSION:?run it through make images}" "${PLATFORMS:?}"
source=https://github.com/privatecloud/operator
# The date of the release, so that SBOMs do not depend on the time of the build.
created=$(sed -n 's/^ *createdAt: "\(.*\)"/\1/p' "$root"/config/manifests/bases/*.clusterserviceversion.yaml)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$root"

# binary NAME PACKAGE COMMAND: builds the image NAME of one command, for each platform.
binary() {
  local name=$1 package=$2 command=$3 platform
  for platform in ${PLATFORMS//,/ }; do
    CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/} \
      go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=v$VERSION" -o "$scratch/$command" "$package"
    "$bin/image" build --output "$target/$name/${platform/\//-}" --platform "$platform" --file "$scratch/$command=/$command" \
      --user 65532:65532 --entrypoint "[\"/$command\"]" --label "org.opencontainers.image.title=$name" \
      --label "org.opencontainers.image.source=$source" --label org.opencontainers.image.licenses=Apache-2.0 >/dev/null
    "$bin/image" sbom --name "$name" --version "$VERSION" --created "$created" "$scratch/$command" >"$target/$name-${platform/\//-}.spdx.json"
  done
}

say "building the images of $VERSION for $PLATFORMS in $target: about a minute per platform with nothing cached"
start=$SECONDS
binary private-cloud-operator ./cmd manager
binary private-cloud-operator-metrics-api ./cmd/metrics-api metrics-api
binary private-cloud-operator-mock-cloud ./mockcloud/cmd/mockcloud mockcloud
binary private-cloud-operator-scorecard ./test/scorecard scorecard
say "built the images of $VERSION in $((SECONDS - start)) s"
