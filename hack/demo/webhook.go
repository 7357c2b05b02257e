package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	prohibited  = samples + "/prohibited"
	webhookName = "private-cloud-operator"
)

// prepareWebhook makes the serving certificate of the name check webhook and
// registers the webhook with the API server.
func (s *stack) prepareWebhook(ctx context.Context) error {
	var err error
	if s.webhook, err = s.api.NewWebhook(); err != nil {
		return err
	}
	return s.webhook.Register(ctx, webhookName, nil)
}

// showNameCheck applies a VM whose name the cloud prohibits. The webhook rejects
// it. Without the webhook, as when no operator runs, it is stored, and the VM
// reports the prohibition in its conditions.
func (s *stack) showNameCheck(ctx context.Context) error {
	var refusal string
	err := poll(ctx, func(ctx context.Context) bool {
		_, err := s.kubectl(ctx, "apply", "-f", prohibited, "--dry-run=server")
		refusal = fmt.Sprint(err)
		return strings.Contains(refusal, "is prohibited")
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to be rejected: %w\n%s", prohibited, err, refusal)
	}
	output, err := s.kubectl(ctx, "apply", "-f", prohibited)
	if err == nil {
		return fmt.Errorf("%s was stored, although the cloud prohibits the name: %s", prohibited, output)
	}
	s.say("kubectl apply -f %s", prohibited)
	_, refusal, _ = strings.Cut(err.Error(), "\n")
	s.say("  %s", refusal)

	if err := s.webhook.Unregister(ctx, webhookName); err != nil {
		return err
	}
	// The API server observes the change with a delay.
	err = poll(ctx, func(ctx context.Context) bool {
		output, err = s.kubectl(ctx, "apply", "-f", prohibited)
		return err == nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to be stored: %w", prohibited, err)
	}
	s.say("the same again, while the name check webhook is not registered")
	s.say("  %s", bytes.TrimSpace(output))
	return s.webhook.Register(ctx, webhookName, nil)
}

// poll waits until condition holds, for at most shortWait.
func poll(ctx context.Context, condition func(context.Context) bool) error {
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, shortWait, true, func(ctx context.Context) (bool, error) {
		return condition(ctx), nil
	})
}
