#!/usr/bin/env bash
# hack/tool.sh NAME [DIR]: puts the tool NAME, as pinned in hack/tools, into DIR (bin/ unless given). Silent when the one
# that is there has the pinned version and was built with this Go.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

name=${1:?usage: hack/tool.sh NAME [DIR]}
dir=${2:-$bin}
module=$name tags='' ldflags='-s -w' took='5 s'

case $name in
  controller-gen)
    path=sigs.k8s.io/controller-tools package=$path/cmd/controller-gen took='15 s' ;;
  kustomize)
    path=sigs.k8s.io/kustomize/kustomize/v5 package=$path took='10 s' ;;
  golangci-lint)
    path=github.com/golangci/golangci-lint/v2 package=$path/cmd/golangci-lint took='a minute' ;;
  setup-envtest)
    path=sigs.k8s.io/controller-runtime/tools/setup-envtest package=$path ;;
  operator-sdk)
    path=github.com/operator-framework/operator-sdk package=$path/cmd/operator-sdk took='2 minutes'
    tags=containers_image_openpgp ;;
  opm)
    path=github.com/operator-framework/operator-registry package=$path/cmd/opm took='a minute'
    tags=json1,containers_image_openpgp ;;
  etcd)
    path=go.etcd.io/etcd/server/v3 package=$path took='20 s' ;;
  kube-apiserver)
    module=kube path=k8s.io/kubernetes package=$path/cmd/kube-apiserver took='3 minutes' ;;
  kubectl)
    module=kube path=k8s.io/kubernetes package=$path/cmd/kubectl took='30 s' ;;
  *) die "no tool of the name $name is pinned in hack/tools" ;;
esac

version=$(required "$module" "$path")
[ -n "$version" ] || die "hack/tools/$module/go.mod requires no $path"

# What a release build stamps in, and what its users read back: kubectl and envtest ask the API server for its version,
# operator-sdk writes its own into what it scaffolds.
case $module in
  kube)
    minor=${version#v1.} v=k8s.io/component-base/version
    ldflags+=" -X $v.gitVersion=$version -X $v.gitMajor=1 -X $v.gitMinor=${minor%%.*}" ;;
  operator-sdk)
    v=$path/internal/version
    ldflags+=" -X $v.Version=$version -X $v.GitVersion=$version -X $v.ImageVersion=$version"
    ldflags+=" -X $v.GitCommit=module -X $v.KubernetesVersion=$(required operator-sdk k8s.io/api | sed 's/^v0/v1/')" ;;
  opm)
    ldflags+=" -X $path/cmd/opm/version.opmVersion=$version" ;;
esac

stamp=$dir/.stamp/$name
# The compiler is part of the stamp: golangci-lint refuses code of a newer Go than the one that built it.
wanted="$name $version $(go env GOVERSION GOOS GOARCH | tr '\n' ' ')$(cat "$root/hack/tools/$module/"go.{mod,sum} | cksum)"
current() { [ -x "$dir/$name" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; }
if current; then exit 0; fi

mkdir -p "$dir/.stamp"
lock "$dir/.stamp/$name.lock"
trap 'rm -rf "$dir/.stamp/$name.lock" "$dir/.$name.new"' EXIT
if current; then exit 0; fi

say "building $name $version from source, about $took on 2 cores with nothing cached"
start=$SECONDS
cd "$root/hack/tools/$module"
patiently "building $name" env CGO_ENABLED=0 GOWORK=off GOFLAGS= \
  go build -mod=readonly -trimpath -tags "$tags" -ldflags "$ldflags" -o "$dir/.$name.new" "$package"
mv "$dir/.$name.new" "$dir/$name"
printf '%s\n' "$wanted" >"$stamp"
say "built $name $version in $((SECONDS - start)) s"
