package openstack_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/testkit"
)

const (
	// rivals is how many VMs the other cluster has, of the same names.
	rivals = 4
	// killInterval is how long a manager runs.
	killInterval = 3 * time.Second
	// builds is how long nova may take for a server when it builds many.
	builds = 20 * time.Second
)

// killedVMs is how many VMs are created while managers are killed.
func killedVMs(t *testing.T) int {
	text := os.Getenv("OPENSTACK_VMS")
	if text == "" {
		return 12
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < rivals+2 {
		t.Fatalf("OPENSTACK_VMS is %q, want a number from %d on", text, rivals+2)
	}
	return n
}

func seed(t *testing.T) uint64 {
	n := uint64(time.Now().UnixNano())
	if text := os.Getenv("OPENSTACK_SEED"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("OPENSTACK_SEED is no number: %v", err)
		}
	}
	t.Logf("OPENSTACK_SEED=%d", n)
	return n
}

// One project is used by two clusters with VMs of the same names, and by strangers. A quarter of
// the VMs of one cluster have two interfaces and a public address, others a root volume and a disk. With OPENSTACK_VMS,
// every VM has two interfaces and a public address, and every VM without a snapshot also has volumes. The manager of this cluster is
// killed again and again, the other has two managers without leader election, of which one is killed, and answers are lost.
func TestManagersKilledInAProjectOfTwoClusters(t *testing.T) {
	t.Parallel()
	tk, count := newT(t), killedVMs(t)
	p, w := newProject(t), &wire{}
	a := admin()
	a.must(http.MethodPut, a.services["compute"]+"/os-quota-sets/"+p.id, map[string]any{"quota_set": map[string]any{"instances": -1, "cores": -1, "ram": -1}}, nil)
	a.must(http.MethodPut, a.services["network"]+"/quotas/"+p.id, map[string]any{"quota": map[string]any{"floatingip": -1}}, nil)
	direct := newClient(t, p, &wire{})
	all := func() ([]cloud.Server, error) {
		page, err := direct.ListServers(t.Context(), cloud.ListServers{Limit: 1000})
		return page.Servers, err
	}

	var strangers []string
	for i, labels := range []map[string]string{nil, {"app": "x"}, {inventory.ClusterLabel: "another", inventory.UIDLabel: "u-1"}} {
		strangers = append(strangers, create(t, direct, cloud.CreateServer{Name: vmName(i), Labels: labels}).ID)
	}
	endpoint := newFront(t, w)
	binary, err := testkit.BuildManager(t.TempDir())
	tk.Expect(err).NotTo(HaveOccurred())
	ours, theirs := newCluster(tk, binary, endpoint, p), newCluster(tk, binary, endpoint, p)
	ours.start()
	theirs.start()
	theirs.start()

	random := seed(t)
	restore := w.loseRandomly(random)
	front := testkit.Network(namespace, "front", func(n *pcapi.Network) {
		n.Spec.CloudRef, n.Spec.Router = &pcapi.CloudReference{Name: cloudName}, &pcapi.NetworkRouter{ExternalNetwork: externalNetwork}
	})
	back := testkit.Network(namespace, "back", func(n *pcapi.Network) {
		n.Spec.CloudRef, n.Spec.CIDR, n.Spec.Gateway = &pcapi.CloudReference{Name: cloudName}, "10.9.0.0/16", "10.9.0.1"
	})
	tk.Expect(ours.env.Client.Create(t.Context(), front)).To(Succeed())
	tk.Expect(ours.env.Client.Create(t.Context(), back)).To(Succeed())
	reachable, stored, everything := 0, 0, os.Getenv("OPENSTACK_VMS") != ""
	for i := range count {
		vm := newVM(vmName(i))
		if i%4 == 0 || everything {
			vm.Spec.Network, vm.Spec.PublicAddress = &pcapi.VMNetwork{Interfaces: []pcapi.VMInterface{
				{Name: "front", NetworkRef: pcapi.NetworkReference{Name: front.Name}}, {Name: "back", NetworkRef: pcapi.NetworkReference{Name: back.Name}},
			}}, &pcapi.VMPublicAddress{Network: externalNetwork}
			reachable++
		}
		if i >= rivals && (i%2 == 1 || everything) { // the others have snapshots, or are reached
			vm.Spec.RootDisk, vm.Spec.Disks = &pcapi.VMRootDisk{Size: "2Gi"}, []pcapi.VMDisk{{Name: "data", Size: "1Gi"}}
			stored++
		}
		tk.Expect(ours.env.Client.Create(t.Context(), vm)).To(Succeed())
	}
	for i := range rivals {
		tk.Expect(theirs.env.Client.Create(t.Context(), newVM(vmName(i)))).To(Succeed())
	}
	ours.killRepeatedly(max(5, count/4))
	theirs.kill()
	restore()
	before, err := all()
	tk.Expect(err).NotTo(HaveOccurred())
	t.Logf("%d servers when the faults end, %d of them too many", len(before), surplus(before))
	ended := time.Now()
	tk.Eventually(func() (int, error) {
		servers, err := all()
		return surplus(servers), err
	}).Should(BeZero(), "servers of a VM that has another one")
	t.Logf("no VM has two servers %s after the faults", time.Since(ended).Round(time.Second))
	tk.Eventually(ours.notReady).WithTimeout(10*time.Minute + time.Duration(count)*builds).Should(BeEmpty())
	tk.Eventually(theirs.notReady).Should(BeEmpty())
	t.Logf("all VMs are ready %s after the faults", time.Since(ended).Round(time.Second))
	want := slices.Concat(strangers, serversOf(tk, ours), serversOf(tk, theirs))
	tk.Eventually(func() ([]string, error) { return idsOf(all()) }).Should(ConsistOf(want), "one server for each VM, and the strangers' servers")
	servers, err := all()
	tk.Expect(err).NotTo(HaveOccurred())
	verifyOwners(tk, servers, ours, theirs)
	made := func(resource string) []map[string]any { return a.list("network", resource, "project_id="+p.id) }
	volumes := func() []map[string]any {
		return a.list("block-storage", "volumes", url.Values{"all_tenants": {"1"}, "project_id": {p.id}}.Encode())
	}
	tk.Expect(made("networks")).To(HaveLen(2))
	tk.Expect(made("routers")).To(HaveLen(1), "one router for the Network that asks for one")
	tk.Eventually(func() int {
		return len(a.list("network", "ports", url.Values{"project_id": {p.id}, "device_owner": {"compute:nova"}}.Encode()))
	}).Should(Equal(2*reachable), "one port for each interface")
	// The address of a server that was too many goes after the server.
	tk.Eventually(func() int { return len(made("floatingips")) }).Should(Equal(reachable), "one floating address for each VM that asks for one")

	tk.Eventually(func() int { return len(volumes()) }).Should(Equal(2*stored), "one volume for each disk")

	// The VMs that get no VMSnapshot are suspended and resized. One gets another disk and larger ones.
	grown := vmName(rivals + 1)
	asleep, moved := vmName(count-1), vmName(count-2)
	restore = w.loseRandomly(random + 1)
	for i := range rivals {
		tk.Expect(ours.env.Client.Create(t.Context(), newSnapshot(vmName(i), vmName(i)))).To(Succeed())
	}
	class := &pcapi.VMClass{ObjectMeta: metav1.ObjectMeta{Name: "with-a-flavor"}, Spec: pcapi.VMClassSpec{
		Hardware: pcapi.VMClassHardware{CPU: *pcapi.Cores(2), Memory: *pcapi.GiB(2)}, OpenStack: &pcapi.VMClassOpenStack{Flavor: "t-2-2"},
	}}
	tk.Expect(ours.env.Client.Create(t.Context(), class)).To(Succeed())
	ours.patch(moved, `{"spec": {"className": "with-a-flavor", "updatePolicy": "RestartAllowed"}}`)
	ours.patch(asleep, `{"spec": {"powerState": "Suspended"}}`)
	ours.patch(grown, `{"spec": {"rootDisk": {"size": "3Gi"}, "disks": [{"name": "data", "size": "2Gi"}, {"name": "more", "size": "1Gi"}]}}`)
	ours.killRepeatedly(2)
	restore()
	tk.Eventually(ours.snapshotsReady).Should(Equal(rivals))
	tk.Eventually(func() []string { return imageNames(t, p) }).Should(HaveLen(rivals), "one image for each VMSnapshot")
	hasServer := func(name string, want ...gomegatypes.GomegaMatcher) {
		t.Helper()
		of := ours.vm(name)
		tk.Eventually(func() (cloud.Server, error) { return direct.GetServer(t.Context(), of.Status.VMID) }).Should(And(want...), name)
	}
	hasServer(moved, HaveField("Flavor", "t-2-2"), HaveField("State", cloud.StateActive))
	hasServer(asleep, HaveField("State", cloud.StateSuspended))
	hasServer(grown, HaveField("Disks", cloud.Disks("data=2048 more=1024")), HaveField("RootDisk.SizeMiB", 3072))
	tk.Eventually(ours.notReady).Should(BeEmpty())
	tk.Eventually(func() int { return len(volumes()) }).Should(Equal(2*stored+1), "one volume for each disk")

	restore = w.loseRandomly(random + 2)
	ours.patch(asleep, `{"spec": {"powerState": "On"}}`)
	ours.killRepeatedly(1)
	restore()
	hasServer(asleep, HaveField("State", cloud.StateActive))
	tk.Eventually(ours.notReady).Should(BeEmpty())

	restore = w.loseRandomly(random + 3)
	for _, c := range []*cluster{ours, theirs} {
		tk.Expect(c.env.Client.DeleteAllOf(t.Context(), &pcapi.VM{}, inTenant)).To(Succeed())
	}
	ours.killRepeatedly(2)
	restore()
	tk.Eventually(ours.vms).Should(BeEmpty())
	tk.Eventually(theirs.vms).Should(BeEmpty())
	tk.Expect(idsOf(all())).To(ConsistOf(strangers), "the servers of strangers")
	tk.Expect(imageNames(t, p)).To(BeEmpty(), "the images of the VMSnapshots go with the servers")
	tk.Expect(made("floatingips")).To(BeEmpty(), "floating addresses go with the servers")
	tk.Eventually(volumes).Should(BeEmpty(), "volumes go with the servers")
	tk.Expect(ours.env.Client.DeleteAllOf(t.Context(), &pcapi.VMSnapshot{}, inTenant)).To(Succeed())
	tk.Eventually(ours.snapshots).Should(BeEmpty())
	tk.Eventually(func() int { return a.processorsOf(p) }).Should(Equal(len(strangers)), "placement has the servers of strangers alone")
	tk.Expect(ours.env.Client.Delete(t.Context(), front)).To(Succeed())
	tk.Expect(ours.env.Client.Delete(t.Context(), back)).To(Succeed())
	for _, resource := range []string{"networks", "routers", "ports"} {
		tk.Eventually(func() []map[string]any { return made(resource) }).Should(BeEmpty(), resource)
	}
}

