#!/bin/bash
# Writes the configuration of all services, for PORT, PASSWORD and GUEST. It runs in the chroot, before each start.
set -eu

state=/srv/state
host=127.0.0.1
database() { echo "mysql+pymysql://root:$PASSWORD@$host:$((PORT + 1))/$1?charset=utf8"; }
queue=rabbit://guest:guest@$host:$((PORT + 2))/
cache=$host:$((PORT + 3))
identity=http://$host:$PORT/v3

# account prints the settings with which a service logs in.
account() {
  cat <<END
auth_type = password
auth_url = $identity
username = service
password = $PASSWORD
project_name = service
user_domain_id = default
project_domain_id = default
region_name = RegionOne
END
}

# tokens prints the section for the check of tokens, which every service but keystone has.
tokens() {
  cat <<END
[keystone_authtoken]
www_authenticate_uri = $identity
memcached_servers = $cache
service_token_roles = service
service_token_roles_required = true
$(account)
END
}

mkdir -p $state/{db,mq,fernet,credential,images,nova/instances,neutron,cinder} /etc/{keystone,glance,placement,nova,neutron}

# A login costs little: the tests make many, with a password that is no secret.
cat >/etc/keystone/keystone.conf <<END
[DEFAULT]
use_stderr = true
[database]
connection = $(database keystone)
[identity]
password_hash_rounds = 4
[fernet_tokens]
key_repository = $state/fernet
[credential]
key_repository = $state/credential
[cache]
enabled = true
backend = dogpile.cache.memcached
backend_argument = url:$cache
END

cat >/etc/glance/glance-api.conf <<END
[DEFAULT]
use_stderr = true
enabled_backends = files:file
[database]
connection = $(database glance)
[glance_store]
default_backend = files
[files]
filesystem_store_datadir = $state/images
[paste_deploy]
flavor = keystone
$(tokens)
END

cat >/etc/placement/placement.conf <<END
[DEFAULT]
use_stderr = true
[placement_database]
connection = $(database placement)
[api]
auth_strategy = keystone
$(tokens)
END

# Without guests, no agent runs: one has a row that serve.sh adds, and counts as alive for long. With guests, the agents report
# themselves late on a busy machine.
if [ -z "$GUEST" ]; then
  mechanism=openvswitch networks=vxlan notifies=false
else
  # Only guests of one host have to reach each other. The kernel may lack Open vSwitch.
  mechanism=linuxbridge networks=local notifies=true
fi
cat >/etc/neutron/neutron.conf <<END
[DEFAULT]
use_stderr = true
host = compute-1
bind_host = $host
bind_port = $((PORT + 13))
api_workers = 1
rpc_workers = 1
rpc_state_report_workers = 0
core_plugin = ml2
service_plugins = router
transport_url = $queue
state_path = $state/neutron
api_paste_config = /etc/neutron/api-paste.ini
dhcp_agent_notification = $notifies
agent_down_time = 1000000
[database]
connection = $(database neutron)
[oslo_concurrency]
lock_path = $state/neutron
[quotas]
quota_network = -1
quota_subnet = -1
quota_port = -1
[nova]
$(account)
[experimental]
linuxbridge = true
$(tokens)
END
cat >/etc/neutron/plugins/ml2/ml2_conf.ini <<END
[ml2]
type_drivers = vxlan,local,flat
tenant_network_types = $networks
mechanism_drivers = $mechanism
extension_drivers = port_security
[ml2_type_vxlan]
vni_ranges = 1:100000
[ml2_type_flat]
flat_networks = public
END

# Without guests, the driver of the hypervisor keeps servers in memory. With guests, QEMU emulates the processor, because not every KVM
# runs a guest. A guest starts when its port is wired, and has more time than usual to shut down.
if [ -z "$GUEST" ]; then
  hypervisor=fake.FakeDriver wired=false wiring=0
else
  hypervisor=libvirt.LibvirtDriver wired=true wiring=300
fi
cat >/etc/nova/nova.conf <<END
[DEFAULT]
use_stderr = true
host = compute-1
my_ip = $host
compute_driver = $hypervisor
force_raw_images = false
transport_url = $queue
state_path = $state/nova
allow_resize_to_same_host = true
vif_plugging_is_fatal = $wired
vif_plugging_timeout = $wiring
shutdown_timeout = 300
block_device_allocate_retries_interval = 1
[api]
auth_strategy = keystone
[api_database]
connection = $(database nova_api)
[database]
connection = $(database nova)
[quota]
instances = -1
cores = -1
ram = -1
[conductor]
workers = 1
[scheduler]
workers = 1
[vnc]
enabled = false
[libvirt]
virt_type = qemu
cpu_mode = none
[workarounds]
disable_rootwrap = true
[oslo_concurrency]
lock_path = $state/nova
[glance]
$(account)
[neutron]
$(account)
[placement]
$(account)
[cinder]
catalog_info = volumev3::internalURL
os_region_name = RegionOne
$(account)
[service_user]
send_service_user_token = true
$(account)
$(tokens)
END

