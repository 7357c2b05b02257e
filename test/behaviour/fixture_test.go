package behaviour_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// fixture is what a case works on: a cloud, the Cloud object with its endpoint,
// and a namespace to use it from.
type fixture struct {
	*testkit.CloudServer

	t         *T
	object    *pcapi.Cloud
	namespace string
}

var clouds atomic.Int32

// newFixture returns a fixture whose Cloud is connected. It is removed when the case ends.
func newFixture(t *T, options mockcloud.Options, change ...func(*pcapi.Cloud)) *fixture {
	t.Helper()
	f := &fixture{t: t, CloudServer: serveCloud(t, options)}
	f.object = createCloud(t, f.URL, change...)
	f.namespace = newNamespace(t, nil)
	t.Eventually(latest(f.object)).Should(testkit.BeReady(), "a new cloud is connected")
	return f
}

func serveCloud(t *T, options mockcloud.Options) *testkit.CloudServer {
	t.Helper()
	cloud, err := testkit.ServeCloud(options)
	t.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { t.Expect(cloud.Close()).To(Succeed()) })
	return cloud
}

// reconnect connects the cloud again after Disconnect.
func (f *fixture) reconnect() {
	f.t.Helper()
	f.t.Expect(f.Connect()).To(Succeed())
}

// createCloud creates a Cloud object with an endpoint.
func createCloud(t *T, endpoint string, change ...func(*pcapi.Cloud)) *pcapi.Cloud {
	t.Helper()
	object := testkit.Cloud(fmt.Sprintf("cloud-%04d", clouds.Add(1)), endpoint, change...)
	t.Expect(env.Client.Create(t.Context(), object)).To(Succeed())
	t.cleanup(func(ctx context.Context) {
		if current, err := latest(object)(ctx); err == nil {
			t.Expect(secretsIn("Cloud "+object.Name, current)).To(Succeed())
		}
		t.wipe(ctx, object)
	})
	t.logOperatorIfFailed(object.Name)
	return object
}

// newNamespace creates a namespace. The objects in it are removed when the case ends.
func newNamespace(t *T, labels map[string]string) string {
	t.Helper()
	ns := testkit.Namespace("vms-", labels)
	t.Expect(env.Client.Create(t.Context(), ns)).To(Succeed())
	t.cleanup(func(ctx context.Context) {
		// Groups first, since they replace VMs that are deleted.
		for _, list := range []client.ObjectList{&pcapi.VmGroupList{}, &pcapi.VMList{}, &pcapi.GPUInfoList{}, &pcapi.NetworkList{}} {
			t.wipeAll(ctx, ns.Name, list)
		}
	})
	t.logOperatorIfFailed(ns.Name)
	return ns.Name
}

// wipeAll removes all objects of a kind in a namespace, and looks that none has a secret in it.
func (t *T) wipeAll(ctx context.Context, namespace string, list client.ObjectList) {
	t.Helper()
	t.Expect(env.Client.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	t.Expect(secretsIn(fmt.Sprintf("%T of %s", list, namespace), list)).To(Succeed())
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	for i := range items.Len() {
		object, ok := reflect.TypeAssert[client.Object](items.Index(i).Addr())
		t.Expect(ok).To(BeTrue(), "%T is an object", items.Index(i).Interface())
		t.wipe(ctx, object)
	}
}

// wipe removes an object without regard to its finalizers.
func (t *T) wipe(ctx context.Context, object client.Object) {
	t.Helper()
	t.Expect(client.IgnoreNotFound(env.Client.Delete(ctx, object))).To(Succeed())
	bare := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	t.Expect(client.IgnoreNotFound(env.Client.Patch(ctx, object, bare))).To(Succeed())
}

// secretsIn fails if the JSON of an object has a secret in it.
func secretsIn(what string, object any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", what, err)
	}
	if strings.Contains(string(text), secretPart) {
		return fmt.Errorf("a secret is in %s: %s", what, text)
	}
	return nil
}

// createVM creates a VM on the cloud of the fixture.
func (f *fixture) createVM(name string, change ...func(*pcapi.VM)) *pcapi.VM {
	f.t.Helper()
	change = append([]func(*pcapi.VM){func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: f.object.Name} }}, change...)
	vm := testkit.VM(f.namespace, name, change...)
	f.t.Expect(env.Client.Create(f.t.Context(), vm)).To(Succeed())
	return vm
}

// readyVM creates a VM and returns it as it is once it is ready.
func (f *fixture) readyVM(name string, change ...func(*pcapi.VM)) *pcapi.VM {
	f.t.Helper()
	return waitReady(f.t, f.createVM(name, change...))
}

func waitReady(t *T, vm *pcapi.VM) *pcapi.VM {
	t.Helper()
	t.Eventually(latest(vm)).Should(testkit.BeReady())
	return get(t, vm)
}

