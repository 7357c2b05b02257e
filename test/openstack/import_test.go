package openstack_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/gomega"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/plugin/plugintest"
	"github.com/privatecloud/operator/internal/testkit"
)

// Servers that somebody else made are imported by the manifests that the kubectl plugin
// writes: as many as OPENSTACK_VMS says.
func TestImportOfServersChangesNothingButLabels(t *testing.T) {
	t.Parallel()
	tk, count := newT(t), killedVMs(t)
	p := newProject(t)
	a := admin()
	quota := map[string]any{"instances": -1, "cores": -1, "ram": -1}
	a.must(http.MethodPut, a.services["compute"]+"/os-quota-sets/"+p.id, map[string]any{"quota_set": quota}, nil)
	direct := newClient(t, p, &wire{})
	for i := range count {
		server := create(t, direct, cloud.CreateServer{Name: fmt.Sprintf("Legacy %d", i/2)}) // two servers have each name
		if i%3 == 1 {
			stop(t, direct, server.ID)
		}
	}
	all := func() map[string]cloud.Server {
		page, err := direct.ListServers(t.Context(), cloud.ListServers{Limit: 1000})
		tk.Expect(err).NotTo(HaveOccurred())
		servers := map[string]cloud.Server{}
		for _, server := range page.Servers {
			servers[server.ID] = server
		}
		return servers
	}
	before := all()
	tk.Expect(before).To(HaveLen(count))

	binary, err := testkit.BuildManager(t.TempDir())
	tk.Expect(err).NotTo(HaveOccurred())
	address, err := testkit.FreeAddress()
	tk.Expect(err).NotTo(HaveOccurred())
	c := newCluster(tk, binary, os.Getenv("OPENSTACK_AUTH_URL"), p)
	c.start("--diagnostics-bind-address=" + address.String())
	var manifests plugintest.Result
	tk.Eventually(func() int {
		manifests = plugintest.Setup{Kubeconfig: c.env.Kubeconfig()}.Run(t.Context(), "import", "--cloud", cloudName, "-n", namespace, "--operator-url", "http://"+address.String())
		return manifests.Code
	}).Should(BeZero(), func() string { return manifests.Err })
	tk.Expect(strings.Count(manifests.Out, "---\n")).To(Equal(count), manifests.Err)
	_, err = c.env.Kubectl(t.Context(), manifests.Out, "apply", "-f", "-")
	tk.Expect(err).NotTo(HaveOccurred())
	tk.Eventually(c.notReady).WithTimeout(5*time.Minute + time.Duration(count)*time.Second).Should(BeEmpty())

	after := all()
	ignored := cmpopts.IgnoreFields(cloud.Server{}, "Labels", "UpdatedAt")
	tk.Expect(cmp.Diff(before, after, ignored)).To(BeEmpty())
	for id, server := range after {
		tk.Expect(server.Labels).To(HaveKeyWithValue(inventory.ClusterLabel, c.id), id)
	}
	tk.Expect(c.env.Client.DeleteAllOf(t.Context(), &pcapi.VM{}, inTenant)).To(Succeed())
	tk.Eventually(c.vms).Should(BeEmpty())
	tk.Expect(cmp.Diff(before, all(), ignored)).To(BeEmpty(), "the servers stay")
}
