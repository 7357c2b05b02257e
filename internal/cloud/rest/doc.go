// Package rest implements cloud.Client over the private cloud's REST API, core
// and extended profile.
//
// A call passes through, in this order:
//
//	call.go         one deadline, at most three tries, only where that is safe
//	session.go      the token, renewed once on 401
//	gate.go         nothing is sent while the cloud asks to be left alone
//	turn.go         rate, burst and number of calls in flight, shared between flows
//	attempt.go      one exchange with the cloud, through resty; bounded reading
//	failure.go      no answer came: why, and whether the cloud may have acted
//	verdict.go      an answer came: what it means for this call
//	decode.go       the answer's body, validated, as domain types
//
// It is the only package that imports resty. Resty's own retries stay off: once
// on they cover POST as well.
package rest
