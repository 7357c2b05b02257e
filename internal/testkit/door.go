package testkit

import "context"

// Door is the former name of Webhook.
//
// Deprecated: only hack/demo uses it.
type Door = Webhook

// NewDoor is the former name of NewWebhook.
//
// Deprecated: only hack/demo uses it.
func (e *Env) NewDoor() (*Webhook, error) { return e.NewWebhook() }

// Open is the former name of Register.
//
// Deprecated: only hack/demo uses it.
func (w *Webhook) Open(ctx context.Context, name string, labels map[string]string) error {
	return w.Register(ctx, name, labels)
}

// Shut is the former name of Unregister.
//
// Deprecated: only hack/demo uses it.
func (w *Webhook) Shut(ctx context.Context, name string) error { return w.Unregister(ctx, name) }
