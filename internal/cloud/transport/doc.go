// Package transport sends HTTP requests to a private cloud, whichever API the
// cloud has. Each concern is an http.RoundTripper that wraps the next one; New
// assembles them. A request passes through them in this order:
//
//	transport.go    New, and what a backend does with a Transport
//	call.go         what the wrappers need to know of a call, in its context
//	trace.go        a span of a request and its answer, if traces are exported
//	hold.go         no request is sent until the time that the cloud asked for
//	limits.go       rate, burst and requests in flight, shared fairly between flows
//	permit.go       no request that changes something is sent by a process that may not act
//	metrics.go      requests, their duration, requests in flight, the end of a hold
//	log.go          one line a request at V(1)
//	body.go         bounds what is read of an answer
//	redirect.go     follows a GET within its origin, and no other redirect
//	once.go         a request that may change something is sent once
//	base.go         connections: TLS, CA, timeouts
//
// The wrappers use:
//
//	limiter.go      start-time fair queueing for limits.go
//	shares.go       the shares of admission reviews and of refreshes
//	load.go         what waits in limiter.go, for diagnostics
//	retryafter.go   reads Retry-After for hold.go
//
// Clients share, and have in common:
//
//	holds.go        what outlives a client: Retry-After, refused credentials
//	usage.go        the calls under way, for Close
//	times.go        how long calls may take, and how long sessions and names are used
//	retry.go        whether and when a call is tried again
//
// Backends make their errors with:
//
//	classify.go     why a request failed, as a cloud.Error
//	handshake.go    why there is no TLS connection
//	redact.go       texts without secrets
//	encodings.go    the encodings in which redact.go looks for them
//	text.go         texts on one line and of bounded length
//
// A backend's library is given Transport.Client. The package knows neither
// Kubernetes nor any library or JSON of a backend.
package transport
