// Package rest implements cloud.Client over the private cloud's REST API, core
// and extended profile. It is the only package that imports resty.
//
// A call passes through these files in this order:
//
//	client.go          New, and the interfaces of package cloud, whose methods call the client of a resource
//	servers.go         one method a call; update.go, console.go, networks.go, snapshots.go, revert.go and
//	                   hosts.go likewise; operations.go also reads references to operations
//	pages.go           pages of the listing of servers
//	capabilities.go    what the cloud can do, asked for where the call depends on it
//	call.go            one timeout, at most three tries, only where that is safe
//	session.go         the token, renewed once on 401
//	exchange.go        one request and its answer, through resty and package transport
//	classify.go        what the answer means for this call
//	keys.go            refusals that are about the idempotency key
//	problem.go         the cloud's code and reason in a refusal, without secrets
//	stream.go          the body of a listing, decoded while it arrives, within bounds
//	decode.go          the body of a success, validated, as domain types
//
// Changes that the cloud reports by itself have a path of their own:
//
//	watch.go           a stream of events, continued when it breaks
//	events.go          one event, validated, as a change
//
// They use:
//
//	config.go          what a client is made from, with defaults
//	credentials.go     token, or username and password; never printed
//	requests.go        the cloud's JSON as requests have it
//	wire.go            the cloud's JSON in answers, field by field
//	interfaces.go      network interfaces of servers
//	disks.go           disks of servers, and the root disk
//	reach.go           security groups, allowed and public addresses of servers
//	json.go            objects and arrays whose names are compared exactly
//	syntax.go          why a body is not JSON
//	ignored.go         fields of answers that make no sense
//	escape.go          names and ids as path segments
//
// Package transport holds what lies below: limits, Retry-After, metrics, log,
// redirects, TLS. Resty's own retries stay off, since they cover POST as well.
package rest
