package setup_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/setup"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

const (
	operatorNamespace = "private-cloud-system"
	// takeover is the most that a standby may take after the leader has released
	// its lease: one retry, and the reconciles of what exists.
	takeover = 10 * time.Second
)

// replicas starts managers of one API server. Those with the same Clouds compete for
// one lease.
type replicas struct {
	*testkit.T

	env  *testkit.Env
	user *rest.Config
}

func newReplicas(tt *testing.T) *replicas {
	tt.Helper()
	ctrl.SetLogger(logr.Discard())
	r := (&replicas{}).in(tt)
	var err error
	r.env, err = testkit.Start(testkit.Options{})
	r.Expect(err).NotTo(HaveOccurred())
	r.Cleanup(func() { r.Expect(r.env.Stop()).To(Succeed()) })
	r.user, err = r.env.OperatorConfig(r.Context(), operatorNamespace)
	r.Expect(err).NotTo(HaveOccurred())
	return r
}

// in returns the replicas with the assertions of another test.
func (r *replicas) in(tt *testing.T) *replicas {
	tt.Helper()
	return &replicas{T: testkit.NewT(tt, time.Minute, 20*time.Millisecond), env: r.env, user: r.user}
}

func (r *replicas) start(user *rest.Config, options setup.Options) *testkit.Manager {
	r.Helper()
	lease := options.Scope.LeaseName("lease")
	options.Namespace = operatorNamespace
	m, err := testkit.StartManager(user, options, func(options *ctrl.Options) {
		options.LeaderElection, options.LeaderElectionID, options.LeaderElectionNamespace = true, lease, operatorNamespace
		options.LeaderElectionConfig, options.LeaderElectionReleaseOnCancel = r.env.Config, true
		options.RetryPeriod = new(time.Second)
	})
	r.Expect(err).NotTo(HaveOccurred())
	return m
}

// queued returns how many requests wait in the queues of all managers of this process.
func (r *replicas) queued() (total float64, err error) {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return 0, err
	}
	for _, family := range families {
		if family.GetName() == "workqueue_depth" {
			for _, metric := range family.GetMetric() {
				total += metric.GetGauge().GetValue()
			}
		}
	}
	return total, nil
}

// reportedVMs returns a function that sums up the VMs of a namespace that all managers of
// this process report as metrics.
func (r *replicas) reportedVMs(namespace string) func() (float64, error) {
	return func() (total float64, err error) {
		families, err := metrics.Registry.Gather()
		for _, family := range families {
			if family.GetName() != "privatecloud_objects" {
				continue
			}
			for _, metric := range family.GetMetric() {
				values := map[string]string{}
				for _, label := range metric.GetLabel() {
					values[label.GetName()] = label.GetValue()
				}
				if values["kind"] == "VM" && values["namespace"] == namespace {
					total += metric.GetGauge().GetValue()
				}
			}
		}
		return total, err
	}
}

func (r *replicas) ready(object client.Object) func(context.Context) (client.Object, error) {
	return func(ctx context.Context) (client.Object, error) {
		return object, r.env.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
	}
}

// TestStandbyQueuesNothingAndTakesOverAtOnce starts a second replica and changes
// objects of all kinds.
func TestStandbyQueuesNothingAndTakesOverAtOnce(tt *testing.T) {
	r := newReplicas(tt)
	cloud, err := testkit.ServeCloud(mockcloud.Options{})
	r.Expect(err).NotTo(HaveOccurred())
	r.Cleanup(func() { r.Expect(cloud.Close()).To(Succeed()) })
	leader := r.start(r.user, setup.Options{})
	home := testkit.Cloud("default", cloud.URL)
	r.Expect(r.env.Client.Create(r.Context(), home)).To(Succeed())
	r.Eventually(r.ready(home)).Should(testkit.BeReady())
	standby := r.start(r.user, setup.Options{})
	r.Cleanup(func() { r.Expect(standby.Stop()).To(Succeed()) })

	objects := []client.Object{
		testkit.Network("default", "net"), testkit.VmGroup("default", "group"),
		&pcapi.GPUInfo{ObjectMeta: testkit.VM("default", "gpu").ObjectMeta, Spec: pcapi.GPUInfoSpec{DesAccTime: 1}},
	}
	for i := range 20 {
		objects = append(objects, testkit.VM("default", fmt.Sprintf("web-%d", i)))
	}
	for _, object := range objects {
		r.Expect(r.env.Client.Create(r.Context(), object)).To(Succeed())
	}
	kept := objects[len(objects)-1]
	r.Eventually(r.ready(kept)).Should(testkit.BeReady())
	for _, object := range slices.Backward(objects[:len(objects)-1]) {
		r.Expect(r.env.Client.Delete(r.Context(), object)).To(Succeed())
	}
	r.Eventually(func(ctx context.Context) (int, error) {
		var vms pcapi.VMList
		err := r.env.Client.List(ctx, &vms)
		return len(vms.Items), err
	}).Should(Equal(1), "the VMs that are left")
	r.Eventually(r.queued).Should(BeZero(), "requests that wait in the queues of both replicas")
	r.Expect(standby.Writes.To()).To(BeEmpty(), "a standby writes nothing")
	r.Eventually(r.reportedVMs("default")).Should(BeEquivalentTo(1), "VMs that leader and standby report")

	r.Expect(leader.Stop()).To(Succeed())
	stopped := time.Now()
	next := testkit.VM("default", "next")
	r.Expect(r.env.Client.Create(r.Context(), next)).To(Succeed())
	r.Eventually(r.ready(next)).Should(testkit.BeReady())
	r.Expect(time.Since(stopped)).To(BeNumerically("<", takeover))
	r.Eventually(r.reportedVMs("default")).Should(BeEquivalentTo(2), "VMs that the new leader reports")
	r.Logf("the standby created a VM %v after the leader had stopped", time.Since(stopped))
}
