package setup_test

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/setup"
	"github.com/privatecloud/operator/internal/testkit"
)

// failing returns the kinds that replicas of this process cannot read, of the metric.
func failing() (kinds []string, err error) {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return nil, err
	}
	for _, family := range families {
		if family.GetName() == "privatecloud_cache_read_failing" {
			for _, metric := range family.GetMetric() {
				kinds = append(kinds, metric.GetLabel()[0].GetValue())
			}
		}
	}
	return kinds, nil
}

// probed returns the status and the text of a probe.
func probed(url string) func() (string, error) {
	return func() (string, error) {
		response, err := http.Get(url)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return response.Status + " " + string(text), err
	}
}

// TestObjectThatCannotBeDecodedIsShown stores an object as an older CRD accepted it: before a
// manager starts, and while it runs.
func TestObjectThatCannotBeDecodedIsShown(tt *testing.T) {
	r := newReplicas(tt)
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	crd.SetName("vms.samplecontroller.k8s.io")
	lax := `[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/nextRestartTime/pattern"}]`
	r.Expect(r.env.Client.Patch(r.Context(), crd, client.RawPatch(types.JSONPatchType, []byte(lax)))).To(Succeed())
	bad := func() *unstructured.Unstructured {
		vm := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"vmname": "bad", "nextRestartTime": "2026-11-27t02:00:00z"}}}
		vm.SetGroupVersionKind(pcapi.GroupVersion.WithKind("VM"))
		vm.SetNamespace("default")
		vm.SetName("bad")
		return vm
	}
	store := func() {
		r.Helper()
		r.Eventually(func() error { return r.env.Client.Create(r.Context(), bad()) }).Should(Succeed(), "the API server has the changed CRD")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	r.Expect(err).NotTo(HaveOccurred())
	address := listener.Addr().String()
	r.Expect(listener.Close()).To(Succeed())
	isShown := func() {
		r.Helper()
		r.Eventually(probed("http://" + address + "/readyz/caches")).Should(SatisfyAll(HavePrefix("500"), ContainSubstring("VM objects cannot be read"), ContainSubstring("2026-11-27t02:00:00z")))
		r.Eventually(probed("http://" + address + "/readyz")).Should(HavePrefix("500"))
		r.Expect(failing()).To(Equal([]string{"VM"}))
	}

	store()
	manager, err := testkit.StartManager(r.user, setup.Options{Namespace: operatorNamespace}, func(options *ctrl.Options) { options.HealthProbeBindAddress = address })
	r.Expect(err).NotTo(HaveOccurred())
	isShown()
	r.Expect(r.env.Client.Delete(r.Context(), bad())).To(Succeed())
	r.Eventually(probed("http://" + address + "/readyz")).WithTimeout(2 * time.Minute).Should(HavePrefix("200"))
	r.Expect(failing()).To(BeEmpty())
	store()
	isShown()
	r.Expect(manager.Stop()).To(Succeed())
}
