#!/usr/bin/env bash
# hack/version.sh set VERSION [DATE]: makes VERSION that of the Makefile, of the image names of config/ and of the chart, sets
# createdAt of the bundle to DATE (default today), and moves the section Unreleased of CHANGELOG.md to VERSION.
# hack/version.sh check [VERSION]: checks that they agree; with VERSION, also that CHANGELOG.md has a section of it with a date.
# hack/version.sh notes VERSION: prints that section, or Unreleased if there is none.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root"

base=config/manifests/bases/private-cloud-operator.clusterserviceversion.yaml
chart=charts/private-cloud-operator/Chart.yaml
images=(config/components/metrics-api/metrics_api.yaml config/components/mock-cloud/mock_cloud.yaml
  config/scorecard/patches/custom.config.yaml config/manager/manager.yaml "$base")
usage="usage: hack/version.sh set VERSION [YYYY-MM-DD] | check [VERSION] | notes VERSION"

semantic() { [[ $1 =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || die "the version $1 is not X.Y.Z"; }

# section NAME: prints the section [NAME] of the changelog, without its heading.
section() {
  awk -v heading="## [$1]" 'index($0, "## [") == 1 { within = index($0, heading) == 1; next } within' CHANGELOG.md
}

set_version() {
  local version=$1 date=${2:-$(date -u +%F)}
  semantic "$version"
  [[ $date =~ ^[0-9]{4}-[0-9]{2}-[0-9]{2}$ ]] || die "the date $date is not YYYY-MM-DD"
  ! grep -qF "## [$version]" CHANGELOG.md || die "CHANGELOG.md has a section of $version already"
  [ -n "$(section Unreleased | tr -d '[:space:]')" ] || die "CHANGELOG.md has nothing under Unreleased: describe the release there"
  sed -i -E "s/^(VERSION \?= ).*/\1$version/" Makefile
  sed -i -E "s#(ghcr.io/privatecloud/private-cloud-operator[a-z-]*:v)[0-9.]+#\1$version#" "${images[@]}"
  sed -i -E "s/(createdAt: \")[^\"]*/\1${date}T00:00:00Z/" "$base"
  sed -i -E "s/^((version|appVersion): ).*/\1$version/" "$chart"
  sed -i "s/^## \[Unreleased\]$/## [Unreleased]\n\n## [$version] - $date/" CHANGELOG.md
  say "the version is $version: run make generate manifests chart, and go on as CONTRIBUTING.md describes"
}

check() {
  local version wrong
  version=$(sed -n 's/^VERSION ?= //p' Makefile)
  [ -z "${1:-}" ] || [ "$1" = "$version" ] || die "the version of the Makefile is $version, not $1: run hack/version.sh set $1"
  wrong=$({
    grep -HnoE 'ghcr.io/privatecloud/private-cloud-operator[a-z-]*:v[0-9.]+' "${images[@]}" | grep -vE ":v$version$"
    grep -HnE '^(version|appVersion): ' "$chart" | grep -vE ": $version$"
    grep -Hn '^  version: ' bundle/manifests/*.clusterserviceversion.yaml | grep -vE ": $version$"
    [ -f "catalog/private-cloud-operator/v$version.yaml" ] || echo "catalog/private-cloud-operator has no v$version.yaml"
  } || true)
  [ -z "$wrong" ] || die "these do not have the version $version of the Makefile: run hack/version.sh set VERSION, make bundle catalog chart"$'\n'"$wrong"
  [ -z "${1:-}" ] || grep -qE "^## \[${1//./\\.}\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md ||
    die "CHANGELOG.md has no section of $1 with a date: run hack/version.sh set $1"
}

case ${1:-} in
  set) set_version "${2:?$usage}" "${3:-}" ;;
  check) check "${2:-}" ;;
  notes)
    grep -qF "## [${2:?$usage}]" CHANGELOG.md && section "$2" || section Unreleased ;;
  *) die "$usage" ;;
esac
