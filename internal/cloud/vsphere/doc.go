// Package vsphere is a cloud.Client of the SOAP API of a vCenter, on govmomi. All
// requests go through the transport chain of internal/cloud/transport.
//
// A server is a VM below the configured folder that is no template. Its id is the
// instance UUID, which survives a change of the VM's place in the inventory. The
// clone sets it, derived from the idempotency key, together with the owner's mark:
// keys of the VM's extraConfig. Of all creates with one key, name and folder, at most
// one makes a VM: names are unique in a folder, which vCenter enforces, and the mark
// says whose VM has the name.
//
// Calls that take time are answered with the vCenter's task as the operation.
//
// The client, and what its calls share:
//
//	client.go       New, Capabilities, Close
//	config.go       Config, and Place: the part of the inventory that is used
//	credentials.go  the kinds of credentials
//	session.go      one login for all calls when a session has ended
//	retry.go        requests that read are sent up to three times
//	login.go        password, token or certificate
//	jar.go          the cookie of the session
//	hidden.go       whether there are VMs that the vCenter cannot read
//	faults.go       what the faults of the vCenter mean
//	site.go         finds the Place in the inventory, and says what is missing
//	zones.go        zones: resource pools under names
//	batch.go        one read for all calls that want something at about the same time
//	names.go        names of hosts and folders that are remembered
//	refs.go         ids of VMs that are remembered
//	interfaces.go   network interfaces as the guests report them
//	disks.go        disks with names, and what adds and grows them
//	volume.go       how many objects an answer may have
//	properties.go   reads properties, and makes servers of VMs
//	mark.go         the owner's mark, ids and names
//
// Calls:
//
//	read.go         names, one server
//	look.go         reads VMs by their references
//	list.go         pages of servers
//	watch.go        changes of servers, as the vCenter reports them
//	feed.go         a property collector that records which VMs have changed
//	create.go       clones, and whose VM has the name
//	adapters.go     the network adapters of a clone
//	userdata.go     user data, where cloud-init reads it
//	templates.go    which templates there are
//	folders.go      folders of groups
//	update.go       size, disks, labels, power
//	start.go        starts VMs, and those that are cloned to be put into a rule first
//	rules.go        DRS rules that keep VMs apart
//	turns.go        changes of DRS rules, one after the other
//	leaving.go      takes VMs that are deleted out of their rules
//	delete.go       deletion of VMs that carry the mark
//	attached.go     detaches the disks of others before
//	snapshots.go    snapshots of VMs
//	revert.go       reverts to snapshots
//	operations.go   what became of a change
//	tasks.go        reads tasks
//	hosts.go        hosts and their graphics devices
//	networks.go     lists port groups; none is created
package vsphere
