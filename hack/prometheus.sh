#!/usr/bin/env bash
# Makes sure that prometheus and promtool are in PATH, which the tests in test/alerts run. With CI=true, it installs Debian's package.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

command -v prometheus >/dev/null && command -v promtool >/dev/null ||
  install_packages " (it also starts the service; disable it with systemctl disable --now prometheus)" prometheus
