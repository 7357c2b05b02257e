#!/usr/bin/env bash
# hack/plugin.sh DIR: builds the archives of the kubectl plugin of VERSION for PLUGIN_PLATFORMS into DIR, and the manifest by
# which krew installs them, with their checksums. The same sources and the same Go version give the same bytes.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

dir=${1:?usage: hack/plugin.sh DIR}
: "${VERSION:?run it through make release}"
platforms=${PLUGIN_PLATFORMS:-linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64}
source=https://github.com/privatecloud/operator
cd "$root"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
created=$(sed -n 's/^ *createdAt: "\(.*\)"/\1/p' config/manifests/bases/*.clusterserviceversion.yaml)
manifest=$dir/kubectl-privatecloud-krew.yaml

cat >"$manifest" <<YAML
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: privatecloud
spec:
  version: v$VERSION
  homepage: $source/blob/main/docs/kubectl-privatecloud/README.md
  shortDescription: Plan and explain VMs of private clouds
  description: |
    For users and administrators of the private-cloud operator: what a change
    would do in the cloud, why an object is not ready, which servers can be
    imported or are orphans, the brake of a Cloud, CPU use, and a report for
    support.
  caveats: |
    Each command works with the rights that its help names.
  platforms:
YAML

for platform in ${platforms//,/ }; do
  os=${platform%/*} arch=${platform#*/}
  binary=kubectl-privatecloud
  files=(LICENSE)
  rm -rf "$scratch/archive"
  mkdir "$scratch/archive"
  if [ "$os" = windows ]; then
    binary+=.exe
  else
    install -m 0755 cmd/kubectl-privatecloud/kubectl_complete-privatecloud "$scratch/archive/"
    files+=(kubectl_complete-privatecloud)
  fi
  CGO_ENABLED=0 GOOS=$os GOARCH=$arch \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=v$VERSION" -o "$scratch/archive/$binary" ./cmd/kubectl-privatecloud
  install -m 0644 LICENSE "$scratch/archive/"
  archive=kubectl-privatecloud_${VERSION}_${os}_$arch.tar.gz
  tar --sort=name --mtime="$created" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --format=ustar -C "$scratch/archive" -cf - "$binary" "${files[@]}" |
    gzip -9n >"$dir/$archive"
  cat >>"$manifest" <<YAML
  - selector:
      matchLabels:
        os: $os
        arch: $arch
    uri: $source/releases/download/v$VERSION/$archive
    sha256: $(sha256sum "$dir/$archive" | cut -d' ' -f1)
    bin: $binary
YAML
done
