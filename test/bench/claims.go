package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
)

// withClaims calls do while the admission policy of the component claim-at-creation is
// in the cluster, so that VMs are created with their claim.
func (s *stage) withClaims(ctx context.Context, do func() error) (err error) {
	remove, err := s.env.ClaimAtCreation(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		ctx := context.WithoutCancel(ctx)
		err = errors.Join(err, remove(ctx), s.claims(ctx, false))
	}()
	if err := s.claims(ctx, true); err != nil {
		return err
	}
	return do()
}

// claims waits until VMs are created with their claim, or are not any more.
func (s *stage) claims(ctx context.Context, wanted bool) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, waitTimeout, true, func(ctx context.Context) (bool, error) {
		claimed, err := testkit.ClaimedAtCreation(ctx, s.client, newVM("probe", 0, pcapi.DefaultCloudName))
		return claimed == wanted, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the admission policy, in effect %t: %w", wanted, err)
	}
	return nil
}
