package openstack_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/test/specs"
)

var _ = Describe("VMSnapshots on an OpenStack", Ordered, func() {
	AfterEach(func(ctx SpecContext) {
		between.loseAnswers()
		Eventually(ctx, servers).Should(BeEmpty())
	}, NodeTimeout(5*time.Minute))

	It("a VM is reverted to one: it keeps its server, and all go with the VM", func(ctx SpecContext) {
		vm, first, second := newVM("frozen"), newSnapshot("frozen-first", "frozen"), newSnapshot("frozen-second", "frozen")
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		Expect(env.Client.Create(ctx, first)).To(Succeed())
		id := specs.Ready(ctx, vm).Status.VMID
		taken := specs.Ready(ctx, first).Status
		Expect(taken).To(And(HaveField("SizeBytes", BeNumerically(">", 0)), HaveField("TakenTime", Not(BeNil())), HaveField("VMID", id)))
		Expect(env.Client.Create(ctx, second)).To(Succeed())
		specs.Ready(ctx, second)

		specs.Edit(ctx, vm, func(vm *pcapi.VM) { vm.Spec.CurrentSnapshotName = first.Name })
		Eventually(ctx, specs.Stored(vm)).Should(HaveField("Status.Revert", HaveField("Phase", pcapi.VMRevertSucceeded)))
		Expect(specs.Ready(ctx, vm).Status).To(And(HaveField("VMID", id), HaveField("State", pcapi.VMStateRunning)))
		Expect(bootImage(id)).To(Equal(taken.SnapshotID))

		specs.Remove(ctx, second)
		Expect(snapshotsOf(ctx, id)).To(ConsistOf(HaveField("ID", taken.SnapshotID)))
		specs.Remove(ctx, vm)
		Eventually(ctx, specs.Stored(first)).Should(testkit.HaveCondition(pcapi.CreatedCondition, metav1.ConditionFalse, pcapi.LostReason))
		specs.Remove(ctx, first)
	}, SpecTimeout(10*time.Minute))

	It("one whose answer is lost: has one image, which outlives a server that is deleted by hand, also hidden, and goes with the VMSnapshot", func(ctx SpecContext) {
		vm, snap := newVM("kept"), newSnapshot("kept", "kept")
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		id := specs.Ready(ctx, vm).Status.VMID
		restore := between.loseAnswers(pattern{http.MethodPost, "servers/*/action"})
		Expect(env.Client.Create(ctx, snap)).To(Succeed())
		Eventually(ctx, func() ([]cloud.Snapshot, error) { return snapshotsOf(ctx, id) }).ShouldNot(BeEmpty())
		restore()
		taken := specs.Ready(ctx, snap).Status.SnapshotID
		Expect(snapshotsOf(ctx, id)).To(ConsistOf(HaveField("ID", taken)))
		a := admin()
		Expect(a.patchImage(taken, `[{"op": "replace", "path": "/os_hidden", "value": true}]`)).To(Succeed())
		Expect(snapshotsOf(ctx, id)).To(ConsistOf(HaveField("ID", taken)), "one that somebody has hidden")
		a.must(http.MethodDelete, a.services["compute"]+"/servers/"+id, nil, nil)
		Eventually(ctx, servers).Should(BeEmpty())
		Eventually(ctx, specs.Stored(vm)).Should(HaveField("Status.State", pcapi.VMStateLost))
		specs.Remove(ctx, vm)
		Expect(snapshotsOf(ctx, id)).To(ConsistOf(HaveField("ID", taken)))
		specs.Remove(ctx, snap)
		_, err := snapshotsOf(ctx, id)
		Expect(cloud.Is(err, cloud.NotFound)).To(BeTrue(), "%v", err)
	}, SpecTimeout(10*time.Minute))

	It("one that asks for memory or for a quiesced guest: is Unsupported, and says why", func(ctx SpecContext) {
		vm := newVM("asked")
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		specs.Ready(ctx, vm)
		for name, snap := range map[string]*pcapi.VMSnapshot{
			"do not hold memory": newSnapshot("asked-memory", "asked", func(s *pcapi.VMSnapshot) { s.Spec.Memory = new(true) }),
			"hw_qemu_guest_agent": newSnapshot("asked-quiesce", "asked", func(s *pcapi.VMSnapshot) {
				s.Spec.Quiesce = &pcapi.VMSnapshotQuiesce{Timeout: metav1.Duration{Duration: time.Minute}}
			}),
		} {
			Expect(env.Client.Create(ctx, snap)).To(Succeed())
			Eventually(ctx, specs.Stored(snap)).Should(testkit.HaveCondition(pcapi.StalledCondition, metav1.ConditionTrue, pcapi.UnsupportedReason, name))
			specs.Remove(ctx, snap)
		}
		specs.Remove(ctx, vm)
	}, SpecTimeout(10*time.Minute))
})

