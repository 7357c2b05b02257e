#!/usr/bin/env bash
# packages.sh tools|guest FOLDER: makes a root file system of Debian packages in the new folder FOLDER: that of the chroot with QEMU, or
# that of a guest. Needs GUEST_DIR.
set -euo pipefail

: "${GUEST_DIR:?}"
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../debian.sh"
kind=$1 folder=$2

options=(--mode=root --aptopt='APT::Install-Recommends "false"' --dpkgopt=force-unsafe-io)
case $kind in
tools)
  options+=(--variant=apt --include=qemu-system-x86,qemu-utils,mtools,dosfstools,syslinux,syslinux-common,fdisk,e2fsprogs,xorriso)
  options+=(--customize-hook='mkdir "$1/work" "$1/image"')
  ;;
guest)
  options+=(--variant=minbase)
  options+=(--include=linux-image-cloud-amd64,systemd-sysv,systemd-resolved,udev,dbus,kmod,e2fsprogs)
  options+=(--include=cloud-init,cloud-guest-utils,openssh-server,sudo,netplan.io,isc-dhcp-client,iproute2,netbase,ca-certificates)
  options+=(
    --essential-hook='printf "path-exclude=/usr/share/%s/*\n" doc man locale >"$1/etc/dpkg/dpkg.cfg.d/small"'
    --customize-hook='rm -rf "$1"/usr/share/doc/* "$1"/usr/share/man/* "$1"/usr/share/locale/*'
  )
  # The keys of sshd and the id of the machine are made at the first boot. What a guest of a test does not need takes much time of a
  # processor that is emulated: other types of keys, locales, and the checks of packages and file systems.
  options+=(
    --customize-hook='printf "LABEL=root / ext4 defaults,noatime 0 1\n" >"$1/etc/fstab"'
    --customize-hook='echo localhost >"$1/etc/hostname"'
    --customize-hook='printf "%s\n" "locale: false" "ssh_genkeytypes: [ed25519]" >"$1/etc/cloud/cloud.cfg.d/90_test.cfg"'
    --customize-hook='chroot "$1" systemctl mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service'
    --customize-hook='chroot "$1" systemctl enable systemd-networkd'
    --customize-hook="install -m 755 '$here/rpctool.sh' \"\$1/usr/bin/vmware-rpctool\""
    --customize-hook='rm -f "$1"/etc/ssh/ssh_host_*; : >"$1/etc/machine-id"'
  )
  ;;
esac
options+=(--customize-hook='chroot "$1" apt-get clean; rm -rf "$1"/var/lib/apt/lists/*')

tool=$GUEST_DIR/mmdebstrap
extracted mmdebstrap "$tool"
sources=$(archives) || { echo "the host has no archive of Debian 12 (bookworm)"; exit 1; }
# Perl is that of Debian, also if PATH has another.
exec unshare --mount --pid --fork --kill-child --mount-proc --propagation private \
  env PATH="$tool/usr/bin:/usr/sbin:/usr/bin:/sbin:/bin" nice -n 10 mmdebstrap "${options[@]}" bookworm "$folder" - <<<"$sources"
