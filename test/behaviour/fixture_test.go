package behaviour_test

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// site is a cloud, the Cloud object that leads to it, and a namespace to use it from.
type site struct {
	*mockcloud.Cloud

	object    *v1alpha1.Cloud
	namespace string

	server *httptest.Server
}

var sites atomic.Int32

// newSite returns a site whose Cloud is connected. It goes with the spec.
func newSite(ctx SpecContext, options mockcloud.Options, change ...func(*v1alpha1.Cloud)) *site {
	GinkgoHelper()
	s := &site{namespace: newNamespace(ctx, nil)}
	s.Cloud = newCloud(options)
	s.plug("127.0.0.1:0")
	s.object = openCloud(ctx, s.server.URL, change...)
	Eventually(ctx, now(s.object)).Should(testkit.BeReady(), "a fresh cloud is connected")
	return s
}

func newCloud(options mockcloud.Options) *mockcloud.Cloud {
	GinkgoHelper()
	cloud, err := mockcloud.New(options)
	Expect(err).NotTo(HaveOccurred())
	return cloud
}

// serveCloud returns a cloud and the endpoint where it answers.
func serveCloud(options mockcloud.Options) (*mockcloud.Cloud, string) {
	GinkgoHelper()
	s := &site{Cloud: newCloud(options)}
	s.plug("127.0.0.1:0")
	return s.Cloud, s.server.URL
}

// plug has the cloud answer at an address.
func (s *site) plug(address string) {
	GinkgoHelper()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	Expect(err).NotTo(HaveOccurred())
	s.server = httptest.NewUnstartedServer(s.Handler())
	Expect(s.server.Listener.Close()).To(Succeed())
	s.server.Listener = listener
	s.server.Start()
	DeferCleanup(func() {
		// First the cloud, which lets the calls go that it holds.
		Expect(s.Close()).To(Succeed())
		s.server.CloseClientConnections()
		s.server.Close()
	})
}

// unplug takes the cloud off the network, and returns the address to plug it in again.
func (s *site) unplug() string {
	address := s.server.Listener.Addr().String()
	s.server.CloseClientConnections()
	s.server.Close()
	return address
}

// openCloud makes a Cloud object that leads to an endpoint.
func openCloud(ctx SpecContext, endpoint string, change ...func(*v1alpha1.Cloud)) *v1alpha1.Cloud {
	GinkgoHelper()
	object := testkit.Cloud(fmt.Sprintf("cloud-%d", sites.Add(1)), endpoint, change...)
	Expect(env.Client.Create(ctx, object)).To(Succeed())
	return object
}

// sweep removes all objects of this group and Nodes, and all Clouds but the
// default one, whatever holds them.
func sweep(ctx SpecContext) {
	GinkgoHelper()
	var vms v1alpha1.VMList
	var networks v1alpha1.NetworkList
	var gpus v1alpha1.GPUInfoList
	var nodes corev1.NodeList
	var clouds v1alpha1.CloudList
	var groups v1alpha1.VmGroupList
	for _, list := range []client.ObjectList{&groups, &networks, &gpus, &nodes, &clouds} {
		Expect(env.Client.List(ctx, list)).To(Succeed())
	}
	var running sync.WaitGroup
	wipe := func(object client.Object) {
		running.Go(func() {
			defer GinkgoRecover()
			Expect(client.IgnoreNotFound(env.Client.Delete(ctx, object))).To(Succeed())
			bare := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			Expect(client.IgnoreNotFound(env.Client.Patch(ctx, object, bare))).To(Succeed())
		})
	}
	for i := range groups.Items {
		wipe(&groups.Items[i])
	}
	running.Wait()
	Expect(env.Client.List(ctx, &vms)).To(Succeed())
	for i := range vms.Items {
		wipe(&vms.Items[i])
	}
	for i := range gpus.Items {
		wipe(&gpus.Items[i])
	}
	for i := range nodes.Items {
		wipe(&nodes.Items[i])
	}
	for i := range networks.Items {
		wipe(&networks.Items[i])
	}
	for i := range clouds.Items {
		if clouds.Items[i].Name != v1alpha1.DefaultCloudName {
			wipe(&clouds.Items[i])
		}
	}
	running.Wait()
}

func newNamespace(ctx SpecContext, labels map[string]string) string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "vms-", Labels: labels}}
	Expect(env.Client.Create(ctx, ns)).To(Succeed())
	return ns.Name
}

// create makes a VM on the site's cloud.
func (s *site) create(ctx SpecContext, name string, change ...func(*v1alpha1.VM)) *v1alpha1.VM {
	GinkgoHelper()
	change = append([]func(*v1alpha1.VM){func(vm *v1alpha1.VM) { vm.Spec.CloudRef = &v1alpha1.CloudReference{Name: s.object.Name} }}, change...)
	vm := testkit.VM(s.namespace, name, change...)
	Expect(env.Client.Create(ctx, vm)).To(Succeed())
	return vm
}

// ready makes a VM and returns it as it is once it is ready.
func (s *site) ready(ctx SpecContext, name string, change ...func(*v1alpha1.VM)) *v1alpha1.VM {
	GinkgoHelper()
	return untilReady(ctx, s.create(ctx, name, change...))
}

func untilReady(ctx SpecContext, vm *v1alpha1.VM) *v1alpha1.VM {
	GinkgoHelper()
	Eventually(ctx, now(vm)).Should(testkit.BeReady())
	return read(ctx, vm)
}

