package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const (
	// neighbour is the namespace of VMs that do not belong to the group.
	neighbour = "neighbour"
	// limitedCloud is a Cloud with the default limits.
	limitedCloud = "limited"
	// largeGroup is the name of the group.
	largeGroup = "crowd"
	// idleVMs is the number of VMs that are created without the group.
	idleVMs = 100
	// aimedWait is the goal for the time from create to Ready of a VM while a group
	// grows, as the 99th percentile, and aimedRatio that for its ratio to the time
	// without the group.
	aimedWait  = time.Second
	aimedRatio = 3
)

// beside creates one VM after the other in a namespace of its own: first without
// other work, then while a group grows on the same Cloud.
func beside(ctx context.Context, s *stage) ([]row, error) {
	if err := s.pollEvery(ctx, ratePoll); err != nil {
		return nil, err
	}
	limited, err := startMock(ctx, s.options, s.folder, "mockcloud-limited")
	if err != nil {
		return nil, err
	}
	rows, err := s.neighbours(ctx, limited)
	return rows, errors.Join(err, limited.stop())
}

func (s *stage) neighbours(ctx context.Context, limited *mock) ([]row, error) {
	at := newCloud(limitedCloud, limited)
	at.Spec.Limits = pcapi.CloudLimits{}
	for _, object := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: neighbour}}, at, newGroup(largeGroup, limitedCloud)} {
		if err := s.client.Create(ctx, object); err != nil {
			return nil, fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	m, err := s.startManager(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.listed(ctx, limited, 1); err != nil {
		return nil, stopAfter(err, m)
	}
	rows, err := s.compare(ctx, at)
	if err != nil {
		return nil, stopAfter(err, m)
	}
	if err := s.clear(ctx); err != nil {
		return nil, stopAfter(err, m)
	}
	return rows, errors.Join(s.client.Delete(ctx, at), m.stop())
}

func (s *stage) compare(ctx context.Context, at *pcapi.Cloud) ([]row, error) {
	f, err := s.followIn(ctx, neighbour, "")
	if err != nil {
		return nil, err
	}
	defer f.stop()
	say("creating %d VMs one after the other, without other work", idleVMs)
	created := 0
	idle, err := s.oneByOne(ctx, f, "idle", func() bool { created++; return created > idleVMs })
	if err != nil {
		return nil, err
	}
	say("the same while a group grows to %d", s.options.vms)
	begun := time.Now()
	full, err := s.grow(ctx, largeGroup, s.options.vms)
	if err != nil {
		return nil, err
	}
	var grown error
	beside, err := s.oneByOne(ctx, f, "beside", func() bool {
		select {
		case grown = <-full:
			return true
		default:
			return false
		}
	})
	if err := errors.Join(err, grown); err != nil {
		return nil, err
	}
	return besideRows(s.options.vms, time.Since(begun), at.Spec.Limits, idle, beside), nil
}

// grow scales a group. The channel receives when all members are Ready.
func (s *stage) grow(ctx context.Context, group string, n int) (<-chan error, error) {
	f, err := s.follow(ctx, group)
	if err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() {
		defer f.stop()
		done <- f.ready(ctx, n)
	}()
	return done, s.scale(ctx, group, n)
}

// oneByOne creates VMs, each when the previous one is Ready, until enough returns
// true. It returns the time from create to Ready of each.
func (s *stage) oneByOne(ctx context.Context, f *follower, prefix string, enough func() bool) ([]time.Duration, error) {
	var took []time.Duration
	for i := 0; !enough(); i++ {
		f.prefix = fmt.Sprintf("%s%d", prefix, i)
		vm := newVM(f.prefix, 0, limitedCloud)
		vm.Namespace = neighbour
		begun := time.Now()
		if err := s.client.Create(ctx, vm); err != nil {
			return nil, fmt.Errorf("creating VM %s: %w", vm.Name, err)
		}
		if err := f.ready(ctx, 1); err != nil {
			return nil, err
		}
		took = append(took, time.Since(begun))
	}
	return took, nil
}

// clear deletes the objects on the limited Cloud, without the limits.
func (s *stage) clear(ctx context.Context) error {
	unlimited := newCloud(limitedCloud, &mock{}).Spec.Limits
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"limits":{"requestsPerSecond":%d,"burst":%d,"maxInFlight":%d}}}`,
		unlimited.RequestsPerSecond, unlimited.Burst, unlimited.MaxInFlight))
	if err := s.client.Patch(ctx, &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: limitedCloud}}, patch); err != nil {
		return fmt.Errorf("raising the limits of Cloud %s: %w", limitedCloud, err)
	}
	if err := s.client.Delete(ctx, newGroup(largeGroup, "")); err != nil {
		return fmt.Errorf("deleting VmGroup %s: %w", largeGroup, err)
	}
	if err := s.client.DeleteAllOf(ctx, &pcapi.VM{}, client.InNamespace(neighbour)); err != nil {
		return fmt.Errorf("deleting the VMs in namespace %s: %w", neighbour, err)
	}
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, waitTimeout, true, func(ctx context.Context) (bool, error) {
		var list pcapi.VMList
		err := s.client.List(ctx, &list, client.Limit(1))
		return len(list.Items) == 0, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the VMs of Cloud %s to be deleted: %w", limitedCloud, err)
	}
	return nil
}

func besideRows(n int, took time.Duration, limits pcapi.CloudLimits, idle, beside []time.Duration) []row {
	quiet, busy := percentile(idle, 99), percentile(beside, 99)
	ratio := busy.Seconds() / quiet.Seconds()
	text := func(of []time.Duration) (figure, detail string) {
		return inMillis(percentile(of, 99)), fmt.Sprintf("%d VMs, p50 %s, longest %s", len(of), inMillis(percentile(of, 50)), inMillis(slices.Max(of)))
	}
	alone, aloneDetail := text(idle)
	crowded, crowdedDetail := text(beside)
	return []row{
		heading(fmt.Sprintf("One VM after the other, while a group in another namespace grows to %d on the same Cloud (%d calls per second)",
			n, limits.RequestsPerSecond)),
		info("p99 from create to Ready, without other work", alone, aloneDetail),
		aim("p99 beside the group", crowded, "≤ "+inMillis(aimedWait), busy <= aimedWait, crowdedDetail),
		aim("times as long", fmt.Sprintf("%.1f", ratio), fmt.Sprintf("≤ %d", aimedRatio), ratio <= aimedRatio, ""),
		info("the group meanwhile", fmt.Sprintf("%.0f VM/s", perSecond(n, took)), "two calls per VM, and those of the other VMs"),
	}
}

func inMillis(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// percentile returns the smallest value that p percent of the values do not exceed.
func percentile(values []time.Duration, p int) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)*p+99)/100-1]
}
