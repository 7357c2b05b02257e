"""The WSGI program of nova-api. It asks neutron for security groups only of servers that have a network interface.

Otherwise, each read of a server makes neutron list ports, even if there are none: more than a quarter of all requests that neutron
gets from the tests.
"""
from nova.api.openstack.compute import wsgi
from nova.api.openstack.compute.views import servers

groups_of = servers.ViewBuilder._add_security_grps


def groups_of_attached(self, req, shown, instances, create_request=False):
    """Adds security groups to the servers that are shown, as nova does."""
    if not create_request:
        attached = {instance.uuid for instance in instances if instance.get_network_info()}
        shown = [server for server in shown if server["id"] in attached]
    groups_of(self, req, shown, instances, create_request=create_request)


servers.ViewBuilder._add_security_grps = groups_of_attached
application = wsgi.init_application()
