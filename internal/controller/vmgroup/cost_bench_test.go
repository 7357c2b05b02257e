package vmgroup

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/testkit/cached"
)

// perMember reports the time that one member of n takes.
func perMember(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/member")
}

// BenchmarkCostOfReconcile observes a group in sync with n members, plans and reports. The
// cost of a member must not grow with n.
func BenchmarkCostOfReconcile(b *testing.B) {
	cached.Sizes(b, func(b *testing.B, n int) {
		g := groupOfSize(int32(n))
		g.Spec.CloudRef = &pcapi.CloudReference{Name: "home"}
		revision, objects := templateOf(g, "home").revision(), []client.Object{listedCloud()}
		for i := range n {
			objects = append(objects, vm(memberName(g, i), func(vm *pcapi.VM) {
				vm.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(g, pcapi.GroupVersion.WithKind(kindName))}
				vm.Labels[pcapi.RevisionLabel], vm.Spec.CloudRef = revision, g.Spec.CloudRef
			}))
		}
		k := newKind(cached.Client(b, func(ctx context.Context, indexer client.FieldIndexer) error {
			return indexer.IndexField(ctx, &pcapi.VM{}, memberIndex, groupOf)
		}, objects...), nil, controller.Options{Clock: time.Now})
		for b.Loop() {
			obs, err := k.Observe(b.Context(), g)
			if err != nil || len(obs.members) != n {
				b.Fatalf("%d members, %v", len(obs.members), err)
			}
			p := k.Plan(g, obs)
			if p.Outcome != nil {
				b.Fatal(p.Outcome)
			}
			k.Report(g, obs, p.Outcome)
		}
		perMember(b, n)
	})
}

// BenchmarkCostOfPlan plans for groups that need changes of many members.
func BenchmarkCostOfPlan(b *testing.B) {
	half := func(change ...func(*pcapi.VM)) func(i int) []func(*pcapi.VM) {
		return func(i int) []func(*pcapi.VM) {
			if i%2 == 0 {
				return nil
			}
			return change
		}
	}
	for _, bc := range []struct {
		name   string
		size   func(n int) int
		policy pcapi.ScaleDownPolicy
		member func(i int) []func(*pcapi.VM)
	}{
		{name: "half are lost", member: half(lost)},
		{name: "half are stalled in deletion", member: half(stuckInDeletion)},
		{name: "half of another size, and too many", size: func(n int) int { return n / 2 }, member: half(smaller)},
		{name: "rolling", member: half(former)},
		{name: "scaled to half, at random", size: func(n int) int { return n / 2 }, policy: pcapi.ScaleDownRandom, member: half()},
		{name: "scaled to half, newest first", size: func(n int) int { return n / 2 }, member: half()},
	} {
		b.Run(bc.name, func(b *testing.B) {
			cached.Sizes(b, func(b *testing.B, n int) {
				size := n
				if bc.size != nil {
					size = bc.size(n)
				}
				g := groupOfSize(int32(size), policy(bc.policy))
				members := make([]*pcapi.VM, n)
				for i := range members {
					members[i] = vm(memberName(g, i), bc.member(i)...)
				}
				obs := observed(members)
				for b.Loop() {
					_ = outcomeOf(g, obs, movesFor(g, obs))
				}
				perMember(b, n)
			})
		})
	}
}

// BenchmarkCostOfFreeNames finds the names of the next members of a group of n.
func BenchmarkCostOfFreeNames(b *testing.B) {
	cached.Sizes(b, func(b *testing.B, n int) {
		g := groupOfSize(int32(n))
		members := make([]*pcapi.VM, n)
		for i := range members {
			members[i] = vm(memberName(g, i))
		}
		k, obs := newKind(nil, nil, controller.Options{Clock: time.Now}), observed(members)
		for b.Loop() {
			if names := k.freeNames(g, obs, maxChanges); len(names) != maxChanges {
				b.Fatalf("%d names", len(names))
			}
		}
		perMember(b, n)
	})
}
