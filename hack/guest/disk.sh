#!/bin/sh
# disk.sh ROOT IMAGE: makes a qcow2 disk of the root file system in the folder ROOT, in the chroot: a FAT partition with SYSLINUX, the kernel
# and its initramfs, and an ext4 partition behind it, which cloud-init grows.
set -eu
root=$1 image=$2 boot=96 size=1400

cat >syslinux.cfg <<'END'
default linux
prompt 0
timeout 1
serial 0 115200
label linux
  kernel vmlinuz
  append initrd=initrd.img root=LABEL=root ro console=tty0 console=ttyS0,115200 net.ifnames=0
END
truncate -s ${boot}M boot.img
mkfs.vfat -F 16 -n BOOT boot.img >/dev/null
mcopy -i boot.img "$root"/boot/vmlinuz-* ::vmlinuz
mcopy -i boot.img "$root"/boot/initrd.img-* ::initrd.img
mcopy -i boot.img syslinux.cfg ::
syslinux --install boot.img

truncate -s ${size}M root.img
mkfs.ext4 -q -L root -d "$root" root.img

truncate -s $((1 + boot + size))M disk.raw
printf 'label: dos\nstart=1MiB, size=%sMiB, type=6, bootable\nstart=%sMiB, type=83\n' $boot $((boot + 1)) | sfdisk -q disk.raw
dd if=/usr/lib/syslinux/mbr/mbr.bin of=disk.raw conv=notrunc bs=440 count=1 status=none
dd if=boot.img of=disk.raw bs=1M seek=1 conv=notrunc,sparse status=none
dd if=root.img of=disk.raw bs=1M seek=$((boot + 1)) conv=notrunc,sparse status=none
qemu-img convert -c -O qcow2 -o compression_type=zstd disk.raw "$image"
rm syslinux.cfg boot.img root.img disk.raw
