package vsphere_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/test/specs"
)

// site is a Cloud of one test, on a vCenter, and a namespace, which have one name.
type site struct {
	*testkit.T
	*cluster

	vcenter *vcsim.Server
	name    string
}

// made numbers the sites.
var made atomic.Int64

// newSite returns a site with a vCenter of its own. The Cloud is ready.
func newSite(tt *testing.T, change ...func(*pcapi.Cloud)) *site {
	tt.Helper()
	tt.Parallel()
	t := newT(tt)
	c, err := home()
	t.Expect(err).NotTo(HaveOccurred())
	s := connect(t, c, newVCenter(t), fmt.Sprintf("site-%d", made.Add(1)), change...)
	s.ready(s.cloud())
	return s
}

func newT(tt *testing.T) *testkit.T {
	tt.Helper()
	return testkit.NewT(tt, 40*time.Second, 50*time.Millisecond)
}

// newVCenter returns a vCenter that ends with the test.
func newVCenter(t *testkit.T) *vcsim.Server {
	t.Helper()
	v, err := vcsim.Start(t.Context())
	t.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(v.Close)
	return v
}

// connect creates a namespace, a Secret and a Cloud of this name.
func connect(t *testkit.T, c *cluster, v *vcsim.Server, name string, change ...func(*pcapi.Cloud)) *site {
	t.Helper()
	s := &site{T: t, cluster: c, vcenter: v, name: name}
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	s.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: specs.OperatorNamespace, Name: name, Labels: map[string]string{pcapi.CredentialsForLabel: name}},
		StringData: map[string]string{"username": "operator@vsphere.local", "password": firstPassword},
	})
	s.create(cloudOn(v, name, change...))
	return s
}

const firstPassword = "secret"

// cloudOn returns a Cloud on a vCenter, changed. Its Secret has its name.
func cloudOn(v *vcsim.Server, name string, change ...func(*pcapi.Cloud)) *pcapi.Cloud {
	return testkit.Cloud(name, v.URL, append([]func(*pcapi.Cloud){func(c *pcapi.Cloud) {
		c.Spec.Type, c.Spec.REST = pcapi.CloudTypeVSphere, nil
		c.Spec.CredentialsSecretRef, c.Spec.InsecureAllowHTTP = &pcapi.SecretReference{Name: name}, true
		c.Spec.VSphere = &pcapi.VSphereCloud{
			Datacenter: "DC0", Folder: vcsim.Folder, ResourcePool: "/DC0/host/DC0_C0/Resources", Datastore: "LocalDS_0",
			Templates: pcapi.VSphereTemplates{Folder: "/DC0/vm", Default: vcsim.Template},
		}
	}}, change...)...)
}

// cloud returns the Cloud of the site, to be read.
func (s *site) cloud() *pcapi.Cloud {
	return &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
}

// vm creates a VM on the Cloud of the site.
func (s *site) vm(name string, change ...func(*pcapi.VM)) *pcapi.VM {
	s.Helper()
	vm := testkit.VM(s.name, name, append([]func(*pcapi.VM){func(vm *pcapi.VM) {
		vm.Spec.CloudRef = &pcapi.CloudReference{Name: s.name}
	}}, change...)...)
	s.create(vm)
	return vm
}

// group creates a group on the Cloud of the site.
func (s *site) group(name string, replicas int32) *pcapi.VmGroup {
	s.Helper()
	group := testkit.VmGroup(s.name, name, func(g *pcapi.VmGroup) {
		g.Spec.CloudRef, g.Spec.Replicas = &pcapi.CloudReference{Name: s.name}, new(replicas)
	})
	s.create(group)
	return group
}

func (s *site) create(object client.Object) {
	s.Helper()
	s.Expect(s.env.Client.Create(s.Context(), object)).To(Succeed())
}

