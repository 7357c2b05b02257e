package behaviour_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// group makes a VmGroup on the site's cloud.
func (s *site) group(ctx SpecContext, name string, replicas int32, change ...func(*v1alpha1.VmGroup)) *v1alpha1.VmGroup {
	GinkgoHelper()
	g := &v1alpha1.VmGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: v1alpha1.VmGroupSpec{
			CPU: ptr.To[int32](2), Memory: ptr.To[int32](1), Template: "debian-13", Replicas: &replicas,
			CloudRef: &v1alpha1.CloudReference{Name: s.object.Name},
		},
	}
	for _, apply := range change {
		apply(g)
	}
	Expect(env.Client.Create(ctx, g)).To(Succeed())
	return g
}

// members returns the VMs of a group that are not being deleted, by name.
func members(g *v1alpha1.VmGroup) func(context.Context) ([]v1alpha1.VM, error) {
	return func(ctx context.Context) ([]v1alpha1.VM, error) {
		var list v1alpha1.VMList
		if err := env.Client.List(ctx, &list, client.InNamespace(g.Namespace), client.MatchingLabels{v1alpha1.GroupLabel: g.Name}); err != nil {
			return nil, err
		}
		var alive []v1alpha1.VM
		for _, vm := range list.Items {
			if vm.DeletionTimestamp.IsZero() && metav1.IsControlledBy(&vm, g) {
				alive = append(alive, vm)
			}
		}
		return alive, nil
	}
}

var vmGroups = theme{of: "a group", cases: cases{
	"has as many VMs as asked for, each made once": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		g := s.group(ctx, "web", 3)
		Eventually(ctx, now(g)).Should(testkit.BeReady())
		Expect(read(ctx, g).Status).To(And(HaveField("Phase", v1alpha1.VmGroupRunning), HaveField("Replicas", int32(3)), HaveField("ReadyReplicas", int32(3))))
		Expect(s.Servers()).To(HaveLen(3))
		Expect(s.posts()).To(Equal(3))
	},
}}
