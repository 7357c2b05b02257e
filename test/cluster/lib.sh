# shellcheck shell=bash disable=SC2034
# What the scripts of this folder share: where the cluster's state is, which addresses it has, how it is asked and ended.
. "$(dirname "${BASH_SOURCE[0]}")/../../hack/lib.sh"

here=$root/test/cluster
state=${CLUSTER_STATE:-$cache/cluster}
# The machine and the node talk over a cable of their own, between the addresses .1 and .2 of this network.
subnet=${CLUSTER_SUBNET:-198.18.99}
machine_ip=$subnet.1
node_ip=$subnet.2
node=node1
registry=$node_ip:5000
link=pc-$subnet
cgroup=private-cloud-$subnet

kubectl() { "$state/bin/kubectl" --kubeconfig "$state/kubeconfig" "$@"; }

# holder: prints the pid of the process whose end ends the node; fails where there is none.
holder() {
  ps -A -o pid= -o args= | awk -v mark="root.sh $state " '$2 == "unshare" && index($0, mark) { print $1; exit }' | grep .
}

# first: prints the pid, as the machine sees it, of the node's process 1.
first() {
  local pid
  pid=$(holder) && pid=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null) && [ -n "$pid" ] && echo "${pid% }"
}

# inside COMMAND...: runs COMMAND on the node.
inside() { nsenter --target "$(first)" --mount --net --pid "$@"; }

# end_node: ends the node and waits until nothing of it is left on the machine.
end_node() {
  local pid left
  # Its end kills the node's first process, and that one's end everything else. All have inherited a lock.
  if pid=$(holder); then kill -KILL "$pid"; fi
  [ ! -e "$state/alive" ] || flock --shared --timeout 60 "$state/alive" true ||
    die "processes of the node do not end (lsof $state/alive names them)"
  # The kernel takes a network apart some time after its last process, when connections have timed out.
  if [ -e "/sys/class/net/$link" ]; then
    # Another cluster's: so are the cgroups.
    [ "$(cat "/sys/class/net/$link/ifalias")" = "$state" ] || return 0
    ip link delete "$link" 2>/dev/null || true
  fi
  # A cgroup can be removed once the last process has left it.
  for _ in {1..100}; do
    left=$(find /sys/fs/cgroup -depth -type d -path "*/$cgroup*" 2>/dev/null || true)
    [ -n "$left" ] || return 0
    xargs rmdir 2>/dev/null <<<"$left" || sleep 0.1
  done
  die "cgroups that cannot be removed: $(grep "/$cgroup\$" <<<"$left" | xargs)"
}

# eventually SECONDS WHAT LOG COMMAND...: waits for COMMAND to succeed. Where it does not, says what it answered last and
# shows the end of LOG, which is a file or a function that prints.
eventually() {
  local limit=$1 what=$2 log=$3 start=$SECONDS said
  shift 3
  until said=$("$@" 2>&1); do
    if [ $((SECONDS - start)) -ge "$limit" ]; then
      say "error: within $limit s, it is not so that $what. The last answer of $*: ${said:-none}"
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
    say "the end of $1:"
    tail -n 15 "$1" >&2 || true
  fi
}
