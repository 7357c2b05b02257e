package cloud

import "context"

type permitKey struct{}

// WithPermit returns a context whose requests that change something are sent
// only if permitted returns true at the moment of sending: a request may have
// waited for the limits of a cloud until its sender may not act any more.
func WithPermit(ctx context.Context, permitted func() bool) context.Context {
	return context.WithValue(ctx, permitKey{}, permitted)
}

// Permitted reports whether a request with this context may be sent now.
func Permitted(ctx context.Context) bool {
	permitted, ok := ctx.Value(permitKey{}).(func() bool)
	return !ok || permitted()
}
