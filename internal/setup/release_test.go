package setup_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientconfig "k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/privatecloud/operator/internal/setup"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// TestReleasedObjectIsNotReleasedAgainWhileTheWatchLags enqueues a VM between its release
// and the arrival of its deletion. Reading its own writes does not cover that: the answer
// to the patch that removes the last finalizer has the resourceVersion of before the
// deletion, which the cache has already.
func TestReleasedObjectIsNotReleasedAgainWhileTheWatchLags(tt *testing.T) {
	r := newReplicas(tt)
	cloud, err := testkit.ServeCloud(mockcloud.Options{})
	r.Expect(err).NotTo(HaveOccurred())
	r.Cleanup(func() { r.Expect(cloud.Close()).To(Succeed()) })
	vms, releases := newLag("vms"), &releases{of: "/vms/web"}
	releases.first = vms.begin
	user := clientconfig.CopyConfig(r.user)
	user.Wrap(vms.wrap)
	user.Wrap(releases.wrap)
	manager := r.start(user, setup.Options{})
	r.Cleanup(func() { r.Expect(manager.Stop()).To(Succeed()) })
	r.Cleanup(vms.end) // before the manager stops
	home, web := testkit.Cloud("default", cloud.URL), testkit.VM("default", "web")
	home.Spec.SettleTime.Duration = time.Second
	r.Expect(r.env.Client.Create(r.Context(), home)).To(Succeed())
	r.Expect(r.env.Client.Create(r.Context(), web)).To(Succeed())
	r.Eventually(r.ready(web)).Should(testkit.BeReady())
	created := time.Now()
	r.Eventually(func() time.Duration { return time.Since(created) }).Should(BeNumerically(">", 2*time.Second),
		"the settle time, within which the absence of a server proves nothing")

	releases.count.Store(true)
	r.Expect(r.env.Client.Delete(r.Context(), web)).To(Succeed())
	r.Eventually(r.eventsOf(web)).Should(ContainElement("Deleted"), "the VM is released")

	before, err := reconciled("vm")
	r.Expect(err).NotTo(HaveOccurred())
	changes := 0
	r.Eventually(func(ctx context.Context) (float64, error) {
		changes++ // enqueues the VMs of the namespace
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"changes":"%d"}}}`, changes))
		if err := r.env.Client.Patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, patch); err != nil {
			return 0, err
		}
		return reconciled("vm")
	}).Should(BeNumerically(">=", before+2), "reconciles of a VM that only the cache has")
	r.Expect(releases.sent.Load()).To(BeEquivalentTo(1), "releases")
}

// releases counts the patches of one object's metadata.
type releases struct {
	// of is the end of the path of the object.
	of string
	// first is called before the first patch is sent.
	first func()
	once  sync.Once
	// count is whether patches are counted.
	count atomic.Bool
	sent  atomic.Int32
}

func (s *releases) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if s.count.Load() && r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, s.of) {
			s.once.Do(s.first)
			s.sent.Add(1)
		}
		return next.RoundTrip(r)
	})
}

// eventsOf returns a function that returns the reasons of the events about an object.
func (r *replicas) eventsOf(object client.Object) func(context.Context) ([]string, error) {
	return func(ctx context.Context) (reasons []string, err error) {
		var list corev1.EventList
		err = r.env.Client.List(ctx, &list, client.InNamespace(object.GetNamespace()))
		for _, event := range list.Items {
			if event.InvolvedObject.UID == object.GetUID() {
				reasons = append(reasons, event.Reason)
			}
		}
		return reasons, err
	}
}

// reconciled returns how often a controller of this process has reconciled.
func reconciled(controller string) (total float64, err error) {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return 0, err
	}
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "controller" && label.GetValue() == controller {
					total += metric.GetCounter().GetValue()
				}
			}
		}
	}
	return total, nil
}
