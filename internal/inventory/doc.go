// Package inventory holds what is known of each cloud, for all reconcilers. The
// servers are listed page by page and published as one snapshot. What this
// process did since the listing began is kept in an overlay. Reads do not call
// the cloud.
//
// Only a complete listing replaces a snapshot. Where the cloud reports changes by
// itself, they are added to it. A reconciler that needs a newer listing, or a
// cloud that is unavailable, is enqueued when it is there; no reconciler lists the
// servers by itself.
//
// A cloud may show a created server late: the answer to a create is kept until
// the settle time has passed, whatever listings lack.
//
// What a cloud has few of (networks, hosts) is listed on demand, once for all
// callers.
//
//	directory.go  the inventories of all clouds
//	inventory.go  one cloud: connection, brake, publishing a snapshot
//	view.go       what reconcilers read and record
//	polling.go    when the next listing is due, and which objects wait for it
//	watch.go      what a cloud reports by itself
//	pace.go       how often changes of one server are published
//	compare.go    how that is compared, as a listing is
//	supersede.go  which recorded answers a listing or a report is newer than
//	overlay.go    what is known of servers in addition to the last listing
//	waitlist.go   the objects that wait for a listing
//	hosts.go      the hosts, listed on demand
//	networks.go   the networks, listed on demand
//	ondemand.go   a list that is made when a caller needs it
//	utilization.go  the utilization of servers on clouds that do not list it
//	connection.go the client, for the parts that call the cloud on demand
//	notifier.go   the events, and the calls of their subscribers
//	settings.go   the fields of a Cloud that concern its inventory
//	listing.go    how all servers are listed
//	intake.go     takes the servers of a listing into a snapshot
//	progress.go   what all listings in progress may hold
//	amend.go      a snapshot with changes
//	changes.go    which servers differ between two snapshots
//	brake.go      when a listing lacks so many servers that it is not trusted
//	snapshot.go   one complete listing of the servers
//	index.go      finds its servers by a key, and shares what does not change
//	limits.go     what one listing may hold
//	altered.go    owner labels that the cloud has altered
//	listed.go     one server of a listing
//	labels.go     the labels that the operator sets: owner labels and tags
package inventory
