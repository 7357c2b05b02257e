package cloud

import (
	"context"
	"time"
)

// Flow is what calls to a cloud belong to where they wait for each other. Flows
// share evenly, however many calls each has. Calls of no flow are a flow together.
type Flow struct {
	// Name tells flows apart; empty for none.
	Name string
	// Since is when the work began that a call is part of. Within a flow, what
	// began first is finished first.
	Since time.Time
}

type flowKey struct{}

// WithFlow returns a context for work that begins now, whose calls belong to a flow.
func WithFlow(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, flowKey{}, Flow{Name: name, Since: time.Now()})
}

// FlowOf returns the flow that a context's calls belong to, the zero one if none.
func FlowOf(ctx context.Context) Flow {
	flow, _ := ctx.Value(flowKey{}).(Flow)
	return flow
}
