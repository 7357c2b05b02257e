#!/usr/bin/env bash
# Prints the path of the image of the tests' guests: a qcow2 disk of Debian 12 with cloud-init and sshd, which boots with a BIOS and has
# its console on the first serial port.
#
#   image=$(hack/guest/image.sh)
#
# What the folder GUEST_DIR (default: guest in the cache of all clones) lacks is made first, in about three minutes: a chroot with QEMU
# and tools that make disks, and the image. It needs root on Debian 12, perl, 2 GB of disk, and the archives that apt uses. Nothing is
# installed or mounted on the host, and no loop device is needed. What is made gets its name when it is complete. The name has a hash of
# what makes it, so that it is made again when that changes, and others are removed after 30 days. For newer packages, remove the folder.
#
#   image.sh     this script
#   dir.sh       names of folders
#   packages.sh  root file systems of Debian packages
#   disk.sh      the disk of the image, in the chroot
#   rpctool.sh   the tool of VMware's guests, in the image
#   run.sh       runs a command in the chroot
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
. "$here/dir.sh"
export GUEST_DIR

# What is interrupted ends with its parent.
with_parent() { setpriv --pdeathsig KILL "$@"; }

make_tools() { with_parent "$here/packages.sh" tools "$1"; }

make_image() {
  with_parent "$here/packages.sh" guest "$1/root"
  install -m 755 "$here/disk.sh" "$1/"
  "$here/run.sh" "$1" ./disk.sh root debian-12.qcow2
  rm -r "$1/root" "$1/disk.sh"
}

# made WHAT PATH runs make_WHAT with the new folder PATH.new, which then gets the name PATH, unless PATH exists. The function runs in a
# shell of its own: in one whose status a condition reads, set -e has no effect.
made() {
  local what=$1 path=$2 began=$SECONDS log=$GUEST_DIR/$1.log
  [ ! -e "$path" ] || return 0
  say "== making the $what of guests: $log"
  rm -rf "$path.new"
  mkdir -p "$path.new"
  with_progress "making the $what" with_parent "$BASH" "$0" "make_$what" "$path.new" "$log" || { tail -n 20 "$log" >&2; die "making the $what of guests failed"; }
  mv "$path.new" "$path"
  say "== made the $what of guests in $((SECONDS - began)) s"
}

if [ $# -gt 0 ]; then
  exec >"$3" 2>&1
  "$1" "$2"
  exit
fi
if [ ! -e "$tools" ] || [ ! -e "$image" ]; then
  [ "$(id -u)" = 0 ] || die "making the image of guests needs root, for a chroot"
  mkdir -p "$GUEST_DIR"
  exec 8>"$GUEST_DIR/lock"
  flock -n 8 || say "waiting for another process that makes the image in $GUEST_DIR"
  # One after the other, so that no flock waits for long after this script is killed.
  until flock --wait 1 8; do :; done
  made tools "$tools"
  made image "$image"
  # What former scripts have made, and what was interrupted.
  find "$GUEST_DIR" -mindepth 1 -maxdepth 1 \( -name 'tools-*' -o -name 'image-*' \) -mtime +30 ! -path "$tools" ! -path "$image" -exec rm -r {} +
fi
echo "$image/debian-12.qcow2"
