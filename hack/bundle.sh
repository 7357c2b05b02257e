#!/usr/bin/env bash
# hack/bundle.sh DIR: generates the OLM bundle of VERSION in DIR, and DIR.Dockerfile, and validates it; a warning is an
# error. The same inputs give the same bytes. Images are referred to by tag and digest if IMAGE_DIGESTS has their digests.
# make bundle sets the variables. WEBHOOK=none omits the webhooks, and NETWORK_POLICY=none the NetworkPolicies, for an
# OLM that rejects bundles with them.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

target=${1:?usage: hack/bundle.sh DIR}
: "${VERSION:?run it through make bundle}" "${IMG:?}" "${METRICS_API_IMG:?}" "${MOCK_IMG:?}" "${SCORECARD_IMG:?}"
: "${IMAGE_DIGESTS:?}" "${CHANNELS:?}" "${DEFAULT_CHANNEL:?}"
mkdir -p "$(dirname "$target")"
target=$(cd "$(dirname "$target")" && pwd)/$(basename "$target")
registry=ghcr.io/privatecloud/private-cloud-operator
base=$root/config/manifests/bases/private-cloud-operator.clusterserviceversion.yaml
created=$(awk '$1 == "createdAt:" { print $2 }' "$base")

manager=$(by_digest "$IMG")
metrics_api=$(by_digest "$METRICS_API_IMG")
mock=$(by_digest "$MOCK_IMG")
scorecard=$(by_digest "$SCORECARD_IMG")

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unserved='' unchecked=''
if [ "${WEBHOOK:-}" = none ]; then
  unserved='/- --(webhook-cert-path=|cloud-webhook)/d'
  unchecked='    - {op: remove, path: /spec/webhookdefinitions}'
fi
cd "$root"
"$bin/operator-sdk" generate kustomize manifests -q --interactive=false

# operator-sdk writes to the working folder, which must have PROJECT, and reads its input from a pipe only.
cp PROJECT "$scratch"
cd "$scratch"
"$bin/kustomize" build "$root/config/manifests" | sed -E \
  -e "s#$registry:v[^ ]*#$manager#" \
  -e "s#$registry-mock-cloud:v[^ ]*#$mock#" \
  -e "s#$registry-scorecard:v[^ ]*#$scorecard#" \
  -e "s#^(    olm.skipRange: ).*#\\1'<$VERSION'#" -e "$unserved" |
  "$bin/operator-sdk" generate bundle -q --version "$VERSION" \
  --channels "$CHANNELS" --default-channel "$DEFAULT_CHANNEL" >generate.log 2>&1 ||
  { cat generate.log >&2; die "operator-sdk generate bundle: its input is the output of bin/kustomize build config/manifests"; }
"$bin/kustomize" build "$root/config/manifests/kept" -o bundle/manifests
# OLM creates this Service itself, with the certificate.
rm bundle/manifests/private-cloud-operator-webhook-service_v1_service.yaml
if [ "${NETWORK_POLICY:-}" = none ]; then
  rm bundle/manifests/*_networkpolicy.yaml
elif [ "${WEBHOOK:-}" = none ]; then
  rm bundle/manifests/private-cloud-operator-webhook_*_networkpolicy.yaml
fi

# operator-sdk sets createdAt to the present time, lists only the images of RELATED_IMAGE_* variables, and omits the
# ServiceAccount of the mock cloud: OLM creates only those that have a list of permissions, which may be empty.
csv=bundle/manifests/private-cloud-operator.clusterserviceversion.yaml
mv "$csv" csv.yaml
cat >kustomization.yaml <<YAML
resources: [csv.yaml]
patches:
- target: {kind: ClusterServiceVersion}
  patch: |
    - {op: replace, path: /metadata/annotations/createdAt, value: $created}
    - {op: add, path: /spec/install/spec/clusterPermissions/-, value: {serviceAccountName: private-cloud-operator-mock-cloud, rules: []}}
    - {op: add, path: /spec/relatedImages, value: [
        {name: manager, image: "$manager"}, {name: metrics-api, image: "$metrics_api"},
        {name: mock-cloud, image: "$mock"}, {name: scorecard, image: "$scorecard"}]}
$unchecked
YAML
"$bin/kustomize" build . >"$csv"

"$bin/operator-sdk" bundle validate bundle --select-optional suite=operatorframework >validate.log 2>&1 ||
  { cat validate.log >&2; die "the bundle of $VERSION is not valid: $target is unchanged"; }
if grep -iE 'level=(warn|error)|^(WARN|ERRO)' validate.log >&2; then
  die "the bundle of $VERSION has warnings: $target is unchanged"
fi

rm -rf "$target"
mv bundle "$target"
sed "s# bundle/# $(basename "$target")/#" bundle.Dockerfile >"$target.Dockerfile"
say "the bundle of $VERSION is in $target"
