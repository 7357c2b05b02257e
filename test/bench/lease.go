package main

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// holder is who holds the lease of the operator.
type holder struct {
	// identity is empty if nobody does.
	identity string
	acquired time.Time
	// duration is the time after its last renewal for which others respect the lease.
	duration time.Duration
}

// holder returns who holds the lease.
func (s *stage) holder(ctx context.Context) (holder, error) {
	var lease coordinationv1.Lease
	err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: leasePrefix + pcapi.GroupVersion.Group}, &lease)
	if apierrors.IsNotFound(err) {
		return holder{}, nil
	}
	if err != nil {
		return holder{}, fmt.Errorf("reading the lease: %w", err)
	}
	var h holder
	if lease.Spec.HolderIdentity != nil {
		h.identity = *lease.Spec.HolderIdentity
	}
	if lease.Spec.AcquireTime != nil {
		h.acquired = lease.Spec.AcquireTime.Time
	}
	if lease.Spec.LeaseDurationSeconds != nil {
		h.duration = time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
	}
	return h, nil
}

// leads waits until another process than last holds the lease.
func (s *stage) leads(ctx context.Context, last string) (holder, error) {
	var h holder
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, waitTimeout, true, func(ctx context.Context) (bool, error) {
		var err error
		h, err = s.holder(ctx)
		return h.identity != "" && h.identity != last, err
	})
	if err != nil {
		return h, fmt.Errorf("waiting for a manager to lead: %w", err)
	}
	return h, nil
}
