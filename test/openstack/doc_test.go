// Package openstack_test checks the OpenStack backend against a real OpenStack: the
// conformance suite, what the suite does not know of, and the life of VMs, VmGroups and
// Networks under the real manager. make test-openstack installs an OpenStack and runs
// the tests. They read
//
//	OPENSTACK_AUTH_URL        URL of the identity service
//	OPENSTACK_ADMIN_PASSWORD  password of the user admin of the project admin
//
//	admin_test.go        projects, users, flavors and images, made as an administrator
//	wire_test.go         a RoundTripper that loses answers and counts requests
package openstack_test
