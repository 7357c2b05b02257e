package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const (
	// slowCloud is the Cloud of a vCenter whose clones take slowClone.
	slowCloud = "vsphere-slow"
	slowClone = time.Minute
	// slowMembers is the number of VMs of the group.
	slowMembers = 100
	// aimedSlowGroup is the goal for the time until all members are Ready, and
	// aimedCreating for the time until the status of each says that it is being created.
	aimedSlowGroup = 75 * time.Second
	aimedCreating  = 3 * time.Second
)

// slowGroup measures a group on a vCenter whose clones take a minute.
func slowGroup(ctx context.Context, s *stage) ([]row, error) {
	if err := s.pollEvery(ctx, ratePoll); err != nil {
		return nil, err
	}
	at, err := startVCenter(ctx, s.options, s.folder, "vcsim-slow", "--clone-task="+slowClone.String())
	if err != nil {
		return nil, err
	}
	m, err := s.startManager(ctx)
	if err != nil {
		return nil, errors.Join(err, at.stop())
	}
	say("a group of %d on a vCenter whose clones take %s", slowMembers, slowClone)
	rows, err := s.growSlowly(ctx, at)
	return rows, errors.Join(err, m.stop(), at.stop())
}

func (s *stage) growSlowly(ctx context.Context, at *vcenter) ([]row, error) {
	const group = "slowgroup"
	if err := s.connect(ctx, slowCloud, at); err != nil {
		return nil, err
	}
	if err := s.tune(ctx, slowCloud, ratePoll); err != nil {
		return nil, err
	}
	if err := s.client.Create(ctx, newGroup(group, slowCloud)); err != nil {
		return nil, fmt.Errorf("creating VmGroup %s: %w", group, err)
	}
	if _, err := s.audit.untilQuiet(ctx, operator, time.Second); err != nil {
		return nil, err
	}
	f, err := s.follow(ctx, group)
	if err != nil {
		return nil, err
	}
	defer f.stop()
	statuses := firstStatuses{since: map[string]time.Time{}}
	calls, err := at.during(ctx, func() error {
		if err := s.scale(ctx, group, slowMembers); err != nil {
			return err
		}
		err := f.count(ctx, slowMembers, "being created", func(event watch.Event, vm *pcapi.VM) bool {
			return event.Type != watch.Deleted && statuses.observe(time.Now(), vm)
		})
		if err != nil {
			return err
		}
		return f.ready(ctx, slowMembers)
	})
	if err != nil {
		return nil, err
	}
	entries, err := s.audit.untilQuiet(ctx, operator, time.Second)
	if err != nil {
		return nil, err
	}
	if err := s.scale(ctx, group, 0); err != nil {
		return nil, err
	}
	if err := f.gone(ctx, slowMembers); err != nil {
		return nil, err
	}
	return slowRows(groupOf(entries, nil, group).grown, statuses.longest, calls, s.options.workers), s.disconnect(ctx, slowCloud)
}

// slowRows returns the rows of a group whose members were Ready after a time, and whose
// first statuses came after a time.
func slowRows(ready, shown time.Duration, calls soapCalls, workers int) []row {
	own, _ := calls.split()
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
	return []row{
		heading(fmt.Sprintf("A group of %d on vSphere with clones of %s, %d workers", slowMembers, slowClone, workers)),
		aim("from the create of a member until its status says Creating", seconds(shown), "≤ "+seconds(aimedCreating),
			shown <= aimedCreating, fmt.Sprintf("the longest of %d", slowMembers)),
		aim("from the scale request until all members are Ready", seconds(ready), "≤ "+seconds(aimedSlowGroup), ready <= aimedSlowGroup, ""),
		count("clones", calls["CloneVM_Task"], slowMembers, ""),
		info("SOAP calls of a member until it is Ready, except polls", ratio(own.total(), slowMembers), perEach(own, slowMembers)),
	}
}

// firstStatuses measures how long VMs exist until their status says that they are being
// created.
type firstStatuses struct {
	since   map[string]time.Time
	longest time.Duration
}

// observe reports whether the status of a VM says so.
func (f *firstStatuses) observe(now time.Time, vm *pcapi.VM) bool {
	since, known := f.since[vm.Name]
	if !known {
		since = now
		f.since[vm.Name] = since
	}
	created := meta.FindStatusCondition(vm.Status.Conditions, pcapi.CreatedCondition)
	if created == nil || created.Reason != pcapi.CreatingReason || created.Status == metav1.ConditionTrue {
		return false
	}
	f.longest = max(f.longest, now.Sub(since))
	return true
}
