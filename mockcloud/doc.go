// Package mockcloud is a private cloud to develop and test against: an HTTP
// server with a real store, both profiles of the REST API, faults that can be
// switched on call by call, and a ledger of everything that took effect.
//
// A test starts it in process:
//
//	cloud, err := mockcloud.New(mockcloud.Options{Profile: mockcloud.Extended})
//	server := httptest.NewServer(cloud.Handler())
//
// Close the Cloud before the httptest.Server: closing lets held and streaming
// calls go, for which the server would otherwise wait.
//
// Where things are: options.go what can be set; cloud.go start and end;
// router.go from path to handler; servers*.go, networks.go, hosts.go,
// sessions.go, events.go one resource each; state.go and transitions.go the
// indexes and what time does to them; store*.go what survives a restart;
// fault*.go misbehaviour; ledger.go and calls.go what tests look at; steer*.go
// changes made behind the client's back; admin.go the same over HTTP.
package mockcloud
