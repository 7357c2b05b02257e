package vsphere

import (
	"context"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// calls are those under way.
type calls struct {
	usage     *transport.Usage
	transport *transport.Transport
	faults    *faults
}

// begin begins a call, unless its context has ended already. Its context ends after the
// client's timeout. The caller calls end unless there is an error.
func (c *calls) begin(ctx context.Context, op string) (bounded context.Context, end func(), err error) {
	if !c.usage.Begin() {
		return nil, nil, refuse(op, cloud.Unavailable, "the client is closed; another has replaced it")
	}
	if ctx.Err() != nil {
		c.usage.End()
		return nil, nil, c.faults.fail(ctx, op, ctx.Err())
	}
	bounded, cancel := c.transport.WithTimeout(ctx)
	return bounded, func() {
		cancel()
		c.usage.End()
	}, nil
}

// shared makes a call for several callers: it does not end with the first of them, and
// counts for the limits as none's.
func (c *calls) shared(ctx context.Context, do func(context.Context)) error {
	ctx, end, err := c.begin(cloud.WithFlow(context.WithoutCancel(ctx), ""), "")
	if err != nil {
		return err
	}
	go func() {
		defer end()
		do(ctx)
	}()
	return nil
}
