#!/bin/bash
# Starts the services and, at the first start, makes their databases. It runs in the chroot as the first process of a PID
# namespace: when it ends, the kernel ends all others. It prints a line for each step, "ready" when the cloud can be used, and
# stops when its standard input ends.
set -eu

host=127.0.0.1
state=/srv/state
logs=$state/logs
mkdir -p $logs /run/lock
say() { echo "$*"; }

/srv/openstack/configure.sh
/srv/openstack/policies.py

# start NAME COMMAND... starts a service in the background.
declare -A started
start() {
  local name=$1
  shift
  "$@" >>$logs/"$name".log 2>&1 </dev/null &
  started[$name]=$!
}

fail() {
  echo "$1" >&2
  tail -n 20 "$2" >&2
  exit 1
}

# await NAME OFFSET waits until a service accepts connections at PORT + OFFSET.
await() {
  local name=$1 port=$((PORT + $2)) tries=1200
  until (exec 3<>/dev/tcp/$host/$port) 2>/dev/null; do
    kill -0 "${started[$name]}" 2>/dev/null || fail "$name ended" "$logs/$name.log"
    [ $((tries--)) -gt 0 ] || fail "$name does not answer" "$logs/$name.log"
    sleep .2
  done
  say "$name"
}

# once NAME COMMAND... runs a command of the first start.
once() {
  local name=$1 began=$SECONDS
  shift
  [ -e $state/done-"$name" ] && return 0
  "$@" >>$logs/setup.log 2>&1 </dev/null || fail "$name failed" $logs/setup.log
  touch $state/done-"$name"
  say "first start: $name, $((SECONDS - began)) s"
}

sql() { mariadb --no-defaults --user=root --password="$PASSWORD" --host=$host --port=$((PORT + 1)) "$@"; }

# moved changes the addresses in the databases of a state whose services listened at other ports: those that nova connects
# to, and last the catalog of services, from which the former port is known.
moved() {
  local before
  before=$(sql --skip-column-names keystone --execute="select max(regexp_substr(url, '[0-9]+(?=/v3\$)')) from endpoint")
  [ "$before" != "$PORT" ] || return 0
  sql --execute="
    update nova_api.cell_mappings set
      transport_url = regexp_replace(transport_url, '(?<=@$host:)[0-9]+', $PORT + 2),
      database_connection = regexp_replace(database_connection, '(?<=@$host:)[0-9]+', $PORT + 1);
    update keystone.endpoint set
      url = replace(url, regexp_substr(url, '(?<=$host:)[0-9]+'), regexp_substr(url, '(?<=$host:)[0-9]+') + $PORT - $before)"
  say "moved from port $before to $PORT"
}

databases() {
  mariadb-install-db --no-defaults --user=root --datadir=$state/db --auth-root-authentication-method=normal --skip-test-db
}
accounts() {
  local statements="create or replace user root@'$host' identified by '$PASSWORD'; grant all on *.* to root@'$host' with grant option;"
  local name
  for name in keystone placement glance neutron nova nova_api nova_cell0; do
    statements+=" create database if not exists $name character set utf8;"
  done
  mariadb --no-defaults --user=root --socket=$state/db/socket --execute="$statements"
}
identity() {
  keystone-manage db_sync
  keystone-manage fernet_setup --keystone-user root --keystone-group root
  keystone-manage credential_setup --keystone-user root --keystone-group root
  keystone-manage bootstrap --bootstrap-password "$PASSWORD" --bootstrap-region-id RegionOne \
    --bootstrap-public-url http://$host:"$PORT"/v3 --bootstrap-internal-url http://$host:"$PORT"/v3 --bootstrap-admin-url http://$host:"$PORT"/v3
}
compute() {
  nova-manage api_db sync
  nova-manage cell_v2 map_cell0 --database_connection "mysql+pymysql://root:$PASSWORD@$host:$((PORT + 1))/nova_cell0?charset=utf8"
  nova-manage cell_v2 create_cell --name cell1
  nova-manage db sync
}
networks() {
  neutron-db-manage --config-file /etc/neutron/neutron.conf --config-file /etc/neutron/plugins/ml2/ml2_conf.ini upgrade head
}
volumes() {
  sql --execute="create database if not exists cinder character set utf8"
  cinder-manage db sync
}

# hypervisor starts libvirtd. nova-compute ends if it cannot connect to it.
hypervisor() {
  local tries=300
  mkdir -p /run/libvirt
  start libvirtd libvirtd
  until virsh --connect qemu:///system version >>$logs/libvirtd.log 2>&1; do
    [ $((tries--)) -gt 0 ] || fail "libvirtd does not answer" $logs/libvirtd.log
    sleep .5
  done
}

# agents starts the agents of neutron. They wait long before they call a server again that did not answer.
agents() {
  local agent
  mkdir -p /run/netns
  start linuxbridge-agent neutron-linuxbridge-agent --config-file /etc/neutron/neutron.conf --config-file /etc/neutron/plugins/ml2/linuxbridge_agent.ini
  for agent in dhcp l3; do
    start $agent-agent neutron-$agent-agent --config-file /etc/neutron/neutron.conf --config-file /etc/neutron/${agent}_agent.ini
  done
}

