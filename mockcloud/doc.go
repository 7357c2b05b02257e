// Package mockcloud implements a private cloud for development and tests: an HTTP
// server with a persistent store, both profiles of the REST API, faults for
// selected calls, and a ledger of all effects.
//
// A test starts it in its own process:
//
//	cloud, err := mockcloud.New(mockcloud.Options{Profile: mockcloud.Extended})
//	server := httptest.NewServer(cloud.Handler())
//
// Close the Cloud before the httptest.Server, which waits for calls that a fault
// holds and for event streams: Close ends both.
//
//	options.go, clock.go
//	                the options, and the source of time
//	cloud.go        start and stop
//	router.go       routes from paths to handlers
//	servers*.go, update.go, snapshots.go, revert.go, networks.go, hosts.go, sessions.go, events.go
//	                one resource each
//	names.go, idempotency.go, problem.go
//	                names, idempotency keys and error bodies
//	operations.go   changes of servers that take time
//	shutdown.go     guests that are asked to shut down
//	suspend.go      servers that are suspended
//	disks.go        the disks of servers
//	placement.go    the hosts of servers
//	interfaces.go   the networks and addresses that creates ask for
//	addresses.go    the addresses of servers
//	utilisation.go  the CPU utilization of servers
//	openapi.go      the OpenAPI document
//	state.go        the indexes
//	transitions.go  state changes that happen after some time
//	store*.go, handover.go
//	                the persistent store, and its handover to another process
//	fault*.go       faults
//	quirk*.go       the ways in which other clouds differ from the document
//	ledger.go, calls.go, metrics.go
//	                the records that tests and monitoring read
//	control.go      changes made without the REST API
//	admin.go        the same over HTTP, with a handler of its own
//	page.go, overview*.go
//	                the page for people, whose files are in page/, and what it shows
package mockcloud
