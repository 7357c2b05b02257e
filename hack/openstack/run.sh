#!/usr/bin/env bash
# Installs an OpenStack into the folder OPENSTACK_DIR (default: openstack in the cache of all clones), starts it, runs a command
# with the environment that test/openstack reads, and stops it again:
#
#   OPENSTACK_DIR=/var/tmp/openstack hack/openstack/run.sh go test ./test/openstack
#
# Without a command, it only installs.
#
# With GUEST=1, servers are guests that run: nova has its libvirt driver, which emulates the processor, and neutron its agents for
# bridges, addresses, routers and security groups. Then the services and the command have a network namespace of their own, where the
# host's network is not seen: the command must not download anything. The packages for it are added to the same chroot. The cloud is
# another one, with a state of its own: a server, a port or a network of one of them cannot be used in the other.
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
#   policies.py   rights of the role of the operator, in the chroot
#   compute.py    nova-compute, in the chroot
#   novaapi.py    nova-api, in the chroot
#   volumes.py    driver of cinder's volumes, in the chroot
#
# A second run uses what the first one installed. To begin anew, remove the folder; to keep the packages and drop all that was created
# in the cloud, remove its folder root/srv/state, or root/srv/state-guest with GUEST=1.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
OPENSTACK_DIR=${OPENSTACK_DIR:-$cache/openstack}
mkdir -p "$OPENSTACK_DIR"
export OPENSTACK_DIR OPENSTACK_PORT="${OPENSTACK_PORT:-23500}" OPENSTACK_PASSWORD=secret-of-tests
OPENSTACK_DIR=$(cd "$OPENSTACK_DIR" && pwd)
root=$OPENSTACK_DIR/root

[ "$(id -u)" = 0 ] || { echo "$0: needs root, for a chroot" >&2; exit 1; }
if [ -n "${GUEST:-}" ]; then
  command -v ip >/dev/null || { echo "$0: GUEST=1 needs ip of the Debian package iproute2" >&2; exit 1; }
  # Without it, security groups would let everything through. Loading it changes how the bridges of the host filter.
  [ -e /proc/sys/net/bridge ] || { echo "$0: GUEST=1 needs the kernel module br_netfilter: modprobe br_netfilter" >&2; exit 1; }
fi
if [ -z "${OPENSTACK_NETNS:-}" ]; then
  exec 8>"$OPENSTACK_DIR/lock"
  flock -n 8 || { echo "$0: another run uses $OPENSTACK_DIR" >&2; exit 1; }

  "$here/root.sh"
  [ $# -gt 0 ] || exit 0
  # The lock is inherited.
  [ -z "${GUEST:-}" ] || OPENSTACK_NETNS=1 exec unshare --net "$0" "$@"
else
  # The physical network, whose router is this namespace. Nothing else leads out of it.
  ip link set lo up
  ip link add br-public type bridge
  ip address add 203.0.113.1/24 dev br-public
  ip link set br-public up
  # The API server of the tests takes its address from the interface of this route.
  ip route add default dev br-public
fi

# Anything that listens there would be taken for one of the services.
for ((port = OPENSTACK_PORT; port < OPENSTACK_PORT + 14; port++)); do
  if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
    echo "$0: port $port is in use: set OPENSTACK_PORT to the first of 14 free ports below 32768" >&2
    exit 1
  fi
done

state=$root/srv/state${GUEST:+-guest}
install -d "$root/srv/openstack" "$root/srv/state" "$state"
install -m 755 "$here/configure.sh" "$here/serve.sh" "$here/catalog.py" "$here/policies.py" "$root/srv/openstack/"
install -m 644 "$here/compute.py" "$here/novaapi.py" "$here/volumes.py" "$here/../../docs/openstack.md" "$root/srv/openstack/"

# The services end when their standard input does: also if this script is killed. The root is a mount of its own: "ip netns" makes it
# a slave mount.
control=$OPENSTACK_DIR/control ready=$OPENSTACK_DIR/ready log=$OPENSTACK_DIR/serve.log
rm -f "$control" "$ready"
mkfifo "$control" "$ready"
exec 6<>"$ready"
nice -n "${OPENSTACK_NICE:-10}" unshare --mount --pid --fork --kill-child --propagation private bash -c '
  mount --bind "$1" "$1" && mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount -t tmpfs tmpfs "$1/run" && mkdir "$1/run/lock" &&
  mount --bind "$2" "$1/srv/state" && { [ -z "$5" ] || mount -t sysfs sysfs "$1/sys"; } &&
  exec env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 PORT="$3" PASSWORD="$4" GUEST="$5" chroot "$1" /srv/openstack/serve.sh
' serve "$root" "$state" "$OPENSTACK_PORT" "$OPENSTACK_PASSWORD" "${GUEST:-}" <"$control" >&6 2>"$log" 8>&- &
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
export OPENSTACK_RIGHTS=$root/srv/openstack/rights OPENSTACK_DEFERRED_URL=http://127.0.0.1:$((OPENSTACK_PORT + 8))/v2.1
"$@" 7>&- 8>&-
