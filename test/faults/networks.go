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
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// networkName is the name of the Network of a run, which may have a second one.
const networkName = "net"

// ofNetworks counts changes of Networks and of the VMs on them.
func ofNetworks(e effect) bool { return ofVMs(e) || strings.HasPrefix(e.path, "networks/") }

// networkState is what a run expects of Networks, and what was observed of them.
type networkState struct {
	// goals are runs or gone for each Network; foreign are the networks of the cloud that
	// the operator did not create.
	goals   map[string]goal
	foreign map[string]mockcloud.Network
	latest  map[string]*pcapi.Network
	ids     map[types.UID]string
	wrong   []string
}

func newNetworkState() *networkState {
	return &networkState{
		goals: map[string]goal{}, foreign: map[string]mockcloud.Network{},
		latest: map[string]*pcapi.Network{}, ids: map[types.UID]string{},
	}
}

// createNetwork creates a Network beside a foreign network, and expects it to run.
func createNetwork(ctx context.Context, w *world) error {
	put, err := w.mock.PutNetwork(mockcloud.Network{Name: taken, CIDR: "10.0.0.0/8", Gateway: "10.0.0.1"})
	if err != nil {
		return err
	}
	w.expectNetwork(runs, put)
	if err := w.watchNetworks(ctx); err != nil {
		return err
	}
	return w.env.client.Create(ctx, testkit.Network(w.name, networkName, func(net *pcapi.Network) {
		net.Spec.CloudRef = &pcapi.CloudReference{Name: w.name}
	}))
}

// editNetwork changes the gateway of the Network, and adds its IPv6 range.
func editNetwork(ctx context.Context, w *world) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"gateway":"192.168.0.2","ipv6CIDR":"fd00:10::/64"}}`))
	return w.env.client.Patch(ctx, w.networkObject(), patch)
}

// removeNetwork deletes the Network, which no VM uses.
func removeNetwork(ctx context.Context, w *world) error {
	w.expectNetwork(gone)
	return w.env.client.Delete(ctx, w.networkObject())
}

// removeBoth deletes the Network, which has to wait, and the VM on it.
func removeBoth(ctx context.Context, w *world) error {
	if err := removeNetwork(ctx, w); err != nil {
		return err
	}
	return remove(vm, gone)(ctx, w)
}

func onNetwork(vm *pcapi.VM) { vm.Spec.NetworkRef = &pcapi.NetworkReference{Name: networkName} }

func (w *world) networkObject() *pcapi.Network {
	return &pcapi.Network{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: networkName}}
}

func (w *world) expectNetwork(f goal, foreign ...mockcloud.Network) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.networks.goals[networkName] = f
	for _, s := range foreign {
		w.networks.foreign[s.ID] = s
	}
}

// watchNetworks watches the Networks of the run without a proxy until the recorder ends.
func (w *world) watchNetworks(ctx context.Context) error {
	var now pcapi.NetworkList
	if err := w.env.client.List(ctx, &now, client.InNamespace(w.name)); err != nil {
		return fmt.Errorf("list Networks: %w", err)
	}
	stream, err := watchtools.NewRetryWatcherWithContext(ctx, now.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return w.env.client.Watch(ctx, &pcapi.NetworkList{}, client.InNamespace(w.name), &client.ListOptions{Raw: &options})
		},
	})
	if err != nil {
		return fmt.Errorf("watch Networks: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range stream.ResultChan() {
			w.observeNetwork(event)
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

// observeNetwork records what must never be observed of a Network.
func (w *world) observeNetwork(event watch.Event) {
	object, ok := event.Object.(*pcapi.Network)
	w.mu.Lock()
	defer w.mu.Unlock()
	note := func(format string, args ...any) {
		w.networks.wrong = append(w.networks.wrong, fmt.Sprintf(format, args...))
	}
	if !ok {
		note("the watch of Networks broke: %v", apierrors.FromObject(event.Object))
		return
	}
	was := w.networks.ids[object.UID]
	if was != "" && object.Status.NetworkID != was {
		note("status.networkId of %s was %s and became %q", object.Name, was, object.Status.NetworkID)
	}
	w.networks.ids[object.UID] = object.Status.NetworkID
	if event.Type != watch.Deleted {
		w.networks.latest[object.Name] = object
		return
	}
	delete(w.networks.latest, object.Name)
	for _, n := range w.mock.Networks() {
		if _, foreign := w.networks.foreign[n.ID]; !foreign {
			note("object %s is gone, and its network %s is there", object.Name, n.ID)
		}
	}
}

// networksReached returns what is missing for the goals of Networks; nil if nothing.
func (w *world) networksReached() error {
	awaits := false // the end of a VM on it
	for name := range w.goals {
		on := w.recorder.vm(name)
		awaits = awaits || on != nil && w.losesServer(on)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, goal := range w.networks.goals {
		object := w.networks.latest[name]
		switch {
		case goal == gone && (object == nil || awaits || w.givenToStranger(object.Status.Conditions, w.networks.foreign[object.Status.NetworkID].ID != "")):
		case goal == runs && object != nil && networkReady(object):
		case object == nil:
			return fmt.Errorf("there is no Network %s", name)
		default:
			return fmt.Errorf("the Network %s is not as expected: %+v", name, object.Status)
		}
	}
	return nil
}

func networkReady(object *pcapi.Network) bool {
	c := meta.FindStatusCondition(object.Status.Conditions, pcapi.ReadyCondition)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == object.Generation && object.Status.NetworkID != "" &&
		controllerutil.ContainsFinalizer(object, pcapi.NetworkFinalizer)
}

// networkViolations returns what is wrong with the cloud's networks at rest, and
// what was wrong with Networks at any time.
func (w *world) networkViolations() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	wrong := slices.Clone(w.networks.wrong)
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
	want, waiting := map[string]mockcloud.Network{}, 0
	maps.Copy(want, w.networks.foreign)
	have := map[string]mockcloud.Network{}
	for _, n := range w.mock.Networks() {
		have[n.ID] = n
		for name, object := range w.networks.latest {
			_, isForeign := w.networks.foreign[n.ID]
			if object == nil || object.Status.NetworkID != n.ID || isForeign {
				continue
			}
			if w.networks.goals[name] == gone { // it waits for a VM, see networksReached
				want[n.ID] = n
				waiting++
			} else {
				want[n.ID] = mockcloud.Network{
					ID: n.ID, Name: n.Name, CIDR: object.Spec.CIDR, IPv6CIDR: object.Spec.IPv6CIDR, Gateway: object.Spec.Gateway, CreatedAt: n.CreatedAt, UpdatedAt: n.UpdatedAt,
				}
			}
		}
	}
	running := 0
	for _, goal := range w.networks.goals {
		if goal == runs {
			running++
		}
	}
	if len(want) != len(w.networks.foreign)+running+waiting {
		wrong = append(wrong, "a network on record is not in the cloud")
	}
	if diff := gocmp.Diff(want, have); diff != "" {
		wrong = append(wrong, "networks at rest (-want +have):\n"+diff)
	}
	return wrong
}

var errNoNetwork = errors.New("no network is there")

// putSecondNetwork puts a network with the name of the Network's own into the cloud.
func (w *world) putSecondNetwork() error {
	for _, n := range w.mock.Networks() {
		if n.Name != taken {
			n.ID = ""
			_, err := w.mock.PutNetwork(n)
			return err
		}
	}
	return errNoNetwork
}
