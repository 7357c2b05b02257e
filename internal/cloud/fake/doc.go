// Package fake is a cloud in memory for tests. It implements the whole
// cloud.Client and passes cloudtest.Run with any set of capabilities.
//
//	cloud.go       Cloud and its options; each call is made by the client of a resource
//	calls.go       what every call has in common: the log, faults and the hooks
//	names.go       name checks
//	servers.go     servers: read, create, change, delete
//	operations.go  changes that take time
//	list.go        the listing of servers: pages, filters, delays
//	watch.go       changes as they happen
//	disks.go       disks of servers, and the root disk
//	reach.go       security groups, allowed and public addresses of servers
//	placement.go   the hosts of servers
//	interfaces.go  the networks and addresses that creates ask for
//	flavors.go     sizes that have names
//	networks.go    networks
//	console.go     what the consoles of servers printed
//	snapshots.go   snapshots of servers
//	revert.go      reverts to snapshots
//	hosts.go       hosts
//	store.go       servers and networks in their order
//	keys.go        idempotency keys
//	edit.go        what the cloud has, and changes behind the operator's back
//	behaviour.go   how the cloud differs from others
//	limits.go      checks that a client makes before it sends a call
//
// Several clients of one cloud are the same *Cloud: nothing is lost when one of
// them is closed.
package fake
