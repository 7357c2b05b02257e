package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

const (
	// neighbour is the namespace of the VMs whose time is taken.
	neighbour = "neighbour"
	// busyCloud is the Cloud with the other work, and calmCloud one without.
	busyCloud, calmCloud = "busy", "calm"
	// crowd is the name of the group, and the prefix of the VMs, that are the other work.
	crowd = "crowd"
	// pace is the time from one create to the next, and samples how many there are.
	pace    = 500 * time.Millisecond
	samples = 40
	// aimedRatio is the goal for the time from create to Ready of a VM beside other work, as
	// the 99th percentile, against that without.
	aimedRatio = 2
)

// otherWork is what goes on while VMs are created.
type otherWork struct {
	title string
	args  []string
	// limits are those of the busy Cloud.
	limits pcapi.CloudLimits
	// same is whether the VMs are on the busy Cloud.
	same bool
	// prepare is called before the times without other work are taken, and begin after.
	prepare, begin func(ctx context.Context, s *stage, at *mock) error
}

func otherWorks(vms int) []otherWork {
	slow, usual := pcapi.CloudLimits{RequestsPerSecond: 20, Burst: 40}, pcapi.CloudLimits{}
	return []otherWork{{
		title: fmt.Sprintf("beside a group of another namespace on the same Cloud that grows to %d, 50 calls/s", vms), limits: usual, same: true,
		begin: func(ctx context.Context, s *stage, _ *mock) error {
			if err := s.client.Create(ctx, newGroup(crowd, busyCloud)); err != nil {
				return fmt.Errorf("creating VmGroup %s: %w", crowd, err)
			}
			return s.scale(ctx, crowd, vms)
		},
	}, {
		title: "beside 1000 new VMs of another namespace on the same Cloud, 20 calls/s", limits: slow, same: true,
		begin: func(ctx context.Context, s *stage, _ *mock) error { return s.put(ctx, crowd, 1000, busyCloud) },
	}, {
		title: "beside 600 VMs on the same core Cloud, listed every 10 s, 20 calls/s", limits: slow, same: true, args: []string{"--profile=core"},
		begin: func(ctx context.Context, s *stage, at *mock) error {
			if err := s.limit(ctx, newCloud(busyCloud, &mock{}).Spec.Limits); err != nil {
				return err
			}
			if err := s.create(ctx, crowd, 600, busyCloud); err != nil {
				return err
			}
			if err := s.limit(ctx, slow); err != nil {
				return err
			}
			// The VMs of a Cloud wait for the first listing with new limits. One with the old
			// limits may be under way.
			return s.polled(ctx, at)
		},
	}, {
		title: "beside 200 new VMs on another Cloud that takes 4 s for a call", limits: usual,
		begin: func(ctx context.Context, s *stage, at *mock) error {
			return errors.Join(at.fault(ctx, mockcloud.Fault{Delay: mockcloud.Duration(4 * time.Second)}), s.put(ctx, crowd, 200, busyCloud))
		},
	}, {
		title: "beside 200 new VMs on another Cloud that does not answer", limits: usual,
		begin: func(ctx context.Context, s *stage, at *mock) error {
			return errors.Join(at.fault(ctx, mockcloud.Fault{Hold: true}), s.put(ctx, crowd, 200, busyCloud))
		},
	}, {
		title: "beside 500 VMs on another Cloud whose outage ends", limits: newCloud(busyCloud, &mock{}).Spec.Limits,
		prepare: func(ctx context.Context, s *stage, at *mock) error {
			return errors.Join(at.fault(ctx, mockcloud.Fault{Status: http.StatusServiceUnavailable}), s.put(ctx, crowd, 500, busyCloud))
		},
		begin: func(ctx context.Context, _ *stage, at *mock) error { return at.heal(ctx) },
	}}
}

const benchFault = "bench"

// fault makes all calls of the cloud fail in a way.
func (m *mock) fault(ctx context.Context, f mockcloud.Fault) error {
	f.ID = benchFault
	if err := m.ask(ctx, http.MethodPost, "/faults", f, nil); err != nil {
		return fmt.Errorf("injecting a fault: %w", err)
	}
	return nil
}

// heal ends the fault, if there is one.
func (m *mock) heal(ctx context.Context) error {
	if err := m.ask(ctx, http.MethodDelete, "/faults", nil, nil); err != nil {
		return fmt.Errorf("removing the fault: %w", err)
	}
	return nil
}

// beside creates one VM after the other in a namespace of its own: first without other
// work, and then beside it.
func beside(ctx context.Context, s *stage) ([]row, error) {
	if err := s.pollEvery(ctx, ratePoll); err != nil {
		return nil, err
	}
	calm, err := startMock(ctx, s.options, s.folder, "mockcloud-calm")
	if err != nil {
		return nil, err
	}
	rows, err := s.neighbours(ctx, calm)
	return rows, errors.Join(err, calm.stop())
}