// stored returns a function that reads an object.
func (s *site) stored(object client.Object) func(context.Context) (client.Object, error) {
	return func(ctx context.Context) (client.Object, error) {
		read := object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // it is a copy
		return read, s.env.Client.Get(ctx, client.ObjectKeyFromObject(object), read)
	}
}

// ready waits until an object is ready, and reads it.
func (s *site) ready(object client.Object) {
	s.Helper()
	s.Eventually(s.stored(object)).Should(testkit.BeReady())
	s.Expect(s.env.Client.Get(s.Context(), client.ObjectKeyFromObject(object), object)).To(Succeed())
}

// edit changes an object as a user does.
func (s *site) edit(object client.Object, change func()) {
	s.Helper()
	s.Eventually(func(ctx context.Context) error {
		if err := s.env.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change()
		return s.env.Client.Update(ctx, object)
	}).Should(Succeed())
}

// place changes the block of the Cloud.
func (s *site) place(change func(*pcapi.VSphereCloud)) {
	s.Helper()
	c := s.cloud()
	s.edit(c, func() { change(c.Spec.VSphere) })
}

// setPassword changes the Secret.
func (s *site) setPassword(password string) {
	s.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: specs.OperatorNamespace, Name: s.name}}
	s.edit(secret, func() { secret.StringData = map[string]string{"password": password} })
}

// requestReconcile requests a reconcile of an object.
func (s *site) requestReconcile(object client.Object) {
	s.Helper()
	s.edit(object, func() {
		object.SetAnnotations(map[string]string{pcapi.ReconcileRequestedAtAnnotation: time.Now().String()})
	})
}

// remove deletes objects and waits until they are gone.
func (s *site) remove(objects ...client.Object) {
	s.Helper()
	for _, object := range objects {
		s.Expect(s.env.Client.Delete(s.Context(), object)).To(Succeed())
	}
	for _, object := range objects {
		s.gone(object, "it was deleted")
	}
}

// gone waits until an object does not exist any more.
func (s *site) gone(object client.Object, why string) {
	s.Helper()
	s.Eventually(func(ctx context.Context) bool {
		_, err := s.stored(object)(ctx)
		return apierrors.IsNotFound(err)
	}).Should(BeTrue(), "%T %s is gone: %s", object, object.GetName(), why)
}

// changesOf watches an object, and returns a function that returns its conditions each
// time that they differed from those that it has now.
func (s *site) changesOf(object client.Object, list client.ObjectList) func() []string {
	s.Helper()
	scheme, err := testkit.Scheme()
	s.Expect(err).NotTo(HaveOccurred())
	watching, err := client.NewWithWatch(s.env.Config, client.Options{Scheme: scheme})
	s.Expect(err).NotTo(HaveOccurred())
	now, err := s.stored(object)(s.Context())
	s.Expect(err).NotTo(HaveOccurred())
	before := conditionsOf(now)
	stream, err := watching.Watch(s.Context(), list, client.InNamespace(object.GetNamespace()), client.MatchingFields{"metadata.name": object.GetName()})
	s.Expect(err).NotTo(HaveOccurred())
	s.Cleanup(stream.Stop)
	var mu sync.Mutex
	var changes []string
	go func() {
		for event := range stream.ResultChan() {
			if after := conditionsOf(event.Object); after != before {
				mu.Lock()
				changes = append(changes, after)
				mu.Unlock()
			}
		}
	}()
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(changes)
	}
}

// conditionsOf returns the conditions of an object as text.
func conditionsOf(object any) string {
	conditioned, ok := object.(interface{ GetConditions() []metav1.Condition })
	if !ok {
		return fmt.Sprintf("%T has no conditions", object)
	}
	return fmt.Sprintf("%+v", conditioned.GetConditions())
}

// names returns the names of the VMs in the vCenter that are no templates.
func (s *site) names() []string { return namesIn(s.vcenter) }

func namesIn(v *vcsim.Server) []string {
	names := []string{}
	for _, vm := range v.VMs() {
		if !vm.Config.Template {
			names = append(names, vm.Name)
		}
	}
	return names
}
