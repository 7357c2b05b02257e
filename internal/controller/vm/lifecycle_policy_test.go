package vm

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

func TestImportPolicy(t *testing.T) {
	own := func(labels map[string]string) func(*cloud.Server) { return func(s *cloud.Server) { s.Labels = labels } }
	foreignLabels := map[string]string{
		"samplecontroller.k8s.io/uid": "uid-b", "samplecontroller.k8s.io/cluster": "cluster",
		"samplecontroller.k8s.io/namespace": "ns", "samplecontroller.k8s.io/name": "b",
	}
	tests := []struct {
		name   string
		spec   pcapi.CloudSpec
		labels map[string]string
		other  bool
		want   string
	}{
		{name: "None: refused", spec: pcapi.CloudSpec{Imports: pcapi.ImportPolicyNone}, want: "False Rejected"},
		{name: "no policy: refused", want: "False Rejected"},
		{name: "Listed for this namespace: imported", spec: pcapi.CloudSpec{Imports: pcapi.ImportPolicyListed, Importable: []pcapi.ImportableVM{{VMID: "s1", Namespace: "ns"}}}, want: "True Running"},
		{name: "Listed for another namespace: refused", spec: pcapi.CloudSpec{Imports: pcapi.ImportPolicyListed, Importable: []pcapi.ImportableVM{{VMID: "s1", Namespace: "db"}}}, want: "False Rejected"},
		{name: "Any: imported", spec: pcapi.CloudSpec{Imports: pcapi.ImportPolicyAny}, want: "True Running"},
		{name: "Any, server of an object that exists: refused", spec: pcapi.CloudSpec{Imports: pcapi.ImportPolicyAny}, labels: foreignLabels, other: true, want: "False Rejected"},
		{name: "Any, server of an object that is gone: imported", spec: pcapi.CloudSpec{Imports: pcapi.ImportPolicyAny}, labels: foreignLabels, want: "True Running"},
		{name: "None, server with the labels of this object: imported", labels: ownLabels, want: "True Running"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			objects := []*pcapi.VM{vmWith(importing)}
			if tc.other {
				objects = append(objects, other("b"))
			}
			h := newHarness(t, everything, objects[0])
			for _, o := range objects[1:] {
				if err := h.client.Create(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			h.editCloud(func(c *pcapi.Cloud) { c.Spec = tc.spec })
			h.cloud.AddServers(serverWith(own(tc.labels)))
			h.later(time.Second)
			h.mustReconcile()
			h.later(time.Second)
			h.mustReconcile()
			h.wantCondition(pcapi.ReadyCondition, tc.want)
			if tc.want == "False Rejected" {
				equal(t, "vmId", "", h.vm().Status.VMID)
				h.remove()
				h.mustReconcile()
				h.wantServers("s1")
			}
		})
	}
}

func TestDeniedNamespaceCannotTakeName(t *testing.T) {
	squatter := other("b", createdAfter(-time.Hour), func(vm *pcapi.VM) { vm.Namespace = "denied" }, withClaim, func(vm *pcapi.VM) { vm.Status = pcapi.VMStatus{} })
	h := newHarness(t, uniqueNamesOnly, vmWith(), squatter,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "denied"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"allowed": "yes"}}})
	h.editCloud(func(c *pcapi.Cloud) {
		c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"allowed": "yes"}}
	})
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestTenantMessagesHoldNoPlatformDetails(t *testing.T) {
	const secret = "cloud.internal.example.com:8443 uses Secret platform-credentials"
	details := map[cloud.Kind]string{}
	for _, kind := range []cloud.Kind{
		cloud.Unavailable, cloud.Unauthorized, cloud.Untrusted, cloud.Unreadable, cloud.Throttled, cloud.Taken, cloud.NotFound, cloud.NotFoundUnproven,
		cloud.Quota, cloud.KeyReused,
	} {
		details[kind] = secret
	}
	for _, kind := range []cloud.Kind{ // these quote the reason
		cloud.Rejected, cloud.Prohibited, cloud.Conflict, cloud.Busy, cloud.Failed, cloud.NeedsStop,
	} {
		details[kind] = "see https://cloud.internal.example.com:8443/errors"
	}
	for kind, detail := range details {
		for _, verb := range []cloudfake.Verb{cloudfake.CheckName, cloudfake.CreateServer} {
			t.Run(string(kind)+" "+string(verb), func(t *testing.T) {
				h := newHarness(t, everything, vmWith())
				h.cloud.FailAlways(verb, &cloud.Error{Kind: kind, Op: "call", Detail: detail}, false)
				for range 2 { // the second may remember the refusal
					h.mustReconcile()
					h.later(time.Second)
				}
				for _, c := range h.vm().Status.Conditions {
					if strings.Contains(c.Message, "example.com") || strings.Contains(c.Message, "platform-credentials") {
						t.Errorf("%s has the message %q", c.Type, c.Message)
					}
				}
			})
		}
	}
}
