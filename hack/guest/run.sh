#!/usr/bin/env bash
# run.sh FOLDER COMMAND...: runs a command in the chroot that image.sh makes, which has QEMU and tools that make disks. Of the host, it
# sees FOLDER, which is its working directory, and the folder of the image as /image. It has a PID namespace of its own, so that none of
# its processes outlives this one, however it ends.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
. "$here/dir.sh"
folder=$(cd "$1" && pwd)
shift
exec setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --propagation private bash -c '
  mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount --bind "$1" "$0/work" || exit
  if [ -e "$2" ]; then mount --bind "$2" "$0/image" || exit; fi
  shift 2
  exec env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 chroot "$0" /usr/bin/env --chdir=/work "$@"
' "$tools" "$folder" "$image" "$@"
