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
//	options.go      the options
//	cloud.go        start and stop
//	router.go       routes from paths to handlers
//	servers*.go, networks.go, hosts.go, sessions.go, events.go
//	                one resource each
//	state.go        the indexes
//	transitions.go  state changes that happen after some time
//	store*.go       the persistent store
//	fault*.go       faults
//	ledger.go, calls.go
//	                the records that tests read
//	control.go      changes made without the REST API
//	admin.go        the same over HTTP
package mockcloud
