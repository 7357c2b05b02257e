package external_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/test/volume"
)

const finalizer = "example.com/volume"

var startTime = time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)

type observation = external.Observation[volume.Disk]

// harness is the Volume kind and the inventory of its Cloud.
type harness struct {
	now       time.Time
	kind      *volume.Kind
	inventory *inventory.Inventory
	client    *volume.Cloud
	// enqueued are the names of the objects that the inventory enqueued.
	enqueued []string
}

// newHarness returns a harness whose Cloud is connected and not listed yet.
func newHarness() *harness {
	h := &harness{now: startTime, client: &volume.Cloud{}}
	clock := func() time.Time { return h.now }
	directory := inventory.New(clock, "cluster")
	directory.Subscribe(func(e inventory.Event) {
		for _, ref := range e.Refs {
			h.enqueued = append(h.enqueued, ref.Kind+"/"+ref.Name)
		}
	})
	h.inventory = directory.Cloud("default")
	h.inventory.Configure(inventory.Settings{PollInterval: time.Minute, SettleTime: time.Minute})
	h.inventory.Connect(h.client, cloud.NewCapabilities())
	h.kind = volume.NewKind(h.client, external.Options{Directory: directory, Clock: clock})
	return h
}

// list lists the Cloud.
func (h *harness) list(t *testing.T) {
	t.Helper()
	h.inventory.Polling()
	snapshot, err := inventory.List(t.Context(), h.client, func() time.Time { return h.now })
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	h.inventory.Publish(snapshot)
}

// observe returns an observation of the inventory as it is now.
func (h *harness) observe() *observation {
	return &observation{Now: h.now, Cloud: "default", Inventory: h.inventory, View: h.inventory.View()}
}

// object returns a Volume, with changes.
func object(change ...func(*volume.Volume)) *volume.Volume {
	v := &volume.Volume{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "uid", Generation: 1}}
	for _, f := range change {
		f(v)
	}
	return v
}

func claimed(v *volume.Volume) {
	v.Finalizers, v.Annotations = []string{finalizer}, map[string]string{pcapi.ClaimedCloudAnnotation: "former"}
}

func TestPermit(t *testing.T) {
	const (
		noCloud    reconciler.Needs = reconciler.Mutates
		needsCloud                  = reconciler.NeedsCloud
		needsBrake                  = reconciler.NeedsCloud | reconciler.NeedsBrakeOff | reconciler.Mutates
	)
	notListed := func(*testing.T, *harness) {}
	notListedForLong := func(_ *testing.T, h *harness) { h.now = h.now.Add(time.Minute) }
	available := func(t *testing.T, h *harness) { h.list(t) }
	unavailable := func(t *testing.T, h *harness) { h.list(t); h.inventory.MarkUnavailable("connection refused") }
	braked := func(t *testing.T, h *harness) { h.list(t); h.inventory.Brake(true) }
	const wait, down, brake = "quiet wait: CloudUnavailable", "blocked: CloudUnavailable", "blocked: Braked"
	tests := []struct {
		name  string
		cloud func(*testing.T, *harness)
		needs reconciler.Needs
		want  string
	}{
		{name: "not listed, step without the cloud: allowed", cloud: notListed, needs: noCloud},
		{name: "not listed, step needs the cloud: quiet wait", cloud: notListed, needs: needsCloud, want: wait},
		{name: "not listed, step needs the brake off: quiet wait", cloud: notListed, needs: needsBrake, want: wait},
		{name: "not listed for long, step without the cloud: allowed", cloud: notListedForLong, needs: noCloud},
		{name: "not listed for long, step needs the cloud: blocked", cloud: notListedForLong, needs: needsCloud, want: down},
		{name: "unavailable, step without the cloud: allowed", cloud: unavailable, needs: noCloud},
		{name: "unavailable, step needs the cloud: blocked", cloud: unavailable, needs: needsCloud, want: down},
		{name: "unavailable, step needs the brake off: blocked", cloud: unavailable, needs: needsBrake, want: down},
		{name: "braked, step without the cloud: allowed", cloud: braked, needs: noCloud},
		{name: "braked, step needs the cloud: allowed", cloud: braked, needs: needsCloud},
		{name: "braked, step needs the brake off: blocked", cloud: braked, needs: needsBrake, want: brake},
		{name: "available, step needs the cloud: allowed", cloud: available, needs: needsCloud},
		{name: "available, step needs the brake off: allowed", cloud: available, needs: needsBrake},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := newHarness()
			tc.cloud(t, h)
			err := h.kind.Reconciler(nil).Permit(object(), h.observe(), tc.needs)
			if got := describe(err); got != tc.want {
				t.Errorf("outcome %q, want %q", got, tc.want)
			}
			h.enqueued = nil
			h.inventory.Brake(false)
			h.list(t)
			var want []string
			if tc.want != "" {
				want = []string{"Volume/data"}
			}
			if diff := cmp.Diff(want, h.enqueued); diff != "" {
				t.Errorf("enqueued when the cloud is available (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecordedCloud(t *testing.T) {
	record := external.Record{ID: "d1", Cloud: "default"}
	tests := []struct {
		name   string
		object *volume.Volume
		record external.Record
		want   string
	}{
		{name: "neither record nor claim: none", object: object()},
		{name: "claim: that of the claim", object: object(claimed), want: "former"},
		{name: "record: that of the record", object: object(), record: record, want: "default"},
		{name: "record and claim: that of the record", object: object(claimed), record: record, want: "default"},
		{name: "claim in the status without the finalizer: that of the claim", object: object(), record: external.Record{Cloud: "default"}, want: "default"},
		{name: "claim in the status of a released object: none", object: object(func(v *volume.Volume) { v.DeletionTimestamp = &metav1.Time{Time: time.Now()} }), record: external.Record{Cloud: "default"}},
		{name: "annotation without the finalizer: none", object: object(claimed, func(v *volume.Volume) { v.Finalizers = nil })},
		{name: "finalizer without the annotation: none", object: object(claimed, func(v *volume.Volume) { v.Annotations = nil })},
		{name: "import and claim: that of the claim", object: object(claimed), record: external.Record{Import: "d1"}, want: "former"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := external.RecordedCloud(tc.object, tc.record.ID, tc.record.Cloud, finalizer); got != tc.want {
				t.Errorf("Cloud %q, want %q", got, tc.want)
			}
		})
	}
}

func TestCloudOf(t *testing.T) {
	wants := func(v *volume.Volume) { v.Spec.CloudRef = &pcapi.CloudReference{Name: "wanted"} }
	for name, tc := range map[string]struct {
		object *volume.Volume
		want   string
	}{
		"neither record nor claim: the one of the spec": {object: object(wants), want: "wanted"},
		"claim on another Cloud: that of the claim":     {object: object(wants, claimed), want: "former"},
		"record on another Cloud: that of the record": {
			object: object(wants, claimed, func(v *volume.Volume) { v.Status.VolumeID, v.Status.Cloud = "d1", "recorded" }), want: "recorded",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := newHarness().kind.CloudOf(t.Context(), tc.object); err != nil || got != tc.want {
				t.Errorf("Cloud %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}
