#!/usr/bin/env bash
# Builds the images that the node, OLM and operator-sdk pull and pushes them to the registry of the cluster. They are kept
# in the cache; their paths contain a hash of the inputs.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
export SSL_CERT_FILE=$state/ca-bundle.crt

tool() { readlink -f "$state/bin/$1"; }
# image 'REPOSITORY:TAG...' FLAG...: builds and pushes an image, and sets built to its folder.
image() {
  local references=$1 reference tags=()
  shift
  built=$cache/images/${references%%:*}/$(printf '%s\n' "$(tool image)" "$@" | cksum | tr ' ' -)
  if [ ! -d "$built" ]; then
    say "building the image ${references%% *}"
    mkdir -p "${built%/*}"
    "$state/bin/image" build --output "$built" "$@" >/dev/null
  fi
  for reference in $references; do tags+=(--tag "$registry/$reference"); done
  "$state/bin/image" push "${tags[@]}" "$built" >/dev/null
}

# A copy in a folder named by the checksum, because the hash of an image is that of the paths of its files.
busybox=$cache/tools/busybox/$(cksum <"$(command -v busybox)" | tr ' ' -)/busybox
[ -x "$busybox" ] || { mkdir -p "${busybox%/*}" && cp "$(command -v busybox)" "$busybox"; }

image pause:cluster --file "$busybox=/bin/busybox" --user 65535:65535 --entrypoint '["/bin/busybox","sleep","infinity"]'

applets=()
for applet in $("$busybox" --list); do [ "$applet" = busybox ] || applets+=(--link "busybox=/bin/$applet"); done
# The registry pods of operator-sdk use the last one to unpack bundles.
image 'library/busybox:latest library/busybox:1.36 ubi9/ubi:9.7' --file "$busybox=/bin/busybox" "${applets[@]}" --dir 1777=/tmp \
  --text $'root:x:0:0:root:/root:/bin/sh\nnonroot:x:65532:65532::/home/nonroot:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n=/etc/passwd' \
  --text $'root:x:0:\nnonroot:x:65532:\nnobody:x:65534:\n=/etc/group' --text $'hosts: files dns\n=/etc/nsswitch.conf' \
  --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --cmd '["sh"]'
shell=$built

image coredns/coredns:cluster --file "$(tool coredns)=/coredns" --user 65532:65532 --entrypoint '["/coredns"]'

image "operator-framework/olm:$(pinned github.com/operator-framework/operator-lifecycle-manager)" --base "$shell" --user 1001 \
  --file "$(tool olm)=/bin/olm" --file "$(tool catalog)=/bin/catalog" --file "$(tool package-server)=/bin/package-server" \
  --file "$(tool copy-content)=/bin/copy-content" --file "$(tool cpb)=/bin/cpb" --entrypoint '["/bin/olm"]'
image "operator-framework/opm:$(pinned github.com/operator-framework/operator-registry) operator-framework/opm:latest" \
  --base "$shell" --user 1001 --file "$(tool opm)=/bin/opm" --file "$(tool grpc-health-probe)=/bin/grpc_health_probe" \
  --entrypoint '["/bin/opm"]'

# They unpack images in /tmp and use /var/tmp, too.
for controller in catalogd operator-controller; do
  image "operator-framework/$controller:$(pinned github.com/operator-framework/operator-controller)" --base "$shell" \
    --user 65532:65532 --dir 1777=/var/tmp --file "$(tool $controller)=/$controller" --entrypoint "[\"/$controller\"]"
done

sdk=$(required operator-sdk github.com/operator-framework/operator-sdk)
image "operator-framework/scorecard-test:$sdk" --base "$shell" --user 1001 --workdir /opt/scorecard-test \
  --dir 755=/opt/scorecard-test --env HOME=/opt/scorecard-test \
  --file "$(tool scorecard-test)=/usr/local/bin/scorecard-test" --entrypoint '["/usr/local/bin/scorecard-test"]'
# scorecard stores and unpacks bundles with tar and sh only.
for helper in scorecard-storage scorecard-untar; do
  image "operator-framework/$helper:$sdk operator-framework/$helper:latest" --base "$shell" --user 1001 \
    --workdir "/opt/$helper" --dir "755=/opt/$helper" --env "HOME=/opt/$helper"
done
