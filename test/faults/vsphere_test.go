package faults

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
	"github.com/privatecloud/operator/internal/testkit"
)

const (
	vsphereMembers = 20
	vsphereKills   = 4
)

// vsphereWorld is a world with a vCenter. Of its answers to changes, one in three is
// lost, and of all others one in ten.
type vsphereWorld struct {
	*world
	t       *testkit.T
	manager *testkit.Process
}

func openVSphere(t *testkit.T) *vsphereWorld {
	w := &vsphereWorld{world: openWorld(t, setting{profile: onVCenter}), t: t}
	var err error
	w.manager, err = w.start()
	t.Expect(err).NotTo(HaveOccurred())
	cloud := &pcapi.Cloud{}
	t.Eventually(func(ctx context.Context) (*pcapi.Cloud, error) {
		return cloud, w.env.client.Get(ctx, client.ObjectKey{Name: w.name}, cloud)
	}).Should(testkit.BeReady())

	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed(t.T), 1))
	w.vcenter.Front.LoseRandomly(func(method string) bool {
		mu.Lock()
		defer mu.Unlock()
		if vsphereChanges[method] {
			return random.IntN(3) == 0
		}
		return random.IntN(10) == 0
	})
	return w
}

// killWhile kills the manager several times while requests of a method are sent.
func (w *vsphereWorld) killWhile(method string) {
	w.t.Helper()
	before := w.vcenter.Front.Sent(method)
	for kill := 1; kill <= vsphereKills; kill++ {
		w.t.Eventually(func() int { return w.vcenter.Front.Sent(method) - before }).Should(BeNumerically(">=", kill*vsphereMembers/(vsphereKills+1)))
		w.t.Expect(w.manager.Kill()).To(Succeed())
		var err error
		w.manager, err = w.start()
		w.t.Expect(err).NotTo(HaveOccurred())
	}
}

// owners returns the ids of the VMs that the operator made, sorted.
func (w *vsphereWorld) owners() []string {
	ids := []string{}
	for _, server := range w.ownServers() {
		ids = append(ids, server.ID)
	}
	slices.Sort(ids)
	return ids
}

func (w *vsphereWorld) memberUIDs(ctx context.Context) ([]string, error) {
	var vms pcapi.VMList
	err := w.env.client.List(ctx, &vms, client.InNamespace(w.name))
	uids := []string{}
	for i := range vms.Items {
		uids = append(uids, string(vms.Items[i].UID))
	}
	slices.Sort(uids)
	return uids, err
}

func TestManagerKilledOnVSphere(t *testing.T) {
	t.Parallel()
	w := openVSphere(newT(t))
	group := testkit.VmGroup(w.name, "web", func(g *pcapi.VmGroup) {
		g.Spec.Replicas = new(int32(vsphereMembers))
		g.Spec.CloudRef, g.Spec.Template = &pcapi.CloudReference{Name: w.name}, vcsim.Template
	})
	w.t.Expect(w.env.client.Create(t.Context(), group)).To(Succeed())
	w.killWhile("CloneVM_Task")
	w.t.Eventually(func(ctx context.Context) (*pcapi.VmGroup, error) {
		return group, w.env.client.Get(ctx, client.ObjectKeyFromObject(group), group)
	}).Should(testkit.BeReady())
	uids, err := w.memberUIDs(t.Context())
	w.t.Expect(err).NotTo(HaveOccurred())
	w.t.Expect(uids).To(HaveLen(vsphereMembers))
	w.t.Expect(w.owners()).To(Equal(uids), "each member has one VM")
	w.t.Expect(w.vcenter.Front.Sent("Destroy_Task")).To(BeZero(), "no VM was made that had to be deleted")

	w.t.Expect(w.env.client.Delete(t.Context(), group)).To(Succeed())
	w.killWhile("Destroy_Task")
	w.t.Eventually(w.memberUIDs).Should(BeEmpty())
	w.t.Expect(w.owners()).To(BeEmpty())
	w.t.Expect(w.vcenter.VM(vcsim.Template)).NotTo(BeNil())
	w.t.Expect(w.foreignChanges()).To(BeEmpty())
}

func TestSecondVMOfAnObjectInAVCenterIsFound(tt *testing.T) {
	tt.Parallel()
	t := newT(tt)
	w := openWorld(t, setting{profile: onVCenter})
	made, err := w.vcenter.MakeVM(t.Context(), vm, nil)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(w.vcenter.RemoveVM(t.Context(), made)).To(Succeed())
	_, err = w.vcenter.MakeVM(t.Context(), vm, nil)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(w.duplicates()).To(BeEmpty(), "one after the other")
	_, err = w.vcenter.MakeVM(t.Context(), strings.ToUpper(vm), nil)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(w.duplicates()).To(ConsistOf("2 servers of vm were alive at once"))
	t.Expect(w.foreignChanges()).To(BeEmpty())
}
