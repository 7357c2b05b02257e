#!/usr/bin/env bash
# Makes sure that prometheus and promtool are in PATH, which the tests in test/alerts run. With CI=true, it installs Debian's package.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

if command -v prometheus >/dev/null && command -v promtool >/dev/null; then exit 0; fi
install=(apt-get install --yes --no-install-recommends prometheus)
[ "${CI:-}" = true ] || die "prometheus and promtool are missing. On Debian or Ubuntu: ${install[*]} (it also starts the service; disable it with systemctl disable --now prometheus)"
say "installing the package prometheus"
{ apt-get update -q && DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 "${install[@]}" -q; } >/dev/null || die "${install[*]} failed; run it by hand"
