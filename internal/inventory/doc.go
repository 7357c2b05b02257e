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
//	directory.go  the inventories of all clouds, and the events
//	notifier.go   calls the subscribers of events and poll requests
//	inventory.go  one cloud: connection, brake, publishing a snapshot
//	view.go       what reconcilers read and record
//	polling.go    when the next listing is due, and which objects wait for it
//	waitlist.go   the objects that wait for a listing
//	utilization.go  the utilization of servers on clouds that do not list it
//	snapshot.go   one complete listing of the servers
//	listed.go     one server of it
//	tags.go       the labels of it that are tags
//	altered.go    owner labels that the cloud has altered
//	index.go      finds its servers by a key, and shares what does not change
//	limits.go     what one listing may hold
//	progress.go   what all listings in progress may hold
//	watch.go      what a cloud reports by itself
//	pace.go       how often changes of one server are published
//	compare.go    how that is compared, as a listing is
//	amend.go      a snapshot with changes
//	changes.go    which servers differ between two snapshots
//	overlay.go    what is known of servers in addition to the last listing
//	supersede.go  which of that a listing or a report is newer than
//	brake.go      when a listing lacks so many servers that it is not trusted
//	ondemand.go   a list that is made when a caller needs it
//	networks.go   the networks, listed on demand
//	hosts.go      the hosts, listed on demand
package inventory