func (s *stage) neighbours(ctx context.Context, calm *mock) ([]row, error) {
	at := newCloud(calmCloud, calm)
	at.Spec.Limits = pcapi.CloudLimits{}
	for _, object := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: neighbour}}, at} {
		if err := s.client.Create(ctx, object); err != nil {
			return nil, fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	m, err := s.startManager(ctx)
	if err != nil {
		return nil, err
	}
	rows := []row{heading(fmt.Sprintf("From create to Ready of one VM, p99 of %d, against that without other work", samples))}
	for i, work := range otherWorks(s.options.vms) {
		more, err := s.besideWork(ctx, fmt.Sprintf("w%d", i), work)
		if err != nil {
			return nil, stopAfter(fmt.Errorf("%s: %w", work.title, err), m)
		}
		rows = append(rows, more)
	}
	return rows, errors.Join(s.client.Delete(ctx, at), m.stop())
}

// besideWork takes the times without and with other work, which it removes then.
func (s *stage) besideWork(ctx context.Context, prefix string, work otherWork) (row, error) {
	say("%s", work.title)
	at, err := startMock(ctx, s.options, s.folder, "mockcloud-"+prefix, work.args...)
	if err != nil {
		return row{}, err
	}
	busy, on := newCloud(busyCloud, at), calmCloud
	busy.Spec.Limits, busy.Spec.PollInterval = work.limits, metav1.Duration{Duration: 10 * time.Second}
	if err := s.client.Create(ctx, busy); err != nil {
		return row{}, errors.Join(fmt.Errorf("creating Cloud %s: %w", busyCloud, err), at.stop())
	}
	if work.same {
		on = busyCloud
	}
	measured, err := s.compare(ctx, prefix, on, work, at)
	if err == nil {
		err = s.clear(ctx, at)
	}
	return measured, errors.Join(err, at.stop())
}

func (s *stage) compare(ctx context.Context, prefix, on string, work otherWork, at *mock) (row, error) {
	if err := s.listed(ctx, at, 1); err != nil {
		return row{}, err
	}
	if work.prepare != nil {
		if err := work.prepare(ctx, s, at); err != nil {
			return row{}, err
		}
	}
	f, err := s.followIn(ctx, neighbour, "")
	if err != nil {
		return row{}, err
	}
	defer f.stop()
	idle, err := s.paced(ctx, f, prefix+"-idle", on)
	if err != nil {
		return row{}, err
	}
	if err := work.begin(ctx, s, at); err != nil {
		return row{}, err
	}
	busy, err := s.paced(ctx, f, prefix+"-busy", on)
	if err != nil {
		return row{}, err
	}
	ratio := percentile(busy, 99).Seconds() / percentile(idle, 99).Seconds()
	detail := fmt.Sprintf("p99 %s, p50 %s, longest %s; without %s, %s, %s", inMillis(percentile(busy, 99)), inMillis(percentile(busy, 50)),
		inMillis(slices.Max(busy)), inMillis(percentile(idle, 99)), inMillis(percentile(idle, 50)), inMillis(slices.Max(idle)))
	say("  times as long: %.1f; %s", ratio, detail)
	return aim(work.title+", times as long", fmt.Sprintf("%.1f", ratio), fmt.Sprintf("≤ %d", aimedRatio), ratio <= aimedRatio, detail), nil
}

// paced creates VMs, each when the last one is Ready and pace has passed. It returns the
// time from create to Ready of each.
func (s *stage) paced(ctx context.Context, f *follower, prefix, on string) ([]time.Duration, error) {
	var took []time.Duration
	for i := range samples {
		f.prefix = fmt.Sprintf("%s%d", prefix, i)
		vm := newVM(f.prefix, 0, on)
		vm.Namespace = neighbour
		begun := time.Now()
		if err := s.client.Create(ctx, vm); err != nil {
			return nil, fmt.Errorf("creating VM %s: %w", vm.Name, err)
		}
		if err := f.ready(ctx, 1); err != nil {
			return nil, err
		}
		took = append(took, time.Since(begun))
		select {
		case <-time.After(pace - time.Since(begun)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return took, nil
}

func (s *stage) limit(ctx context.Context, limits pcapi.CloudLimits) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"limits":{"requestsPerSecond":%d,"burst":%d,"maxInFlight":%d}}}`,
		limits.RequestsPerSecond, limits.Burst, max(16, limits.MaxInFlight)))
	if err := s.client.Patch(ctx, &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: busyCloud}}, patch); err != nil {
		return fmt.Errorf("changing the limits of Cloud %s: %w", busyCloud, err)
	}
	return nil
}

// clear deletes the other work and the Cloud, without limits and faults.
func (s *stage) clear(ctx context.Context, at *mock) error {
	if err := errors.Join(at.heal(ctx), s.limit(ctx, newCloud(busyCloud, &mock{}).Spec.Limits)); err != nil {
		return err
	}
	if err := s.client.Delete(ctx, newGroup(crowd, "")); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting VmGroup %s: %w", crowd, err)
	}
	for _, in := range []string{namespace, neighbour} {
		if err := s.client.DeleteAllOf(ctx, &pcapi.VM{}, client.InNamespace(in)); err != nil {
			return fmt.Errorf("deleting the VMs in namespace %s: %w", in, err)
		}
	}
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, waitTimeout, true, func(ctx context.Context) (bool, error) {
		var list pcapi.VMList
		err := s.client.List(ctx, &list, client.Limit(1))
		return len(list.Items) == 0, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the VMs to be deleted: %w", err)
	}
	return s.deleteCloud(ctx, newCloud(busyCloud, at))
}

// deleteCloud deletes a Cloud and waits until it is gone.
func (s *stage) deleteCloud(ctx context.Context, of *pcapi.Cloud) error {
	if err := s.client.Delete(ctx, of); err != nil {
		return fmt.Errorf("deleting Cloud %s: %w", of.Name, err)
	}
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, waitTimeout, true, func(ctx context.Context) (bool, error) {
		err := s.client.Get(ctx, client.ObjectKeyFromObject(of), of)
		return err != nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("waiting for Cloud %s to be deleted: %w", of.Name, err)
	}
	return nil
}

func inMillis(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// percentile returns the smallest value that p percent of the values do not exceed.
func percentile(values []time.Duration, p int) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)*p+99)/100-1]
}
