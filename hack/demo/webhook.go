package main

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const webhookName = "private-cloud-operator"

// prepareWebhook makes the serving certificate of the name check webhook and
// registers the webhook with the API server.
func (s *stack) prepareWebhook(ctx context.Context) error {
	var err error
	if s.webhook, err = s.api.NewWebhook(); err != nil {
		return err
	}
	return s.webhook.Register(ctx, webhookName, nil)
}

// showNameCheck applies a VM with a name that the cloud refuses.
func (s *stack) showNameCheck(ctx context.Context) error { return s.on.showRefusal(ctx, s) }

// poll waits until condition holds, for at most shortWait.
func poll(ctx context.Context, condition func(context.Context) bool) error {
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, shortWait, true, func(ctx context.Context) (bool, error) {
		return condition(ctx), nil
	})
}