// processorsOf returns how many processors a project uses, as placement has it. Each of the strangers' servers has one.
func (a *administrator) processorsOf(p project) int {
	var got struct {
		Usages map[string]int
	}
	a.at("placement 1.9").must(http.MethodGet, a.services["placement"]+"/usages?project_id="+p.id, nil, &got)
	return got.Usages["VCPU"]
}

func vmName(i int) string { return fmt.Sprintf("vm-%d", i) }

// surplus returns how many servers there are beside the first one of each VM.
func surplus(servers []cloud.Server) (more int) {
	owned := map[string]bool{}
	for _, s := range servers {
		if uid := s.Labels[inventory.UIDLabel]; uid != "" && owned[uid] {
			more++
		} else {
			owned[uid] = true
		}
	}
	return more
}

// serversOf returns the servers that the VMs of a cluster record.
func serversOf(t *testkit.T, c *cluster) []string {
	t.Helper()
	vms, err := c.vms()
	t.Expect(err).NotTo(HaveOccurred())
	var ids []string
	for i := range vms {
		ids = append(ids, vms[i].Status.VMID)
	}
	return ids
}

func idsOf(servers []cloud.Server, err error) ([]string, error) {
	var ids []string
	for _, s := range servers {
		ids = append(ids, s.ID)
	}
	return ids, err
}

// verifyOwners checks that the server of each VM has the mark of the VM and its cluster.
func verifyOwners(t *testkit.T, servers []cloud.Server, clusters ...*cluster) {
	t.Helper()
	for _, c := range clusters {
		vms, err := c.vms()
		t.Expect(err).NotTo(HaveOccurred())
		for i := range vms {
			t.Expect(servers).To(ContainElement(And(
				HaveField("ID", vms[i].Status.VMID), HaveField("Name", vms[i].Name),
				HaveField("Labels", And(HaveKeyWithValue(inventory.UIDLabel, string(vms[i].UID)), HaveKeyWithValue(inventory.ClusterLabel, c.id))),
			)))
		}
	}
}
