package faults

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
	"github.com/privatecloud/operator/internal/testkit"
)

const (
	vsphereMembers = 20
	vsphereKills   = 4
)

// vsphereChanges are the methods that change something.
var vsphereChanges = map[string]bool{
	"CloneVM_Task": true, "CreateFolder": true, "PowerOffVM_Task": true, "Destroy_Task": true,
}

// vsphereWorld is a world with a vCenter. Of its answers to changes, one in three is
// lost, and of all others one in ten.
type vsphereWorld struct {
	*world
	t       *testkit.T
	vcenter *vcsim.Server
	manager *manager
}

func openVSphere(t *testkit.T) *vsphereWorld {
	w := &vsphereWorld{world: openWorld(t, setting{profile: extended}), t: t}
	var err error
	w.vcenter, err = vcsim.Start(t.Context())
	t.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(w.vcenter.Close)
	name := w.name + "-vcenter"
	t.Expect(w.env.client.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: name, Labels: map[string]string{pcapi.CredentialsForLabel: name}},
		StringData: map[string]string{"username": "operator@vsphere.local", "password": "secret"},
	})).To(Succeed())
	t.Expect(w.createCloud(t.Context(), name, w.vcenter.URL, pcapi.CloudSpec{
		Type: pcapi.CloudTypeVSphere, CredentialsSecretRef: &pcapi.SecretReference{Name: name}, InsecureAllowHTTP: true,
		VSphere: &pcapi.VSphereCloud{Folder: vcsim.Folder, Templates: pcapi.VSphereTemplates{Folder: "/DC0/vm", Default: vcsim.Template}},
	})).To(Succeed())
	w.manager, err = w.start()
	t.Expect(err).NotTo(HaveOccurred())
	cloud := &pcapi.Cloud{}
	t.Eventually(func(ctx context.Context) (*pcapi.Cloud, error) {
		return cloud, w.env.client.Get(ctx, client.ObjectKey{Name: name}, cloud)
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
		w.t.Expect(w.manager.kill()).To(Succeed())
		var err error
		w.manager, err = w.start()
		w.t.Expect(err).NotTo(HaveOccurred())
	}
}

// owners returns the instance UUIDs of the VMs that are no templates, sorted.
func (w *vsphereWorld) owners() []string {
	ids := []string{}
	for _, vm := range w.vcenter.VMs() {
		if vm.Name != vcsim.Template {
			ids = append(ids, vm.Config.InstanceUuid)
		}
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
		g.Spec.CloudRef, g.Spec.Template = &pcapi.CloudReference{Name: w.name + "-vcenter"}, vcsim.Template
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
}
