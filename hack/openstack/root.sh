#!/usr/bin/env bash
# Makes the chroot OPENSTACK_DIR/root with the packages of OpenStack. No service is started. Each step is done once, and
# again if it failed or was interrupted. With GUEST=1, the chroot also gets what runs guests, without it cinder.
set -euo pipefail

: "${OPENSTACK_DIR:?}"
. "$(dirname "$0")/../debian.sh"
root=$OPENSTACK_DIR/root done=$OPENSTACK_DIR/done
mkdir -p "$done"

# step NAME runs the function NAME unless it has succeeded before, and says how long it took. The function runs in a shell
# of its own: in one whose status a condition reads, set -e has no effect.
step() {
  local name=$1 began=$SECONDS status=0
  [ -e "$done/$name" ] && return 0
  echo "== $name: $OPENSTACK_DIR/$name.log"
  "$BASH" "$0" "$name" >"$OPENSTACK_DIR/$name.log" 2>&1 || status=$?
  [ "$status" -eq 0 ] || { tail -n 20 "$OPENSTACK_DIR/$name.log" >&2; echo "$0: $name failed" >&2; return 1; }
  touch "$done/$name"
  echo "== $name: $((SECONDS - began)) s"
}

base() {
  rm -rf "$root"
  local archive tool=$OPENSTACK_DIR/debootstrap
  archive=$(archives | awk '$3 == "bookworm" { print $2; exit }')
  [ -n "$archive" ] || { echo "the host has no archive of Debian 12 (bookworm)"; return 1; }
  extracted debootstrap "$tool"
  DEBOOTSTRAP_DIR=$tool/usr/share/debootstrap nice -n 15 sh "$tool/usr/sbin/debootstrap" --variant=minbase \
    --include=ca-certificates,python3,procps bookworm "$root" "$archive"
}

# inside runs a command in the chroot.
inside() {
  unshare --mount --propagation private bash -c '
    mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" &&
    exec env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive nice -n 15 chroot "$0" "$@"' "$root" "$@"
}

installed() {
  # dpkg must not start services.
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
  chmod 755 "$root/usr/sbin/policy-rc.d"
  printf 'path-exclude=/usr/share/%s/*\n' doc man locale >"$root/etc/dpkg/dpkg.cfg.d/small"
  echo force-unsafe-io >>"$root/etc/dpkg/dpkg.cfg.d/small"
  archives >"$root/etc/apt/sources.list"
  cp /etc/resolv.conf /etc/hosts "$root/etc/"
  # An installation that was interrupted is continued.
  inside dpkg --configure -a
  inside apt-get update -q
  # keystone itself would add a web server.
  inside apt-get install -y -q --no-install-recommends \
    mariadb-server rabbitmq-server memcached uwsgi-core uwsgi-plugin-python3 \
    python3-keystone keystone- python3-glance glance-common placement-common python3-placement \
    python3-nova nova-common python3-neutron neutron-common \
    python3-keystoneclient python3-memcache python3-pymysql
  inside apt-get clean
}

# volumes adds cinder. It is a step of its own because there are chroots without it.
volumes() {
  inside dpkg --configure -a
  inside apt-get update -q
  inside apt-get install -y -q --no-install-recommends python3-cinder cinder-common
  inside apt-get clean
}

# guests adds a hypervisor and the agents of neutron.
guests() {
  inside dpkg --configure -a
  inside apt-get update -q
  inside apt-get install -y -q --no-install-recommends \
    python3-libvirt libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients qemu-system-x86 qemu-utils genisoimage \
    neutron-linuxbridge-agent neutron-dhcp-agent neutron-l3-agent dnsmasq-base dnsmasq-utils \
    iptables ipset ebtables arptables conntrack bridge-utils iproute2 iputils-arping kmod sudo
  # libvirtd looks up this user also where guests run as root. The package that would add it brings systemd.
  grep -q '^libvirt-qemu:' "$root/etc/passwd" || inside useradd --system --user-group --no-create-home libvirt-qemu
  inside apt-get clean
}

if [ $# -gt 0 ]; then
  "$1"
else
  step base
  step installed
  if [ -z "${GUEST:-}" ]; then step volumes; else step guests; fi
fi
