# shellcheck shell=bash disable=SC2034
# Where all that is made for guests is. Needs here, the folder of this script, and cache.
GUEST_DIR=$(realpath --canonicalize-missing "${GUEST_DIR:-$cache/guest}")
# The chroot with QEMU, and the folder of the image. Their names have a hash of what makes them.
tools=$GUEST_DIR/tools-$(sha256sum <"$here/packages.sh" | cut -c 1-12)
image=$GUEST_DIR/image-$(cat "$here/packages.sh" "$here/disk.sh" "$here/rpctool.sh" | sha256sum | cut -c 1-12)