// The deletion of a server may end after each of its steps. A person has taken images of the
// server, one of them after it was reverted, which has the properties of a snapshot.
func TestInterruptedDeletionOfAServerLeavesNoSnapshot(t *testing.T) {
	t.Parallel()
	ctx, p, w := t.Context(), newProject(t), &wire{}
	c := newClient(t, p, w)
	labels := map[string]string{tagLabel: "u-1"}
	server := create(t, c, cloud.CreateServer{Name: "web", Labels: labels})
	takeByHand(t, p, server.ID, "by-hand")
	var first cloud.Snapshot
	for _, name := range []string{"first", "second"} {
		made, err := c.CreateSnapshot(ctx, cloud.CreateSnapshot{ServerID: server.ID, Name: name})
		if err != nil {
			t.Fatalf("CreateSnapshot: %v", err)
		}
		if name == "first" {
			first = made
		}
	}
	result, err := c.RevertServer(ctx, cloud.RevertServer{ServerID: server.ID, SnapshotID: first.ID})
	if err != nil {
		t.Fatalf("RevertServer: %v", err)
	}
	if ended := finish(t, c, result); ended.Err != nil {
		t.Fatalf("the revert failed: %v", ended.Err)
	}
	takeByHand(t, p, server.ID, "inherits")
	inherited := func(i map[string]any) bool { return i["name"] == "inherits" && i["privatecloud:snapshot"] == "first" }
	if found := imagesOf(t, p); !slices.ContainsFunc(found, inherited) {
		t.Errorf("images %v, want one of a server that was reverted to have the mark of the snapshot, which this test is about", found)
	}
	if result, err = c.DeleteServer(ctx, server.ID); err != nil {
		t.Fatalf("DeleteServer: %v", err)
	}
	if result.Operation != "" {
		finish(t, c, result)
	}
	restore := w.loseAnswers(pattern{http.MethodDelete, "images/*"})
	err = c.DeleteSnapshots(ctx, server.ID, labels[tagLabel])
	restore()
	if err == nil {
		t.Fatal("DeleteSnapshots succeeded, want it to end with the answer that is lost")
	}
	next := newClient(t, p, &wire{}) // knows nothing of the deletion
	if err := next.DeleteSnapshots(ctx, server.ID, labels[tagLabel]); err != nil {
		t.Fatalf("DeleteSnapshots again: %v", err)
	}
	if left := imageNames(t, p); !slices.Equal(left, []string{"by-hand", "inherits"}) {
		t.Errorf("images %v, want those that a person took", left)
	}
}

func newSnapshot(name, vm string, change ...func(*pcapi.VMSnapshot)) *pcapi.VMSnapshot {
	snap := &pcapi.VMSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: pcapi.VMSnapshotSpec{VMName: vm}}
	for _, apply := range change {
		apply(snap)
	}
	return snap
}

func snapshotsOf(ctx context.Context, server string) ([]cloud.Snapshot, error) {
	return direct.ListSnapshots(ctx, server)
}

// bootImage returns the id of the image that a server was built from.
func bootImage(server string) string {
	var got struct {
		Server struct{ Image struct{ ID string } }
	}
	a := admin()
	a.must(http.MethodGet, a.services["compute"]+"/servers/"+server, nil, &got)
	return got.Server.Image.ID
}

// takeByHand takes an image of a server as a user of the project.
func takeByHand(t *testing.T, p project, server, name string) {
	t.Helper()
	var made struct {
		ID string `json:"image_id"`
	}
	a := admin()
	a.as(tokenOf(t, p, person)).must(http.MethodPost, fmt.Sprintf("%s/servers/%s/action", a.services["compute"], server),
		map[string]any{"createImage": map[string]any{"name": name}}, &made)
	if err := a.storeImage(made.ID, server); err != nil {
		t.Fatal(err)
	}
}
