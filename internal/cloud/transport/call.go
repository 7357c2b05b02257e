package transport

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/privatecloud/operator/internal/cloud"
)

// Call is what the wrappers need to know of the request that a context is for.
// Every field may be zero.
type Call struct {
	// Route is the path as a template, for metrics and logs; never an id.
	Route string
	// CloudWide is set for a call about the cloud as a whole, which all callers
	// depend on, such as a listing or a login. It belongs to no flow, and waits
	// for the limiter for as long as Config.Timeout: that the other calls are many
	// must not look like an outage.
	CloudWide bool
	// MaxBody bounds the body of a successful answer, in bytes; DefaultMaxBody if
	// zero. Other answers are bounded by MaxErrorBody.
	MaxBody int64
	// Stream is set for a call whose answer goes on for as long as the cloud has
	// something to report. It has its share of the limits until the answer begins, and
	// its end says nothing about how long the cloud takes.
	Stream bool
	// LongPoll is set for a call that the cloud answers when it has something to report.
	// It has its share of the limits until the request is written. It waits for the answer
	// as long as its context lasts, which says nothing about how long the cloud takes.
	LongPoll bool
	// Read is set for a call that changes nothing, whatever its method: it needs no permit.
	Read bool
}

type callKey struct{}

// WithCall returns a context for the requests of one call.
func WithCall(ctx context.Context, call Call) context.Context {
	return context.WithValue(ctx, callKey{}, call)
}

func callOf(ctx context.Context) Call {
	call, _ := ctx.Value(callKey{}).(Call)
	return call
}

// flow returns the flow that the call waits in.
func (c Call) flow(ctx context.Context) cloud.Flow {
	if c.CloudWide {
		return cloud.Flow{}
	}
	return cloud.FlowOf(ctx)
}

// TraceSent returns a context for one exchange, and a function that returns how
// often its request was written: 0 if it cannot have reached the cloud. Headers
// precede the body, so a cloud that did not get all headers cannot have acted. More
// than 1 means that a library sent it again, and that the answer is about the last
// of them only.
func TraceSent(ctx context.Context) (context.Context, func() int) {
	var sent atomic.Int32
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { sent.Add(1) },
	})
	return ctx, func() int { return int(sent.Load()) }
}
