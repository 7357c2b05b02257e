// Package guest_test boots guests with what the clients of the clouds send, and logs in to
// them: cloud-init has to understand it. A VM becomes the request of a create by the code of
// its controller, and a client sends it to a stub or a simulator of its cloud. From what
// arrives there, a test makes what the platform shows its guest: a config drive, keys of
// guestinfo, a disk for NoCloud. QEMU emulates the machine, because KVM is not available or
// does not run the kernel of the image on every machine.
//
// make test-guest runs the tests, with the image of hack/guest/image.sh, which GUEST_IMAGE
// names.
//
//	suite_test.go      where the tests run, the image
//	machine_test.go    QEMU
//	login_test.go      SSH
//	check_test.go      what is checked of every guest
//	vm_test.go         VMs and their requests
//	openstack_test.go  OpenStack, with the data source ConfigDrive
//	vsphere_test.go    vSphere, with the data source VMware
//	rest_test.go       REST, with the data source NoCloud
package guest_test
