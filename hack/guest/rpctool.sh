#!/bin/sh
# Stands in the image for vmware-rpctool of open-vm-tools, which cloud-init's data source VMware calls: "info-get guestinfo.NAME"
# prints what the test gives QEMU by -fw_cfg name=opt/guestinfo.NAME. What a guest sets is ignored.
case $1 in
"info-set "*) exit 0 ;;
"info-get guestinfo."*) ;;
*) echo "$0: unknown command: $1" >&2; exit 1 ;;
esac
[ -d /sys/firmware/qemu_fw_cfg ] || modprobe qemu_fw_cfg
value=/sys/firmware/qemu_fw_cfg/by_name/opt/${1#info-get }/raw
[ -e "$value" ] || { echo "No value found" >&2; exit 1; }
cat "$value"
