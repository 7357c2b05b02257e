#!/usr/bin/env bash
# hack/bundle.sh DIR: generates the OLM bundle of VERSION into DIR (with its Dockerfile beside it, as DIR.Dockerfile) and
# validates it; a warning is an error. The same inputs give the same bytes. make bundle sets the variables. WEBHOOK=none
# leaves the name check out, for an OLM v1 that refuses bundles with webhooks.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

target=${1:?usage: hack/bundle.sh DIR}
: "${VERSION:?run it through make bundle}" "${IMG:?}" "${MOCK_IMG:?}" "${SCORECARD_IMG:?}" "${CHANNELS:?}" "${DEFAULT_CHANNEL:?}"
mkdir -p "$(dirname "$target")"
target=$(cd "$(dirname "$target")" && pwd)/$(basename "$target")
registry=ghcr.io/privatecloud/private-cloud-operator
base=$root/config/manifests/bases/private-cloud-operator.clusterserviceversion.yaml
created=$(awk '$1 == "createdAt:" { print $2 }' "$base")

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unserved='' unchecked=''
if [ "${WEBHOOK:-}" = none ]; then
  unserved='/--webhook-cert-path=/d'
  unchecked='    - {op: remove, path: /spec/webhookdefinitions}'
fi
cd "$root"
"$bin/operator-sdk" generate kustomize manifests -q --interactive=false

# operator-sdk writes into the working folder, where it looks for PROJECT, and reads from pipes alone.
cp PROJECT "$scratch"
cd "$scratch"
"$bin/kustomize" build "$root/config/manifests" | sed -E \
  -e "s#$registry:v[^ ]*#$IMG#" \
  -e "s#$registry-mock-cloud:v[^ ]*#$MOCK_IMG#" \
  -e "s#$registry-scorecard:v[^ ]*#$SCORECARD_IMG#" \
  -e "s#^(    olm.skipRange: ).*#\\1'<$VERSION'#" -e "$unserved" |
  "$bin/operator-sdk" generate bundle -q --version "$VERSION" \
  --channels "$CHANNELS" --default-channel "$DEFAULT_CHANNEL" >generate.log 2>&1 ||
  { cat generate.log >&2; die "operator-sdk generate bundle: its input is what bin/kustomize build config/manifests prints"; }
"$bin/kustomize" build "$root/config/manifests/kept" -o bundle/manifests
# OLM makes one of its own, with the certificate.
rm bundle/manifests/private-cloud-operator-webhook-service_v1_service.yaml

# operator-sdk stamps the time of day, lists no images but those of RELATED_IMAGE_* variables, and forgets the mock cloud's
# ServiceAccount: OLM makes those alone that have permissions, if only none.
csv=bundle/manifests/private-cloud-operator.clusterserviceversion.yaml
mv "$csv" csv.yaml
cat >kustomization.yaml <<YAML
resources: [csv.yaml]
patches:
- target: {kind: ClusterServiceVersion}
  patch: |
    - {op: replace, path: /metadata/annotations/createdAt, value: $created}
    - {op: add, path: /spec/install/spec/clusterPermissions/-, value: {serviceAccountName: private-cloud-operator-mock-cloud, rules: []}}
    - {op: add, path: /spec/relatedImages, value: [{name: manager, image: "$IMG"}, {name: mock-cloud, image: "$MOCK_IMG"}]}
$unchecked
YAML
"$bin/kustomize" build . >"$csv"

"$bin/operator-sdk" bundle validate bundle --select-optional suite=operatorframework >validate.log 2>&1 ||
  { cat validate.log >&2; die "the bundle of $VERSION is not valid: $target was left as it is"; }
if grep -iE 'level=(warn|error)|^(WARN|ERRO)' validate.log >&2; then
  die "the bundle of $VERSION has warnings: $target was left as it is"
fi

rm -rf "$target"
mv bundle "$target"
sed "s# bundle/# $(basename "$target")/#" bundle.Dockerfile >"$target.Dockerfile"
say "the bundle of $VERSION is in $target"
