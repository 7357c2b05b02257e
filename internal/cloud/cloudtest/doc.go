// Package cloudtest holds the suite that every implementation of cloud.Client
// must pass. The capabilities of its cloud select the cases. The suite knows no
// transport: a Fixture says how to lose the answer of an operation.
//
//	suite.go        Run, Fixture and what the tests share
//	must.go         calls that have to succeed, and their operations
//	probe.go        capabilities and names
//	life.go         create, get, list, delete
//	once.go         idempotency keys, unique names, lost answers
//	list.go         paging and label filters
//	change.go       power, size, labels
//	networks.go     networks: their life, keys and names, lost answers
//	routers.go      routers of networks
//	dualstack.go    networks with an IPv6 range
//	attach.go       networks that cannot be created
//	hosts.go        hosts
//	operations.go   changes of servers that take time
//	watch.go        changes that the cloud reports by itself
//	userdata.go     what servers read at their first boot
//	addresses.go    addresses of servers, and heartbeats of guests
//	interfaces.go   several network interfaces, and static addresses
//	disks.go        disks of servers, and their types
//	rootdisk.go     root disks of servers
//	reach.go        security groups, allowed and public addresses of servers
//	placement.go    zones and anti-affinity
//	flavors.go      sizes that have names
//	snapshots.go    snapshots of servers
//	revert.go       reverts to snapshots
//	console.go      what the consoles of servers printed
//	requests.go     creates and changes of which tests record the requests
//	refuse.go       calls that the cloud cannot serve are refused, not sent
package cloudtest
