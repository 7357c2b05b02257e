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
// The files, of which each uses those below it:
//
//	client.go       the client, and what it is composed of
//
// Calls about servers:
//
//	watch.go        changes of servers, as the vCenter reports them
//	feed.go         a property collector that records which VMs have changed
//	operations.go   what became of a change
//	start.go        starts VMs that are cloned to be put into a rule first
//	outcomes.go     the VM of a task that has ended
//	create.go       creates, and what an earlier create with the key has made
//	clone.go        clones a template
//	adapters.go     the network adapters of a clone
//	userdata.go     user data, where cloud-init reads it
//	claim.go        whose VM has the name
//	update.go       size, disks, labels, power
//	delete.go       deletion of VMs that carry the mark
//	attached.go     detaches the disks of others before
//	revert.go       reverts to snapshots
//	snapshots.go    snapshots of VMs
//	read.go         one server
//	list.go         pages of servers
//
// What they are about beside the server:
//
//	leaving.go      takes VMs that are deleted out of their rules
//	rules.go        puts VMs into DRS rules that keep them apart, and starts them
//	turns.go        changes of DRS rules, one after the other
//	change.go       changes the size and the power state of a VM
//	folders.go      folders of groups, and the names in them
//	creating.go     the creates under way, by folder
//	templates.go    which templates there are
//	networks.go     lists port groups; none is created
//	hosts.go        hosts and their graphics devices
//
// What is read of VMs and tasks:
//
//	find.go         finds the VM with an id
//	look.go         reads VMs by their references
//	servers.go      makes servers of VMs
//	disks.go        disks with names, and what adds and grows them
//	tasks.go        reads tasks
//	hidden.go       whether there are VMs that the vCenter cannot read
//	names.go        names of hosts and folders that are remembered
//	refs.go         ids of VMs that are remembered
//	batch.go        one read for all calls that want something at about the same time
//
// The part of the inventory that is used:
//
//	sites.go        finds the Place in the inventory, and remembers it
//	zones.go        looks for the zones: resource pools under names
//	search.go       looks for one object, and says what is missing
//	cluster.go      clusters and their DRS rules
//	site.go         what the Place names, found
//
// The session:
//
//	calls.go        begins and ends calls
//	session.go      one login for all calls when a session has ended
//	login.go        password, token or certificate
//	retry.go        requests that read are sent up to three times
//	send.go         sends requests, and reads their answers
//	jar.go          the cookie of the session
//	volume.go       how many objects an answer may have
//	faults.go       what the faults of the vCenter mean
//
// Values:
//
//	properties.go   reads properties
//	interfaces.go   network interfaces as the guests report them
//	entity.go       what was read of a VM or of another object
//	operationid.go  the ids of operations
//	mark.go         the owner's mark, and the ids of VMs
//	devices.go      the disks and adapters of a VM
//	naming.go       which names there can be
//	config.go       Config, and Place: the part of the inventory that is used
//	credentials.go  the kinds of credentials
//	refusals.go     errors of calls
package vsphere
