package cloud

import (
	"context"
	"time"
)

// Flow is a group of calls to a cloud. Where calls wait for the limits of a cloud,
// flows share them evenly, however many calls each has. Calls of no flow form a
// flow together.
type Flow struct {
	// Name identifies the flow; empty for none.
	Name string
	// Class bounds what all calls of a class get together, which their flows divide evenly.
	Class FlowClass
	// Since is when the work began that a call is part of. Within a flow, calls of
	// older work are sent first.
	Since time.Time
}

// FlowClass is a class of calls that get a part of the limits only.
type FlowClass string

const (
	// Reviews are the calls of admission reviews. They get a small part.
	Reviews FlowClass = "reviews"
	// Refreshes are calls that nobody waits for, such as periodic reads of the CPU use.
	// They get half, and are refused rather than wait for it.
	Refreshes FlowClass = "refreshes"
)

type flowKey struct{}

// WithFlow returns a context for work that begins now, whose calls belong to a flow.
func WithFlow(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, flowKey{}, Flow{Name: name, Since: time.Now()})
}

// WithReviewFlow returns a context for an admission review of an object in a
// namespace. Any number of reviews leaves most of the limits to other work, also to
// that of the same namespace.
func WithReviewFlow(ctx context.Context, namespace string) context.Context {
	return context.WithValue(ctx, flowKey{}, Flow{Name: namespace, Class: Reviews, Since: time.Now()})
}

// WithRefreshes returns a context whose calls are refreshes, of the same flow, that wait
// since a time, such as the last read. What waits longest is read first.
func WithRefreshes(ctx context.Context, since time.Time) context.Context {
	flow := FlowOf(ctx)
	flow.Class, flow.Since = Refreshes, since
	return context.WithValue(ctx, flowKey{}, flow)
}

// FlowOf returns the flow that a context's calls belong to, the zero one if none.
func FlowOf(ctx context.Context) Flow {
	flow, _ := ctx.Value(flowKey{}).(Flow)
	return flow
}
