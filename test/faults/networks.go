package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

// wire is the name of the one Network of a run.
const wire = "net"

// ofNetworks counts what is done to Networks and to the VMs on them.
func ofNetworks(e effect) bool { return ofVMs(e) || strings.HasPrefix(e.path, "networks/") }

// wiring is what a run wants of Networks, and what was seen of them.
type wiring struct {
	// wants says for each Network whether it runs or is gone; others of the cloud are strangers.
	wants     map[string]fate
	strangers map[string]mockcloud.Network
	latest    map[string]*v1alpha1.Network
	ids       map[types.UID]string
	wrong     []string
}

func newWiring() *wiring {
	return &wiring{
		wants: map[string]fate{}, strangers: map[string]mockcloud.Network{},
		latest: map[string]*v1alpha1.Network{}, ids: map[types.UID]string{},
	}
}

// createNetwork makes a Network beside a stranger's network, and wants it to run.
func createNetwork(ctx context.Context, w *world) error {
	put, err := w.mock.PutNetwork(mockcloud.Network{Name: taken, CIDR: "10.0.0.0/8", Gateway: "10.0.0.1"})
	if err != nil {
		return err
	}
	w.wantNetwork(runs, put)
	if err := w.followNetworks(ctx); err != nil {
		return err
	}
	return w.lab.client.Create(ctx, &v1alpha1.Network{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: wire},
		Spec:       v1alpha1.NetworkSpec{CIDR: "192.168.0.0/16", Gateway: "192.168.0.1", CloudRef: &v1alpha1.CloudReference{Name: w.name}},
	})
}

// regate gives the Network another gateway.
func regate(ctx context.Context, w *world) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"gateway":"192.168.0.2"}}`))
	return w.lab.client.Patch(ctx, w.networkObject(), patch)
}

// removeNetwork deletes the Network while nothing is on it.
func removeNetwork(ctx context.Context, w *world) error {
	w.wantNetwork(gone)
	return w.lab.client.Delete(ctx, w.networkObject())
}

// removeBoth deletes the Network, which has to wait, and the VM on it.
func removeBoth(ctx context.Context, w *world) error {
	if err := removeNetwork(ctx, w); err != nil {
		return err
	}
	return remove(vm, gone)(ctx, w)
}

func onNetwork(vm *v1alpha1.VM) { vm.Spec.NetworkRef = &v1alpha1.NetworkReference{Name: wire} }

func (w *world) networkObject() *v1alpha1.Network {
	return &v1alpha1.Network{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: wire}}
}

func (w *world) wantNetwork(f fate, strangers ...mockcloud.Network) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wiring.wants[wire] = f
	for _, s := range strangers {
		w.wiring.strangers[s.ID] = s
	}
}

// followNetworks watches the run's Networks past every proxy until the recorder ends.
func (w *world) followNetworks(ctx context.Context) error {
	var now v1alpha1.NetworkList
	if err := w.lab.client.List(ctx, &now, client.InNamespace(w.name)); err != nil {
		return fmt.Errorf("list Networks: %w", err)
	}
	stream, err := watchtools.NewRetryWatcherWithContext(ctx, now.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return w.lab.client.Watch(ctx, &v1alpha1.NetworkList{}, client.InNamespace(w.name), &client.ListOptions{Raw: &options})
		},
	})
	if err != nil {
		return fmt.Errorf("watch Networks: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range stream.ResultChan() {
			w.seeNetwork(event)
		}
	}()
	stop := w.recorder.stop
	w.recorder.stop = func() {
		stream.Stop()
		<-done
		stop()
	}
	return nil
}

// seeNetwork notes what must never be seen of a Network.
func (w *world) seeNetwork(event watch.Event) {
	object, ok := event.Object.(*v1alpha1.Network)
	w.mu.Lock()
	defer w.mu.Unlock()
	note := func(format string, args ...any) {
		w.wiring.wrong = append(w.wiring.wrong, fmt.Sprintf(format, args...))
	}
	if !ok {
		note("the watch of Networks broke: %v", apierrors.FromObject(event.Object))
		return
	}
	was := w.wiring.ids[object.UID]
	if was != "" && object.Status.NetworkID != was {
		note("status.networkId of %s was %s and became %q", object.Name, was, object.Status.NetworkID)
	}
	w.wiring.ids[object.UID] = object.Status.NetworkID
	if event.Type != watch.Deleted {
		w.wiring.latest[object.Name] = object
		return
	}
	delete(w.wiring.latest, object.Name)
	for _, n := range w.mock.Networks() {
		if _, stranger := w.wiring.strangers[n.ID]; !stranger {
			note("object %s is gone, and its network %s is there", object.Name, n.ID)
		}
	}
}

// wired says what is still missing of the Networks that the run wants; nil if nothing.
func (w *world) wired() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, fate := range w.wiring.wants {
		object := w.wiring.latest[name]
		switch {
		case fate == gone && object == nil:
		case fate == runs && object != nil && standsNetwork(object):
		case object == nil:
			return fmt.Errorf("there is no Network %s", name)
		default:
			return fmt.Errorf("the Network %s is not as wanted: %+v", name, object.Status)
		}
	}
	return nil
}

func standsNetwork(object *v1alpha1.Network) bool {
	c := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ReadyCondition)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == object.Generation && object.Status.NetworkID != ""
}

// crossed is what is wrong with the cloud's networks at rest, and what ever was.
func (w *world) crossed() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	wrong := slices.Clone(w.wiring.wrong)
	alive, most := map[string]int{}, map[string]int{}
	for _, e := range w.mock.Ledger() {
		switch {
		case e.Op == mockcloud.OpCreateNetwork && e.By == mockcloud.ByClient:
			alive[e.Name]++
			most[e.Name] = max(most[e.Name], alive[e.Name])
		case e.Op == mockcloud.OpDeleteNetwork:
			alive[e.Name]--
		}
	}
	for _, name := range slices.Sorted(maps.Keys(most)) {
		if most[name] > 1 && w.profile.exact {
			wrong = append(wrong, fmt.Sprintf("%d networks of %s were alive at once", most[name], name))
		}
	}
	want := map[string]mockcloud.Network{}
	maps.Copy(want, w.wiring.strangers)
	have := map[string]mockcloud.Network{}
	for _, n := range w.mock.Networks() {
		have[n.ID] = n
		if object := w.wiring.latest[wire]; object != nil && object.Status.NetworkID == n.ID && w.wiring.wants[wire] == runs {
			want[n.ID] = mockcloud.Network{
				ID: n.ID, Name: n.Name, CIDR: object.Spec.CIDR, Gateway: object.Spec.Gateway, CreatedAt: n.CreatedAt, UpdatedAt: n.UpdatedAt,
			}
		}
	}
	if w.wiring.wants[wire] == runs && len(w.wiring.wants) > 0 && len(want) == len(w.wiring.strangers) {
		wrong = append(wrong, "the network on record is not in the cloud")
	}
	if diff := gocmp.Diff(want, have); diff != "" {
		wrong = append(wrong, "networks at rest (-want +have):\n"+diff)
	}
	return wrong
}

var errNoNetwork = errors.New("no network is there")

// strayNetwork puts a network into the cloud that bears the name of the Network's own.
func (w *world) strayNetwork() error {
	for _, n := range w.mock.Networks() {
		if n.Name != taken {
			n.ID = ""
			_, err := w.mock.PutNetwork(n)
			return err
		}
	}
	return errNoNetwork
}
