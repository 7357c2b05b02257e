#!/usr/bin/env bash
# hack/tool.sh NAME [DIR]: links the tool NAME, as pinned in hack/tools, into DIR (default bin/). Builds it into the cache of
# all clones unless the cache has this version, built by this Go version with the same flags. Prints nothing if nothing is
# built. PROGRESS is a prefix of the messages.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

name=${1:?usage: hack/tool.sh NAME [DIR]}
dir=${2:-$bin}
module=$name tags='' ldflags='-s -w' cgo=0 took='5 s'

# standalone PATH PACKAGE: the module PATH is built in its own folder with its own go.mod, because it cannot be built as a
# dependency.
standalone() { module='' path=$1 package=$2; }

case $name in
  controller-gen)
    path=sigs.k8s.io/controller-tools package=$path/cmd/controller-gen took='15 s' ;;
  crd-ref-docs)
    path=github.com/elastic/crd-ref-docs package=$path took='15 s' ;;
  actionlint)
    path=github.com/rhysd/actionlint package=$path/cmd/actionlint ;;
  kustomize)
    path=sigs.k8s.io/kustomize/kustomize/v5 package=$path took='10 s' ;;
  golangci-lint)
    path=github.com/golangci/golangci-lint/v2 package=$path/cmd/golangci-lint took='a minute' ;;
  govulncheck)
    path=golang.org/x/vuln package=$path/cmd/govulncheck took='15 s' ;;
  indexdb)
    standalone golang.org/x/vulndb ./cmd/indexdb
    took='45 s' ;;
  setup-envtest)
    path=sigs.k8s.io/controller-runtime/tools/setup-envtest package=$path ;;
  operator-sdk)
    path=github.com/operator-framework/operator-sdk package=$path/cmd/operator-sdk took='2 minutes'
    tags=containers_image_openpgp ;;
  scorecard-test)
    module=operator-sdk path=github.com/operator-framework/operator-sdk package=$path/images/$name took='30 s'
    tags=containers_image_openpgp ;;
  etcd)
    path=go.etcd.io/etcd/server/v3 package=$path took='20 s' ;;
  kube-apiserver)
    module=kube path=k8s.io/kubernetes package=$path/cmd/$name took='3 minutes' ;;
  kubectl | kubelet | kube-controller-manager | kube-scheduler | kube-proxy)
    module=kube path=k8s.io/kubernetes package=$path/cmd/$name took='30 s' ;;
  containerd | containerd-shim-runc-v2)
    standalone github.com/containerd/containerd/v2 "./cmd/$name"
    tags=no_btrfs,no_devmapper,no_zfs took='40 s' ;;
  runc)
    standalone github.com/opencontainers/runc .
    cgo=1 tags=seccomp,netgo,osusergo ldflags+=' -linkmode external -extldflags -static' took='10 s' ;;
  bridge | loopback)
    standalone github.com/containernetworking/plugins "./plugins/main/$name" ;;
  host-local)
    standalone github.com/containernetworking/plugins "./plugins/ipam/$name" ;;
  portmap)
    standalone github.com/containernetworking/plugins "./plugins/meta/$name" ;;
  coredns)
    standalone github.com/coredns/coredns .
    took='2 minutes' ;;
  helm)
    standalone helm.sh/helm/v3 ./cmd/helm
    took='30 s' ;;
  olm | catalog | package-server | copy-content)
    standalone github.com/operator-framework/operator-lifecycle-manager "./cmd/$name"
    tags=json1 took='a minute' ;;
  cpb)
    standalone github.com/operator-framework/operator-lifecycle-manager ./util/cpb ;;
  opm)
    standalone github.com/operator-framework/operator-registry ./cmd/opm
    tags=json1,containers_image_openpgp took='40 s' ;;
  tofu)
    standalone github.com/opentofu/opentofu ./cmd/tofu
    took='4 minutes' ;;
  terraform-provider-restapi)
    standalone github.com/Mastercard/terraform-provider-restapi .
    took='40 s' ;;
  grpc-health-probe)
    standalone github.com/operator-framework/operator-registry "github.com/grpc-ecosystem/$name" ;;
  catalogd | operator-controller)
    standalone github.com/operator-framework/operator-controller "./cmd/$name"
    tags=containers_image_openpgp took='2 minutes' ;;
  image)
    path=github.com/privatecloud/operator/hack/image package=. took='15 s' ;;
  *) die "hack/tools does not pin a tool $name" ;;
