#!/usr/bin/env bash
# Installs an OpenStack into the folder OPENSTACK_DIR (default: openstack in the cache of all clones), starts it, runs a command
# with the environment that test/openstack reads, and stops it again:
#
#   OPENSTACK_DIR=/var/tmp/openstack hack/openstack/run.sh go test ./test/openstack
#
# Without a command, it only installs.
#
# It needs root on Debian 12, whose packages of OpenStack Zed it uses, 3 GB of disk and 2 GB of memory. All is in a chroot below the folder;
# nothing is installed on the host. The services have a PID namespace of their own, so that none of them outlives this script,
# however it ends. They listen on the loopback interface at 14 ports from OPENSTACK_PORT (default 23500) on, which are below those that
# Linux gives to outgoing connections (from 32768 on). The port may be another one at each start.
#
#   run.sh        this script
#   root.sh       the chroot with its packages
#   configure.sh  configuration files, in the chroot
#   serve.sh      databases and services, in the chroot
#   catalog.py    service user, projects and catalog, in the chroot
#
# A second run uses what the first one installed. To begin anew, remove the folder; to keep the packages and drop all that was created
# in the cloud, remove its folder root/srv/state.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
OPENSTACK_DIR=${OPENSTACK_DIR:-$cache/openstack}
mkdir -p "$OPENSTACK_DIR"
export OPENSTACK_DIR OPENSTACK_PORT="${OPENSTACK_PORT:-23500}" OPENSTACK_PASSWORD=secret-of-tests
OPENSTACK_DIR=$(cd "$OPENSTACK_DIR" && pwd)
root=$OPENSTACK_DIR/root

[ "$(id -u)" = 0 ] || { echo "$0: needs root, for a chroot" >&2; exit 1; }
exec 8>"$OPENSTACK_DIR/lock"
flock -n 8 || { echo "$0: another run uses $OPENSTACK_DIR" >&2; exit 1; }

"$here/root.sh"
[ $# -gt 0 ] || exit 0

# Anything that listens there would be taken for one of the services.
for ((port = OPENSTACK_PORT; port < OPENSTACK_PORT + 14; port++)); do
  if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
    echo "$0: port $port is in use: set OPENSTACK_PORT to the first of 14 free ports below 32768" >&2
    exit 1
  fi
done

install -d "$root/srv/openstack"
install -m 755 "$here/configure.sh" "$here/serve.sh" "$here/catalog.py" "$root/srv/openstack/"

# The services end when their standard input does: also if this script is killed.
control=$OPENSTACK_DIR/control ready=$OPENSTACK_DIR/ready log=$OPENSTACK_DIR/serve.log
rm -f "$control" "$ready"
mkfifo "$control" "$ready"
exec 6<>"$ready"
nice -n "${OPENSTACK_NICE:-10}" unshare --mount --pid --fork --kill-child --propagation private bash -c '
  mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount -t tmpfs tmpfs "$1/run" && mkdir "$1/run/lock" &&
  exec env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 PORT="$2" PASSWORD="$3" chroot "$1" /srv/openstack/serve.sh
' serve "$root" "$OPENSTACK_PORT" "$OPENSTACK_PASSWORD" <"$control" >&6 2>"$log" 8>&- &
services=$!
exec 7>"$control"
stop() {
  exec 7>&-
  wait "$services" || true
  rm -f "$control" "$ready"
  echo "== stopped"
}
trap stop EXIT

part=
while true; do
  # A read that times out may have taken the beginning of a line.
  if read -r -t 1 -u 6 line; then
    line=$part$line part=
    [ "$line" = ready ] && break
    echo "== $line"
    continue
  fi
  part+=$line
  if ! kill -0 "$services" 2>/dev/null; then
    echo "$0: the services did not start; the end of $log:" >&2
    tail -n 40 "$log" >&2
    exit 1
  fi
done
echo "== OpenStack is ready, after $SECONDS s"
export OPENSTACK_AUTH_URL=http://127.0.0.1:$OPENSTACK_PORT/v3 OPENSTACK_ADMIN_PASSWORD=$OPENSTACK_PASSWORD
"$@" 7>&- 8>&-
