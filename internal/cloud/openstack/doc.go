// Package openstack implements cloud.Client over OpenStack: one project in one region,
// through the services identity (keystone), compute (nova), network (neutron), image
// (glance) and block storage (cinder). It is the only package that imports gophercloud.
//
// A call passes through these files in this order:
//
//	servers.go         servers: names, reads, deletions
//	create.go          servers: creates
//	list.go            servers: listings
//	watch.go           a watch: the full set, and when to ask for changes
//	changes.go         a watch: what changed, and what of it was not reported yet
//	update.go          changes of servers: labels, power, size
//	reach.go           changes of servers: security groups and public address
//	diskretention.go   disks that are kept when their server is deleted
//	disks.go           changes of servers: disks and root disk
//	operations.go      how far a change is, read from the server
//	snapshots.go       snapshots: listings, creates, deletions, reverts of servers
//	diskdeletion.go    disks of a server that is deleted, or gone
//	console.go         what the consoles of servers printed
//	networks.go        networks: reads and listings
//	networkcreate.go   networks: creates, in two steps
//	networkchange.go   networks: changes and deletions
//	routers.go         routers of networks: reads
//	routerchange.go    routers of networks: creates, changes and deletions
//	capabilities.go    what the cloud can do, and whether the defaults exist
//	session.go         one call: token, at most three tries, only where that is safe
//	auth.go            the token: one login for all calls, again before it expires and on 401
//	services.go        the services of a catalog, and those to which no token is sent
//	exchange.go        one request and its answer
//	classify.go        what a refusal means for the call
//	stream.go          the body of a listing, decoded while it arrives, within bounds
//	faults.go          why a server is in error, as users may read it
//	addresses.go       addresses of servers as network interfaces
//	wire.go            servers in the JSON of compute, as domain types
//
// They use:
//
//	client.go          New and Close
//	call.go            what a call is, and what a login yields
//	errors.go          errors of calls that are not sent, and of answers
//	config.go          what a client is made from, with defaults
//	credentials.go     what somebody logs in with
//	cloudsyaml.go      credentials and settings of a clouds.yaml
//	labels.go          labels as metadata and tags
//	userdata.go        user data, as compute takes it
//	images.go          the image for a template
//	imagetags.go       the image that has certain tags
//	imageneeds.go      what an image needs of a flavor
//	flavors.go         the flavors of the project, and how long a list of them is used
//	flavorkinds.go     flavors that are allowed, and those for certain hosts or devices
//	flavorchoice.go    the flavor for a size or a name
//	attachments.go     the networks of a new server
//	snapshotimages.go  the images that were made from servers
//	servergroups.go    server groups, which keep servers on different hosts
//	securitygroups.go  security groups, and which a server has
//	allowedaddresses.go  addresses that a server may use beside its own
//	floatingips.go     floating addresses of servers, also of those that are gone
//	ports.go           the network interfaces of a server
//	volumes.go         volumes: reads and calls that change one
//	volumesknown.go    which disks the volumes of servers are, and how long that is used
//	pages.go           listings of networks, subnets and flavors, within bounds
//	lookup.go          ids of images and networks by name
//	imagenames.go      names of the images that servers were made from
//	pools.go           the addresses of a subnet but the gateway
//
// Package transport holds what lies below. The retries of gophercloud and its renewal of
// tokens stay off: they would cover POST as well.
package openstack