esac

# The inputs of the build, besides the compiler.
case $module in
  '')
    version=$(pinned "$path") pin=$(awk -v path="$path" '$1 == path' "$root/hack/tools/modules.sum") ;;
  image)
    source=$root/hack/image version=own
    pin=$(cd "$source" && find . -type f ! -name '*_test.go' | LC_ALL=C sort | xargs cksum) ;;
  *)
    source=$root/hack/tools/$module version=$(required "$module" "$path")
    pin=$(cat "$source/"go.{mod,sum} | cksum) ;;
esac
[ -n "$version" ] || die "hack/tools does not pin $path"

# The versions that a release build sets: kubectl and envtest read that of the API server, operator-sdk writes its own to the
# files that it generates, and helm template assumes that of Kubernetes, here the one of the tests.
case $path in
  k8s.io/kubernetes)
    minor=${version#v1.} v=k8s.io/component-base/version
    ldflags+=" -X $v.gitVersion=$version -X $v.gitMajor=1 -X $v.gitMinor=${minor%%.*}" ;;
  github.com/operator-framework/operator-sdk)
    v=$path/internal/version
    ldflags+=" -X $v.Version=$version -X $v.GitVersion=$version -X $v.ImageVersion=$version"
    ldflags+=" -X $v.GitCommit=module -X $v.KubernetesVersion=$(required operator-sdk k8s.io/api | sed 's/^v0/v1/')" ;;
  github.com/operator-framework/operator-lifecycle-manager)
    ldflags+=" -X $path/pkg/version.OLMVersion=$version" ;;
  github.com/containerd/containerd/v2)
    ldflags+=" -X $path/version.Version=$version" ;;
  helm.sh/helm/v3)
    minor=$(required kube k8s.io/kubernetes | cut -d. -f2) v=$path/pkg/chartutil
    ldflags+=" -X $path/internal/version.version=$version -X $v.k8sVersionMajor=1 -X $v.k8sVersionMinor=$minor" ;;
  github.com/operator-framework/operator-registry)
    ldflags+=" -X $path/cmd/opm/version.opmVersion=$version" ;;
esac

# Tools are built by the Go that is installed, not by that of the line toolchain in go.mod: they are no part of a release, and a
# new patch release of Go would build all of them anew. Go downloads a newer version if a tool needs one. The version is part of
# the key, because golangci-lint rejects code for a newer Go version than its own.
export GOTOOLCHAIN=auto
recipe=$(printf '%s\n' "$pin" "$package" "$tags" "$ldflags" "$cgo" | cksum | cut -d' ' -f1)
built=$cache/tools/$name/$version-$(env -C / go env GOVERSION GOOS GOARCH | paste -sd- -)-$recipe/$name

build() {
  local start=$SECONDS
  say "${PROGRESS:-}building $name $version from source, about $took on 2 cores with nothing cached"
  [ -n "$module" ] || source=$(fetched "$path")
  with_progress "building $name" env -C "$source" CGO_ENABLED="$cgo" GOWORK=off GOFLAGS= \
    go build -mod=readonly -trimpath -buildvcs=false -tags "$tags" -ldflags "$ldflags" -o "$built.new" "$package"
  mv "$built.new" "$built"
  say "${PROGRESS:-}built $name $version in $((SECONDS - start)) s"
}

if [ ! -x "$built" ]; then
  mkdir -p "${built%/*}"
  lock "$cache/tools/$name/.lock"
  trap 'rm -rf "$cache/tools/$name/.lock" "$built.new"' EXIT
  [ -x "$built" ] || build
fi
if [ "$(readlink "$dir/$name")" != "$built" ]; then
  mkdir -p "$dir"
  ln -s "$built" "$dir/.$name.$$"
  mv -f "$dir/.$name.$$" "$dir/$name"
fi
