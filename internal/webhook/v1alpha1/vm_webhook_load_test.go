package v1alpha1

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

func TestCheckEndsAfterItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, nil, aCloud("default"))
		h.cloud.OnCall(func(ctx context.Context, _ cloudfake.Verb, _ string) { <-ctx.Done() })
		began := time.Now()
		warnings, err := h.validateCreate(t.Context(), aVM())
		if took := time.Since(began); err != nil || len(warnings) != 1 || took != checkTimeout {
			t.Errorf("%v, %v after %v; want a warning after %v", warnings, err, took, checkTimeout)
		}
	})
}

func TestReviewsDoNotUseTheFlowOfTheNamespace(t *testing.T) {
	own, review := cloud.FlowOf(cloud.WithFlow(t.Context(), "ns")), cloud.FlowOf(cloud.WithReviewFlow(t.Context(), "ns"))
	if cmp.Equal(own, review, cmpopts.IgnoreFields(cloud.Flow{}, "Since")) {
		t.Errorf("reviews have the flow %+v, which the VMs of the namespace have", review)
	}
}

func TestExcessReviewsAreAnsweredAtOnce(t *testing.T) {
	const busy = `vmname "web" was not checked: too many names are being checked at this time; the operator checks it before it creates the VM`
	in := func(namespace string) func(*pcapi.VM) {
		return func(vm *pcapi.VM) { vm.Namespace = namespace }
	}
	var spread []string
	for i := range maxReviews {
		spread = append(spread, fmt.Sprintf("ns-%d", i/maxReviewsOfNamespace))
	}
	for name, tc := range map[string]struct {
		// underWay are the namespaces of the checks that wait for the cloud, and then
		// that of one more.
		underWay []string
		then     string
		refused  bool
	}{
		"one too many in a namespace: not checked":       {slices.Repeat([]string{"ns"}, maxReviewsOfNamespace), "ns", true},
		"as many as a namespace may have: checked":       {slices.Repeat([]string{"ns"}, maxReviewsOfNamespace-1), "ns", false},
		"one namespace has its share: others go on":      {slices.Repeat([]string{"ns"}, maxReviewsOfNamespace), "other", false},
		"one too many in all namespaces: not checked":    {spread, "other", true},
		"one less than too many in all: another may ask": {spread[1:], "other", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, nil, aCloud("default"))
				answer := make(chan struct{})
				h.cloud.OnCall(func(context.Context, cloudfake.Verb, string) { <-answer })
				var running sync.WaitGroup
				h.count = func(outcome) {}
				check := func(namespace string) (warnings []string) {
					w, err := h.validateCreate(t.Context(), aVM(in(namespace), on("default")))
					if err != nil {
						t.Errorf("rejected: %v", err)
					}
					return w
				}
				for _, namespace := range tc.underWay {
					running.Go(func() { check(namespace) })
				}
				synctest.Wait()
				began := time.Now()
				var warnings []string
				running.Go(func() { warnings = check(tc.then) })
				synctest.Wait()
				if tc.refused {
					expect(t, "warnings", []string{busy}, warnings)
				}
				close(answer)
				running.Wait()
				if took := time.Since(began); took != 0 {
					t.Errorf("the review took %v", took)
				}
				if !tc.refused {
					expect(t, "warnings", []string(nil), warnings)
				}
				expect(t, "reviews under way at the end", 0, h.reviews.all+len(h.reviews.byNamespace))
			})
		})
	}
}

func TestReviewWaitsForTheNamespaceOfItsVM(t *testing.T) {
	for name, tc := range map[string]struct {
		after time.Duration
		took  time.Duration
		want  []string
	}{
		"the cache gets it in time: checked": {after: 300 * time.Millisecond, took: 300 * time.Millisecond},
		"the cache gets it too late: allowed with a warning": {
			after: namespaceWait + 1, took: namespaceWait,
			want: []string{`vmname "web" was not checked: the operator has not observed namespace "new" yet; the operator checks it before it creates the VM`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, nil, aCloud("default"))
				began := time.Now()
				h.reader = interceptor.NewClient(h.reader.(client.WithWatch), interceptor.Funcs{
					Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
						if key.Name == "new" && time.Since(began) >= tc.after {
							key.Name = "ns"
						}
						return c.Get(ctx, key, o, opts...)
					},
				})
				warnings, err := h.validateCreate(t.Context(), aVM(func(vm *pcapi.VM) { vm.Namespace = "new" }))
				if err != nil {
					t.Errorf("rejected: %v", err)
				}
				expect(t, "warnings", tc.want, warnings)
				expect(t, "duration", tc.took, time.Since(began))
			})
		})
	}
}