# Beside the usual compute API is one that keeps deleted servers for a minute, in which they can be restored.
mkdir -p /etc/nova-deferred
sed '/^\[DEFAULT\]/a reclaim_instance_interval = 60' /etc/nova/nova.conf >/etc/nova-deferred/nova.conf
cp /etc/nova/api-paste.ini /etc/nova-deferred/

# web NAME PORT PROGRAM PROCESSES writes the configuration of a service that is a WSGI program.
web() {
  cat >/etc/uwsgi-"$1".ini <<END
[uwsgi]
plugin = python3
wsgi-file = $3
http-socket = $host:$((PORT + $2))
master = true
processes = $4
enable-threads = true
lazy-apps = true
buffer-size = 65535
http-chunked-input = true
add-header = Connection: close
die-on-term = true
disable-logging = true
END
}
web keystone 0 /usr/bin/keystone-wsgi-public 2
web placement 10 /usr/bin/placement-api 1
web glance 11 /usr/bin/glance-wsgi-api 1
web nova 12 /srv/openstack/novaapi.py 2
web nova-deferred 8 /srv/openstack/novaapi.py 1
echo "env = OS_NOVA_CONFIG_DIR=/etc/nova-deferred" >>/etc/uwsgi-nova-deferred.ini
web cinder 9 /usr/bin/cinder-wsgi 1

cat >/etc/rabbitmq-tests.conf <<END
listeners.tcp.1 = $host:$((PORT + 2))
vm_memory_high_watermark.absolute = 1GB
disk_free_limit.absolute = 50MB
END

# The packages of what follows are there only with guests, and cinder only without: its volumes have no data.
if [ -z "$GUEST" ]; then
  cat >/etc/cinder/cinder.conf <<END
[DEFAULT]
use_stderr = true
host = volumes-1
my_ip = $host
transport_url = $queue
state_path = $state/cinder
enabled_backends = rows
report_interval = 5
quota_volumes = -1
quota_snapshots = -1
quota_gigabytes = -1
[rows]
volume_driver = volumes.Driver
volume_backend_name = rows
[database]
connection = $(database cinder)
[oslo_concurrency]
lock_path = $state/cinder
[nova]
$(account)
[service_user]
send_service_user_token = true
$(account)
$(tokens)
END
  exit
fi

# The bridge of the physical network is made by run.sh.
cat >/etc/neutron/plugins/ml2/linuxbridge_agent.ini <<END
[linux_bridge]
bridge_mappings = public:br-public
[vxlan]
enable_vxlan = false
[securitygroup]
firewall_driver = iptables
enable_security_group = true
enable_ipset = true
END
cat >/etc/neutron/dhcp_agent.ini <<END
[DEFAULT]
interface_driver = linuxbridge
enable_isolated_metadata = false
END
cat >/etc/neutron/l3_agent.ini <<END
[DEFAULT]
interface_driver = linuxbridge
enable_metadata_proxy = false
END

# ebtables of Debian 12 cannot delete a rule with --among-src by its text, which the agent of the bridges tries for ever when the security
# groups of a port change. Such rules are the first ones of their chain.
cat >/srv/openstack/ebtables.sh <<'END'
#!/bin/bash
args=("$@")
if [[ " $* " == *" -D "*" --among-src "* ]]; then
  for ((i = 0; i < $#; i++)); do
    [ "${args[i]}" != -D ] || { args=("${args[@]:0:i+2}" 1); break; }
  done
fi
exec /usr/sbin/ebtables-nft "${args[@]}"
END
chmod 755 /srv/openstack/ebtables.sh
ln -sf /srv/openstack/ebtables.sh /usr/sbin/ebtables

# What libvirt knows of guests belongs to the state.
for folder in /etc/libvirt/qemu /var/lib/libvirt/qemu; do
  mkdir -p "$state/libvirt$folder" "${folder%/*}"
  [ -L "$folder" ] || { rm -rf "$folder" && ln -s "$state/libvirt$folder" "$folder"; }
done

# All of libvirt and of the guests runs as root: the chroot has no cgroups, no security module and no virtlogd.
cat >/etc/libvirt/qemu.conf <<END
user = "root"
group = "root"
security_driver = "none"
cgroup_controllers = []
namespaces = []
stdio_handler = "file"
remember_owner = 0
END
cat >/etc/libvirt/libvirtd.conf <<END
auth_unix_ro = "none"
auth_unix_rw = "none"
END
