// Package vsphere_test runs the operator with a Cloud of type VSphere, on a simulator of
// a vCenter. The specs share a default Cloud and run one after the other. The other tests
// have a vCenter each, and run in parallel with each other and the specs, since they mostly
// wait. Most of them share an API server with an operator.
//
//	suite_test.go    the suite of specs
//	life_test.go     specs of VMs, VmGroups and GPUInfos
//	import_test.go   specs of VMs that somebody else made
//	import_many_test.go  many of them, imported by the manifests of the kubectl plugin
//	cluster_test.go  API servers with operators, for the tests
//	site_test.go     a Cloud for one test
//	session_test.go  sessions, passwords, a vCenter that restarts
//	refusal_test.go  clones and changes that fail, and that take long
//	place_test.go    edits of spec.vsphere
//	displaced_test.go  VMs that are moved away or converted to templates
//	apart_test.go    VMs that are kept on different hosts
//	watch_test.go    changes by hand, on a vCenter that is listed seldom
//	rivals_test.go   several clusters, several managers, VMs of others
package vsphere_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/test/specs"
)

const tenantNamespace = "myoperator-vms"

var (
	env     *testkit.Env
	vcenter *vcsim.Server
)

func TestVSphere(t *testing.T) {
	t.Parallel()
	RegisterFailHandler(Fail)
	RunSpecs(t, "the operator with a vCenter")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	vcenter, err = vcsim.Start(ctx)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(vcenter.Close)
	shared, err := home()
	Expect(err).NotTo(HaveOccurred())
	env = shared.env
	specs.Use(env, 40*time.Second, 50*time.Millisecond)

	Expect(env.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenantNamespace}})).To(Succeed())
	defaultCloud := newCloud(ctx, pcapi.DefaultCloudName)
	Expect(env.Client.Create(ctx, defaultCloud)).To(Succeed())
	Eventually(ctx, specs.Stored(defaultCloud)).Should(testkit.BeReady())
})

// newCloud returns a Cloud of the vCenter, whose Secret exists, changed.
func newCloud(ctx context.Context, name string, change ...func(*pcapi.Cloud)) *pcapi.Cloud {
	GinkgoHelper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: specs.OperatorNamespace, Name: name, Labels: map[string]string{pcapi.CredentialsForLabel: name}},
		StringData: map[string]string{"username": "operator@vsphere.local", "password": "secret"},
	}
	Expect(env.Client.Create(ctx, secret)).To(Succeed())
	return cloudOn(vcenter, name, change...)
}
