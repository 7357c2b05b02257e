#!/usr/bin/env bash
# Runs a command in the module of this folder with the environment that it reads: MOCKCLOUD, the binary of the mock cloud, and
# CHROMIUM, a browser. With CI=true, it installs Debian's Chromium if there is none.
set -euo pipefail
. "$(dirname "$0")/../../hack/lib.sh"

find_chromium() {
  if [ -n "${CHROMIUM:-}" ]; then
    command -v "$CHROMIUM" || die "CHROMIUM is $CHROMIUM, which cannot be run"
  else
    command -v chromium || command -v chromium-browser || command -v google-chrome
  fi
}

if ! chromium=$(find_chromium); then
  [ -z "${CHROMIUM:-}" ] || exit 1
  install_packages "; or set CHROMIUM to the path of a Chromium or Chrome" chromium fonts-dejavu-core
  chromium=$(find_chromium)
fi
export CHROMIUM=$chromium MOCKCLOUD=$bin/mockcloud
cd "$root/test/page"
exec "$@"
