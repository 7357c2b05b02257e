package vmsnapshot

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

func TestNoSnapshotOfVMThatIsNotReady(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		objects []client.Object
		says    string
	}{
		"there is no VM":               {says: `VM "vm" does not exist`},
		"the VM has no server":         {[]client.Object{vm(func(o *pcapi.VM) { o.Status = pcapi.VMStatus{} })}, "has no server yet"},
		"the VM is being deleted":      {[]client.Object{vm(func(o *pcapi.VM) { o.Finalizers, o.DeletionTimestamp = []string{"f"}, &metav1.Time{Time: startTime} })}, "is being deleted"},
		"the VM has another server":    {[]client.Object{vm(func(o *pcapi.VM) { o.Status.VMID = "s2" })}, "has another now"},
		"the VM is only observed":      {[]client.Object{vm(func(o *pcapi.VM) { o.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly })}, "ObserveOnly"},
		"another VM of the same cloud": {[]client.Object{vm(func(o *pcapi.VM) { o.Name = "other" })}, "does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := snapshot()
			if name == "the VM has another server" {
				snap.Status.VMID, snap.Status.Cloud = "s1", "default"
			}
			h := newHarness(t, withKeys, append(test.objects, snap)...)
			h.reconcile()
			h.wantCondition("Ready", "False VMNotReady", test.says)
			h.wantSnapshots()
			h.delete(snapshot())
			h.wantGone() // there is no claim
		})
	}
}

func TestNoSnapshotOfServerOfAnotherOwner(t *testing.T) {
	t.Parallel()
	h := newHarness(t, cloud.NewCapabilities(cloud.Snapshots, cloud.Idempotency, cloud.Labels), vm(), snapshot())
	for _, owner := range []string{"uid-of-another", ""} {
		h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.Labels = map[string]string{inventory.UIDLabel: owner} })
		h.start()
		if again := h.reconcile().RequeueAfter; again == 0 {
			t.Error("the labels are not looked at again, which no event reports")
		}
		h.wantCondition("Ready", "False VMNotReady", "without its owner labels or name")
		h.wantSnapshots()
	}
	h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.Labels = map[string]string{inventory.UIDLabel: "vm-uid"} })
	h.start()
	h.reconcile()
	h.wantSnapshots("snap1")
}

func TestNoSnapshotOfServerOfAnotherNameWithoutLabels(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(), snapshot())
	h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.Name = "another" })
	h.start()
	h.reconcile()
	h.wantCondition("Ready", "False VMNotReady", "without its owner labels or name")
	h.wantSnapshots()
}

func TestNoSnapshotOfServerThatTheCloudDoesNotShow(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(func(o *pcapi.VM) { o.Status.VMID = "s7" }), snapshot())
	if again := h.reconcile().RequeueAfter; again == 0 {
		t.Error("it is not looked for again")
	}
	h.wantCondition("Ready", "False VMNotReady", "does not show the server")
}

func TestSnapshotOfServerThatIsGoneSinceTheLastListingWaits(t *testing.T) {
	t.Parallel()
	for _, kind := range []cloud.Kind{cloud.NotFound, cloud.NotFoundUnproven} {
		h := newHarness(t, withKeys, vm(), snapshot())
		h.cloud.Fail(cloudfake.CreateSnapshot, &cloud.Error{Kind: kind, Op: "create snapshot"}, false)
		if again := h.reconcile().RequeueAfter; again < time.Minute || again > 2*time.Minute {
			t.Errorf("%s: requeued after %v, want a minute or a little more", kind, again)
		}
		h.wantCondition("Ready", "False VMNotReady", `does not show the server of VM "vm"`)
		h.reconcile()
		h.wantSnapshots("snap1")
		h.wantCondition("Ready", "True InSync")
	}
}

func TestSnapshotOfLostVMStallsUntilTheServerIsBack(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(func(o *pcapi.VM) { o.Status.VMID, o.Status.State = "s7", pcapi.VMStateLost }), snapshot())
	h.reconcile()
	h.wantCondition("Stalled", "True VMNotReady", `VM "vm" has lost its server`)
	h.cloud.AddServers(cloud.Server{ID: "s7", Name: "vm", State: cloud.StateActive})
	h.start()
	h.reconcile()
	h.wantCondition("Ready", "True InSync")
}

func TestSnapshotOnCloudWithoutIsUnsupported(t *testing.T) {
	t.Parallel()
	h := newHarness(t, cloud.NewCapabilities(cloud.Idempotency), vm(), snapshot())
	h.reconcile()
	h.wantCondition("Ready", "False Unsupported", `Cloud "default" has no snapshots: delete this VMSnapshot`)
	if err := h.cloud.Misuse(); err != nil {
		t.Error(err)
	}
}

func TestMissingAndDeniedCloudLookTheSame(t *testing.T) {
	t.Parallel()
	see := func(clouds ...client.Object) pcapi.VMSnapshotStatus {
		machine := vm()
		machine.Status.Cloud = "hidden"
		h := newHarness(t, withKeys, append(clouds, machine, snapshot())...)
		h.reconcile()
		var snap pcapi.VMSnapshot
		if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(snapshot()), &snap); err != nil {
			t.Fatalf("Get: %v", err)
		}
		return snap.Status
	}
	denied := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "hidden"}, Spec: pcapi.CloudSpec{
		AllowedNamespaces: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}},
	}}
	if diff := cmp.Diff(see(), see(denied)); diff != "" {
		t.Errorf("what reveals whether the Cloud exists (-missing +denied):\n%s", diff)
	}
}

func TestVMThatDoesNotExistIsReportedFirst(t *testing.T) {
	t.Parallel()
	none := cloud.NewCapabilities(cloud.Idempotency)
	for name, c := range map[string]*pcapi.Cloud{
		"the default Cloud does not exist":            {ObjectMeta: metav1.ObjectMeta{Name: "other"}},
		"the namespace may not use the default Cloud": {ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: pcapi.CloudSpec{AllowedNamespaces: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}}}},
		"the default Cloud has no snapshots":          {ObjectMeta: metav1.ObjectMeta{Name: "default"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, none, snapshot(), c)
			h.reconcile()
			h.wantCondition("Ready", "False VMNotReady", `VM "vm" does not exist`)
			h.wantCondition("Stalled", " ")
		})
	}
}
