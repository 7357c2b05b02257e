# shellcheck shell=bash disable=SC2034
# Functions that the scripts of this folder share, and the state folder and addresses of the cluster.
. "$(dirname "${BASH_SOURCE[0]}")/../../hack/lib.sh"

here=$root/test/cluster
state=${CLUSTER_STATE:-$cache/cluster}
# A veth pair connects the machine (.1) and the node (.2) of this subnet.
subnet=${CLUSTER_SUBNET:-198.18.99}
machine_ip=$subnet.1
node_ip=$subnet.2
node=node1
registry=$node_ip:5000
link=pc-$subnet
cgroup=private-cloud-$subnet

kubectl() { "$state/bin/kubectl" --kubeconfig "$state/kubeconfig" "$@"; }

# holder: prints the pid of the holder, the process with whose end the node ends. Fails if there is none.
holder() {
  ps -A -o pid= -o args= | awk -v mark="root.sh $state " '$2 == "unshare" && index($0, mark) { print $1; exit }' | grep .
}

# first: prints the pid of process 1 of the node in the pid namespace of the machine.
first() {
  local pid
  pid=$(holder) && pid=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null) && [ -n "$pid" ] && echo "${pid% }"
}

# inside COMMAND...: runs COMMAND on the node.
inside() { nsenter --target "$(first)" --mount --net --pid "$@"; }

# end_node: stops the node and waits until its processes, network and cgroups are removed.
end_node() {
  local pid left
  # The kernel kills process 1 of the node with the holder, and all other processes with process 1. All of them hold the
  # shared lock, which they have inherited.
  if pid=$(holder); then kill -KILL "$pid"; fi
  [ ! -e "$state/alive" ] || flock --shared --timeout 60 "$state/alive" true ||
    die "processes of the node do not exit (lsof $state/alive lists them)"
  # The kernel removes a network namespace some time after its last process.
  if [ -e "/sys/class/net/$link" ]; then
    # The link belongs to another cluster, and so do the cgroups.
    [ "$(cat "/sys/class/net/$link/ifalias")" = "$state" ] || return 0
    ip link delete "$link" 2>/dev/null || true
  fi
  # A cgroup can be removed when its last process has exited.
  for _ in {1..100}; do
    left=$(find /sys/fs/cgroup -depth -type d -path "*/$cgroup*" 2>/dev/null || true)
    [ -n "$left" ] || return 0
    xargs rmdir 2>/dev/null <<<"$left" || sleep 0.1
  done
  die "cannot remove cgroups: $(grep "/$cgroup\$" <<<"$left" | xargs)"
}

# eventually SECONDS WHAT LOG COMMAND...: waits until COMMAND succeeds. If it does not, prints its last output and the last
# lines of LOG, which is a file or a function.
eventually() {
  local limit=$1 what=$2 log=$3 start=$SECONDS output
  shift 3
  until output=$("$@" 2>&1); do
    if [ $((SECONDS - start)) -ge "$limit" ]; then
      say "error: timed out after $limit s waiting for this: $what. Last output of $*: ${output:-none}"
      explain "$log"
      return 1
    fi
    sleep 0.3
  done
  say "$what, after $((SECONDS - start)) s"
}

explain() {
  if [ "$(type -t "$1")" = function ]; then
    "$1" >&2 || true
  else
    say "last lines of $1:"
    tail -n 15 "$1" >&2 || true
  fi
}
