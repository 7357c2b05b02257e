// Package cloud defines what this operator expects of a private cloud: its
// objects, the calls to it, and the ways in which a call can fail.
//
//	client.go          Client, which each kind of cloud implements
//	server.go          servers
//	change.go          changes of servers in place
//	interfaces.go      network interfaces of servers
//	disks.go           disks of servers, and the root disk
//	reach.go           security groups, allowed and public addresses of servers
//	heartbeat.go       heartbeats of guests
//	flavor.go          sizes that have names
//	image.go           what servers were made from
//	placement.go       anti-affinity of servers
//	operation.go       changes that take time
//	watch.go           changes that a cloud reports by itself
//	network.go         networks
//	snapshot.go        snapshots of servers
//	console.go         what the serial consoles of servers printed
//	host.go            hosts
//	capabilities.go    what a cloud can do beyond the core profile
//	id.go              spellings of ids
//	errors.go          Error and its kinds
//	public.go          what tenants may read of an error
//	flow.go            which calls share the limits of a cloud
//	permit.go          whether a request may still be sent
//
// Nothing here knows HTTP or Kubernetes. Package rest implements Client over
// the cloud's REST API, on top of package transport. Package cloudtest holds the
// suite that every implementation must pass.
package cloud