// polls waits until the cloud was listed n times more.
func (s *site) polls(ctx SpecContext, n int) {
	GinkgoHelper()
	before := s.CountCalls("GET", "/servers")
	Eventually(ctx, func() int { return s.CountCalls("GET", "/servers") - before }).
		Should(BeNumerically(">=", n), "the cloud is polled")
}

// hurry waits for a poll of a Cloud that is looked at less often than it is polled.
func (s *site) hurry(ctx SpecContext) {
	GinkgoHelper()
	before := s.CountCalls("GET", "/servers")
	Eventually(ctx, func(ctx SpecContext) int {
		nudge(ctx, s.object)
		return s.CountCalls("GET", "/servers") - before
	}).WithPolling(200*time.Millisecond).Should(BeNumerically(">", 0), "the cloud is polled")
}

// fault has the cloud misbehave.
func (s *site) fault(fault mockcloud.Fault) string {
	GinkgoHelper()
	id, err := s.AddFault(fault)
	Expect(err).NotTo(HaveOccurred())
	return id
}

// named returns the ids of the servers that bear a name, whoever made them.
func (s *site) named(name string) []string {
	var ids []string
	for _, server := range s.Servers() {
		if server.Name == name {
			ids = append(ids, server.ID)
		}
	}
	return ids
}

// serverOf reads a VM's server from the cloud's own books.
func (s *site) serverOf(vm *v1alpha1.VM) func() (mockcloud.Server, error) {
	return func() (mockcloud.Server, error) {
		server, exists := s.Server(vm.Status.VMID)
		if !exists {
			return server, fmt.Errorf("the cloud has no server %s", vm.Status.VMID)
		}
		return server, nil
	}
}

// effects returns what happened to the cloud's servers, oldest first, as the ledger has it.
func (s *site) effects() []mockcloud.Op {
	var ops []mockcloud.Op
	for _, entry := range s.Ledger() {
		ops = append(ops, entry.Op)
	}
	return ops
}

// posts is how many creates were sent, whatever became of them.
func (s *site) posts() int { return s.CountCalls("POST", "/servers") }

// now reads an object anew, for Eventually.
func now[T client.Object](object T) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		fresh := reflect.New(reflect.TypeOf(object).Elem()).Interface().(T)
		return fresh, env.Client.Get(ctx, client.ObjectKeyFromObject(object), fresh)
	}
}

func read[T client.Object](ctx SpecContext, object T) T {
	GinkgoHelper()
	fresh, err := now(object)(ctx)
	Expect(err).NotTo(HaveOccurred())
	return fresh
}

// edit changes an object as a person would, and returns what became of it.
func edit[T client.Object](ctx SpecContext, object T, change func(T)) T {
	GinkgoHelper()
	edited, err := tryEdit(ctx, object, change)
	Expect(err).NotTo(HaveOccurred())
	return edited
}

func tryEdit[T client.Object](ctx context.Context, object T, change func(T)) (T, error) {
	GinkgoHelper()
	fresh, err := now(object)(ctx)
	Expect(err).NotTo(HaveOccurred())
	base := fresh.DeepCopyObject().(T)
	change(fresh)
	return fresh, env.Client.Patch(ctx, fresh, client.MergeFrom(base))
}

// annotate sets an annotation, or removes it if the value is empty.
func annotate[T client.Object](ctx SpecContext, object T, key, value string) {
	GinkgoHelper()
	edit(ctx, object, func(o T) {
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = value
		if value == "" {
			delete(annotations, key)
		}
		o.SetAnnotations(annotations)
	})
}

var requests atomic.Int32

// poke asks for a pass over an object.
func poke[T client.Object](ctx SpecContext, object T) {
	GinkgoHelper()
	annotate(ctx, object, v1alpha1.ReconcileRequestedAtAnnotation, fmt.Sprint(requests.Add(1)))
}

// nudge has the operator look at a Cloud now, as any other annotation would.
func nudge(ctx SpecContext, cloud *v1alpha1.Cloud) {
	GinkgoHelper()
	annotate(ctx, cloud, "example.com/nudge", fmt.Sprint(requests.Add(1)))
}

func remove(ctx SpecContext, object client.Object) {
	GinkgoHelper()
	Expect(env.Client.Delete(ctx, object)).To(Succeed())
}

// gone tells whether an object is gone, for Eventually.
func gone[T client.Object](object T) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		_, err := now(object)(ctx)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
}

// story returns the reasons of the events about an object, oldest first.
func story(object client.Object) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		var list eventsv1.EventList
		if err := env.Client.List(ctx, &list); err != nil {
			return nil, err
		}
		slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
		var reasons []string
		for _, event := range list.Items {
			if event.Regarding.UID != object.GetUID() {
				continue
			}
			reasons = append(reasons, event.Reason)
			if event.Series != nil {
				reasons = append(reasons, fmt.Sprintf("and %d times more", event.Series.Count))
			}
		}
		return reasons, nil
	}
}

// clusterID is how the operator tells its cluster from others.
func clusterID(ctx SpecContext) string {
	GinkgoHelper()
	var system corev1.Namespace
	Expect(env.Client.Get(ctx, client.ObjectKey{Name: "kube-system"}, &system)).To(Succeed())
	return string(system.UID)
}