once databases databases
start mariadb mariadbd --no-defaults --user=root --datadir=$state/db --socket=$state/db/socket --pid-file=$state/db/pid \
  --bind-address=$host --port=$((PORT + 1)) --skip-log-bin --innodb-flush-log-at-trx-commit=0 --max-connections=400 --skip-name-resolve
await mariadb 1
once accounts accounts
start memcached memcached -u root -l $host -p $((PORT + 3)) -m 64
export HOME=$state/mq RABBITMQ_NODENAME=rabbit@localhost RABBITMQ_DIST_PORT=$((PORT + 4)) ERL_EPMD_PORT=$((PORT + 5)) ERL_EPMD_ADDRESS=$host \
  RABBITMQ_MNESIA_BASE=$state/mq RABBITMQ_LOG_BASE=$logs RABBITMQ_LOGS=- RABBITMQ_PID_FILE=$state/mq/pid RABBITMQ_CONFIG_FILE=/etc/rabbitmq-tests \
  RABBITMQ_ENABLED_PLUGINS_FILE=$state/mq/plugins RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-kernel inet_dist_use_interface {127,0,0,1} +S 2:2 +sbwt none'
start epmd epmd -address $host -port $((PORT + 5))
start rabbitmq /usr/lib/rabbitmq/bin/rabbitmq-server
await memcached 3

once identity identity
once placement placement-manage db sync
once images glance-manage db_sync
once networks networks
once compute compute
[ -n "$GUEST" ] || once volumes volumes
moved

# These need only the databases, and start beside the queue.
for part in keystone placement glance; do
  start $part uwsgi --ini /etc/uwsgi-$part.ini
done
await keystone 0
# The catalog of an older state, in which this was done as "catalog", lacks cinder.
once services python3 /srv/openstack/catalog.py
# ML2 binds ports only where an agent is alive. Without guests, it has only a row.
[ -n "$GUEST" ] || sql neutron --execute="insert into agents (id, agent_type, \`binary\`, topic, host, admin_state_up, created_at, started_at, heartbeat_timestamp, configurations, \`load\`)
  values ('00000000-0000-4000-8000-000000000001', 'Open vSwitch agent', 'neutron-openvswitch-agent', 'N/A', 'compute-1', 1, utc_timestamp(), utc_timestamp(), utc_timestamp(),
  '{\"tunnel_types\": [\"vxlan\"], \"tunneling_ip\": \"$host\", \"bridge_mappings\": {}, \"datapath_type\": \"system\"}', 0)
  on duplicate key update heartbeat_timestamp = utc_timestamp()"
await rabbitmq 2
start neutron neutron-server --config-file /etc/neutron/neutron.conf --config-file /etc/neutron/plugins/ml2/ml2_conf.ini
begun=$(sql --skip-column-names --execute='select utc_timestamp()')
[ -z "$GUEST" ] || hypervisor
start nova-compute python3 /srv/openstack/compute.py
for part in conductor scheduler; do
  start nova-$part python3 -c "import sys; sys.argv = ['nova-$part', '--config-file', '/etc/nova-deferred/nova.conf']; from nova.cmd.$part import main; main()"
done
start nova uwsgi --ini /etc/uwsgi-nova.ini
if [ -z "$GUEST" ]; then
  start nova-deferred uwsgi --ini /etc/uwsgi-nova-deferred.ini
  for part in scheduler volume; do
    PYTHONPATH=/srv/openstack start cinder-$part python3 -c "import sys; sys.argv = ['cinder-$part']; from cinder.cmd.$part import main; main()"
  done
  start cinder uwsgi --ini /etc/uwsgi-cinder.ini
fi
await placement 10
await glance 11
await neutron 13
[ -z "$GUEST" ] || agents
await nova 12
[ -n "$GUEST" ] || await nova-deferred 8
[ -n "$GUEST" ] || await cinder 9

# reported NAME DATABASE QUERY COUNT LOG waits until that many parts of a service have reported themselves.
reported() {
  local tries=600
  until [ "$(sql --skip-column-names "$2" --execute="$3")" -ge "$4" ]; do
    [ $((tries--)) -gt 0 ] || fail "the parts of $1 do not report themselves" "$logs/$5.log"
    sleep .5
  done
}
# The scheduler uses a compute service once it has reported itself, neutron its agents.
reported nova nova "select count(*) from services where deleted = 0 and report_count > 0 and coalesce(updated_at, created_at) >= '$begun'" 3 nova-compute
[ -n "$GUEST" ] || reported cinder cinder "select count(*) from services where deleted = 0 and report_count > 0 and coalesce(updated_at, created_at) >= '$begun'" 2 cinder-volume
[ -z "$GUEST" ] || reported neutron neutron "select count(*) from agents where heartbeat_timestamp >= '$begun'" 3 linuxbridge-agent
once hosts nova-manage cell_v2 discover_hosts
echo ready

while read -r _; do :; done
# The rest is ended with this process.
kill "${started[rabbitmq]}" "${started[mariadb]}" 2>/dev/null || true
wait "${started[mariadb]}" "${started[rabbitmq]}" || true
