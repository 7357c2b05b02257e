#!/usr/bin/env bash
# root.sh STATE NODE_IP MACHINE_IP CGROUP: process 1 of the node, in namespaces of its own. It creates a root filesystem in
# memory with the configuration in the usual places, and executes node.sh. The node has /usr of the machine (read-only),
# /dev and the cgroups. Its /var/lib and /var/log are lib and log of STATE.
set -euo pipefail
state=$1 cgroup=$4
here=$(cd "$(dirname "$0")" && pwd)
new=$state/root

# --no-mtab: do not write to /run of the machine.
mount() { command mount --no-mtab "$@"; }

mkdir -p "$new" "$state/lib" "$state/log"
mount -t tmpfs -o mode=755,size=256m node "$new"
mkdir -p "$new"/{dev,etc,opt/bin,proc,root,run/old,sys,usr,var/{lib,log}}
mkdir -m 1777 "$new"/tmp "$new"/var/tmp
ln -s ../run "$new/var/run"
for folder in bin sbin lib lib32 lib64 libx32; do
  if [ -L "/$folder" ]; then
    cp -P "/$folder" "$new/$folder"
  elif [ -d "/$folder" ]; then
    mkdir "$new/$folder"
    mount --bind -o ro "/$folder" "$new/$folder"
  fi
done
mount --bind -o ro /usr "$new/usr"
mount --rbind /dev "$new/dev"
mount -t sysfs sysfs "$new/sys"
mount --rbind /sys/fs/cgroup "$new/sys/fs/cgroup"
mount -t proc proc "$new/proc"
mount --bind "$state/lib" "$new/var/lib"
mount --bind "$state/log" "$new/var/log"

# Mounts the folder that has the tool, not the file, because runc executes a copy of itself from its folder.
for tool in "$state"/bin/*; do
  real=$(readlink -f "$tool")
  mkdir -p "$new/opt/tools/${tool##*/}"
  mount --bind -o ro "${real%/*}" "$new/opt/tools/${tool##*/}"
  ln -s "../tools/${tool##*/}/${real##*/}" "$new/opt/bin/${tool##*/}"
done
cp -r "$here/etc/." "$new/etc"
cp "$here/node.sh" "$new/opt/node.sh"

# The kubelet requires kernel settings that affect the whole machine. Files with the required values hide the settings,
# which do not change.
while read -r setting value; do
  [ -e "/proc/sys/$setting" ] || continue
  echo "$value" >"$new/run/${setting//\//.}"
  mount --bind "$new/run/${setting//\//.}" "$new/proc/sys/$setting"
done <<'SETTINGS'
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
SETTINGS

# One cgroup for all pods: in each hierarchy (v1) or in the only one (v2).
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  mkdir -p "/sys/fs/cgroup/$cgroup"
else
  for hierarchy in /sys/fs/cgroup/*/; do mkdir -p "$hierarchy$cgroup"; done
fi

cd "$new"
pivot_root . run/old
umount --no-mtab --lazy /run/old
mount --make-rshared /
exec env -i PATH=/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
  NODE_IP="$2" MACHINE_IP="$3" CGROUP="/$cgroup" /bin/bash /opt/node.sh
