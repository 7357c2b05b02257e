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
// A Cloud consists of parts that share a core. A part calls only the parts that its struct
// lists: the handlers and the stages of a call use resources such as servers and networks,
// and these use the records of servers and the state. Only Cloud refers to all parts.
//
//	options.go, clock.go
//	                the options, and the source of time
//	cloud.go        the parts of a cloud, and its start
//	lifetime.go     the end of a cloud
//	core.go         the state, the settings and the clock, which the parts share
//	handlers.go     the handlers of a cloud and their routes
//	router.go       the route of a call
//	servers*.go, update.go, snapshots.go, revert.go, networks.go, networkextras.go, hosts.go, sessions.go, events.go
//	                one resource each
//	names.go, idempotency.go, problem.go
//	                names, idempotency keys and error bodies
//	records.go      how changes of servers are stored
//	operations.go   changes of servers that take time
//	shutdown.go     guests that are asked to shut down
//	suspend.go      servers that are suspended
//	console.go      what the consoles of servers print
//	disks.go        the disks of servers, and the root disk
//	reach.go        security groups, allowed and public addresses of servers
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
//	control.go      the methods that tests call
//	admin_servers.go, settings.go
//	                changes made without the REST API, which the admin handler serves
//	page.go, overview*.go
//	                the page for people, whose files are in page/, and what it shows
package mockcloud
