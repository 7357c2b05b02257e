// Package openstack_test checks the OpenStack backend against a real OpenStack: the
// conformance suite, what the suite does not know of, and the life of VMs, VmGroups and
// Networks under the real manager, which is killed as well. make test-openstack installs
// an OpenStack and runs the tests. They read
//
//	OPENSTACK_AUTH_URL        URL of the identity service
//	OPENSTACK_ADMIN_PASSWORD  password of the user admin of the project admin
//
//	OPENSTACK_VMS             how many VMs are created while managers are killed, and how
//	                          many servers are imported; 12 if empty. If it is set, every VM has two
//	                          interfaces and a public address
//	OPENSTACK_DEFERRED_URL    URL of a compute service that keeps deleted servers for a minute
//	OPENSTACK_RIGHTS          file with the rights that the operator has
//	OPENSTACK_RIGHT           which of these TestMissingRightIsReported takes away: a part of their names, or all;
//	                          one at random if empty
//	OPENSTACK_SEED            repeats what was random in a run that failed
//
//	GUEST_IMAGE               an image of guests, for TestGuest, which make test-openstack
//	                          GUEST=1 runs alone: with an OpenStack whose servers are guests
//
//	admin_test.go       projects, users, flavors and images, made as an administrator
//	hypervisor_test.go  the data of snapshots, which the simulated hypervisor does not store
//	wire_test.go        a RoundTripper that loses answers and counts requests
//	front_test.go       the same as a server, for managers that are processes
//	process_test.go     managers that are processes, which can be killed
//	guesttools_test.go  guests, the network that they are reached from, and logins
package openstack_test
