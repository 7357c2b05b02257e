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
	prohibited = samples + "/prohibited"
	doorName   = "private-cloud-operator"
)

// makeDoor makes the certificate that the operator checks names with.
func (s *stack) makeDoor(ctx context.Context) error {
	var err error
	if s.door, err = s.api.NewDoor(); err != nil {
		return err
	}
	return s.door.Open(ctx, doorName, nil)
}

// knock shows what becomes of a name that the cloud prohibits: it is refused
// before it is stored; and where nobody answers for the API server, as when no
// operator runs, it is stored, and the VM says so itself.
func (s *stack) knock(ctx context.Context) error {
	var refusal string
	err := s.tries(ctx, func(ctx context.Context) bool {
		_, err := s.kubectl(ctx, "apply", "-f", prohibited, "--dry-run=server")
		refusal = fmt.Sprint(err)
		return strings.Contains(refusal, "is prohibited")
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to be refused: %w\n%s", prohibited, err, refusal)
	}
	output, err := s.kubectl(ctx, "apply", "-f", prohibited)
	if err == nil {
		return fmt.Errorf("%s was stored, though the cloud prohibits the name: %s", prohibited, output)
	}
	s.say("kubectl apply -f %s", prohibited)
	_, refusal, _ = strings.Cut(err.Error(), "\n")
	s.say("  %s", refusal)

	if err := s.door.Shut(ctx, doorName); err != nil {
		return err
	}
	// The API server hears of it a moment later.
	err = s.tries(ctx, func(ctx context.Context) bool {
		output, err = s.kubectl(ctx, "apply", "-f", prohibited)
		return err == nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to be stored: %w", prohibited, err)
	}
	s.say("the same once more, while nobody checks names for the API server")
	s.say("  %s", bytes.TrimSpace(output))
	return s.door.Open(ctx, doorName, nil)
}

func (s *stack) tries(ctx context.Context, holds func(context.Context) bool) error {
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, aMoment, true, func(ctx context.Context) (bool, error) {
		return holds(ctx), nil
	})
}