// waitForPolls waits until the servers of the cloud were listed n times more.
func (f *fixture) waitForPolls(n int) {
	f.t.Helper()
	before := f.CountCalls("GET", "/servers")
	f.t.Eventually(func() int { return f.CountCalls("GET", "/servers") - before }).
		Should(BeNumerically(">=", n), "the cloud is polled")
}

// forcePoll makes the operator poll a cloud that it polls less often than usual.
func (f *fixture) forcePoll() {
	f.t.Helper()
	before := f.CountCalls("GET", "/servers")
	f.t.Eventually(func() int {
		touch(f.t, f.object)
		return f.CountCalls("GET", "/servers") - before
	}).WithPolling(200*time.Millisecond).Should(BeNumerically(">", 0), "the cloud is polled")
}

// addFault adds a fault to the cloud and returns its id.
func (f *fixture) addFault(fault mockcloud.Fault) string {
	f.t.Helper()
	id, err := f.AddFault(fault)
	f.t.Expect(err).NotTo(HaveOccurred())
	return id
}

// serversNamed returns the ids of the servers with a name.
func (f *fixture) serversNamed(name string) []string {
	var ids []string
	for _, server := range f.Servers() {
		if server.Name == name {
			ids = append(ids, server.ID)
		}
	}
	return ids
}

// serverOf returns a function that reads the server of a VM from the cloud's state.
func (f *fixture) serverOf(vm *pcapi.VM) func() (mockcloud.Server, error) {
	return func() (mockcloud.Server, error) {
		server, exists := f.Server(vm.Status.VMID)
		if !exists {
			return server, fmt.Errorf("the cloud has no server %s", vm.Status.VMID)
		}
		return server, nil
	}
}

// effects returns the operations of the cloud's ledger, oldest first.
func (f *fixture) effects() []mockcloud.Op {
	var ops []mockcloud.Op
	for _, entry := range f.Ledger() {
		ops = append(ops, entry.Op)
	}
	return ops
}

// createCalls counts the creates of servers that were sent, whatever their result.
func (f *fixture) createCalls() int { return f.CountCalls("POST", "/servers") }

// latest returns a function that reads an object from the API server.
func latest[O client.Object](object O) func(context.Context) (O, error) {
	return func(ctx context.Context) (O, error) {
		fresh := reflect.New(reflect.TypeOf(object).Elem()).Interface().(O)
		return fresh, env.Client.Get(ctx, client.ObjectKeyFromObject(object), fresh)
	}
}

// get reads an object from the API server.
func get[O client.Object](t *T, object O) O {
	t.Helper()
	fresh, err := latest(object)(t.Context())
	t.Expect(err).NotTo(HaveOccurred())
	return fresh
}

// settlingLate gives a case the time to observe what ends with the settle time.
func settlingLate(c *pcapi.Cloud) { c.Spec.SettleTime.Duration = 15 * time.Second }

// edit changes an object as a user does, and returns the result.
func edit[O client.Object](t *T, object O, change func(O)) O {
	t.Helper()
	edited, err := tryEdit(t, object, change)
	t.Expect(err).NotTo(HaveOccurred())
	return edited
}

// tryEdit is edit for changes that the API server may refuse.
func tryEdit[O client.Object](t *T, object O, change func(O)) (O, error) {
	t.Helper()
	fresh := get(t, object)
	base := fresh.DeepCopyObject().(O)
	change(fresh)
	return fresh, env.Client.Patch(t.Context(), fresh, client.MergeFrom(base))
}

// annotate sets an annotation, or removes it if the value is empty.
func annotate[O client.Object](t *T, object O, key, value string) {
	t.Helper()
	edit(t, object, func(o O) {
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

// requestReconcile requests a reconcile of an object by its annotation.
func requestReconcile[O client.Object](t *T, object O) {
	t.Helper()
	annotate(t, object, pcapi.ReconcileRequestedAtAnnotation, fmt.Sprint(requests.Add(1)))
}

// touch changes an annotation of a Cloud that means nothing, which enqueues the Cloud.
func touch(t *T, cloud *pcapi.Cloud) {
	t.Helper()
	annotate(t, cloud, "example.com/touched", fmt.Sprint(requests.Add(1)))
}

func deleteObject(t *T, object client.Object) {
	t.Helper()
	t.Expect(env.Client.Delete(t.Context(), object)).To(Succeed())
}

// isGone returns a function that reports whether an object is gone.
func isGone[O client.Object](object O) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		_, err := latest(object)(ctx)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
}

// eventReasons returns a function that reads the reasons of the events about an
// object, oldest first.
func eventReasons(object client.Object) func(context.Context) ([]string, error) {
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

// clusterID is the id by which the operator distinguishes its cluster from others.
func clusterID(t *T) string {
	t.Helper()
	var system corev1.Namespace
	t.Expect(env.Client.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, &system)).To(Succeed())
	return string(system.UID)
}

// kubectl runs kubectl and returns what it printed.
func kubectl(t *T, input string, args ...string) string {
	t.Helper()
	output, err := env.Kubectl(t.Context(), input, args...)
	t.Expect(err).NotTo(HaveOccurred())
	return output
}
