package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/mockcloud"
)

// The scenarios with other clients of the API server, and with answers of others than the cloud.
var (
	replaced          = scenario{name: "create, replaced by another client, delete", act: []step{create(vm), replace(theVM), remove(vm, gone)}}
	stoppedReplaced   = scenario{name: "a stopped VM is replaced by another client, and deleted", arrange: []step{create(vm, stopped)}, act: []step{replace(theVM), remove(vm, gone)}}
	replacedWhileDown = scenario{name: "resize, replaced by another client while no manager runs", arrange: []step{create(vm)}, act: []step{edit(vm, `{"spec":{"cpu":2}}`)}, crashed: replace(theVM)}
	networkReplaced   = scenario{name: "create a network, replaced by another client, delete it", counts: ofNetworks, act: []step{createNetwork, replace(theNetwork), removeNetwork}}
	snapshotReplaced  = scenario{name: "create a snapshot, replaced by another client, delete it", counts: ofSnapshots, arrange: []step{create(vm)}, act: []step{createSnapshot, replace(theSnapshot), removeSnapshot}}
	unlisted          = scenario{name: "delete while no listing has the servers and a gateway answers", arrange: []step{each(named("vm", 3), createOne)}, act: []step{removeUnlisted(named("vm", 3))}}
	exchanged         = scenario{name: "create three, exchange them for others", act: []step{each(named("old", 3), createOne), exchange(named("old", 3), named("new", 3))}}
)

func stopped(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff }

// recycling returns a kind of cloud that gives the ids of what was deleted to the next
// create, which is often that of a stranger, and half of whose first answers to a DELETE
// are lost. A read that lags could show a server whose id another one has already, so
// reads do not. Nor are there answers of wrong types: without the time of creation nothing
// proves that a server is a later one.
func recycling(p profile) profile {
	p.name += ", ids are used again"
	p.recycles = true
	p.always = append(slices.Clone(p.always), "reusesIDs")
	p.unfit = append(slices.Clone(p.unfit), "readLag", "replicaLag", "wrongTypes")
	return p
}

// othersSelection is what runs by default.
func othersSelection() (all []quirkyCase) {
	const kills = 1
	all = append(all, quirkyCases(extended, kills, replaced, stoppedReplaced, networkReplaced, snapshotReplaced)...)
	all = append(all, quirkyCases(core, kills, replaced, unlisted)...)
	all = append(all, quirkyCases(unmarked, kills, replacedWhileDown, unlisted)...)
	for _, p := range []profile{extended, core, keyless} {
		all = append(all, quirkyCases(recycling(p), kills, exchanged)...)
	}
	all = append(all, quirkyCases(withDomains(extended), kills, recreated, groupCreated, networkEdited, snapshotDeleted)...)
	all = append(all, quirkyCases(cutting(extended), kills, edited)...)
	all = append(all, quirkyCases(withQuirk(extended, "cutNames=20"), kills, networkEdited, snapshotDeleted)...)
	all = append(all, quirkyCases(decomposing(extended), kills, edited)...)
	all = append(all, quirkyCases(decomposing(core), kills, recreated, deletedWhileDown)...)
	all = append(all, quirkyCases(withQuirk(labelled, "cutLabels=30"), kills, undecidedDeletedWhileDown)...)
	return append(all, quirkyCases(recycling(extended), kills, networkWithVM)...)
}

// othersEverything is what runs with FAULTS=full.
func othersEverything() (all []quirkyCase) {
	const kills = 8
	for _, p := range []profile{extended, core, keyless, unmarked, keyed, labelled} {
		all = append(all, quirkyCases(p, kills, replaced, unlisted)...)
		all = append(all, quirkyCases(recycling(p), kills, slow, whileDown(p), exchanged)...)
		if p.mock.Profile != mockcloud.Core {
			all = append(all, quirkyCases(p, kills, stoppedReplaced, replacedWhileDown, networkReplaced, snapshotReplaced)...)
			all = append(all, quirkyCases(recycling(p), kills, edited, networkEdited, networkWithVM)...)
		}
	}
	for _, p := range []profile{extended, keyed, labelled} {
		for _, names := range []func(profile) profile{withDomains, cutting} {
			all = append(all, quirkyCases(names(p), kills, recreated, edited, whileDown(p))...)
			all = append(all, quirkyCases(names(p), kills, groupCreated, groupShrunk, groupRolled, groupDeleted)...)
		}
		for _, quirk := range []string{"domainNames", "cutNames=20"} {
			all = append(all, quirkyCases(withQuirk(p, quirk), kills, networkEdited, networkWithVM, snapshotDeleted, snapshotDeletedWhileDown)...)
		}
	}
	for _, p := range []profile{extended, keyed, labelled} {
		all = append(all, quirkyCases(withQuirk(p, "keysInProgress"), kills, recreated, slow, whileDown(p), groupCreated)...)
		all = append(all, quirkyCases(withQuirk(p, "cutLabels=30"), kills, undecidedCreate, undecidedDeletedWhileDown)...)
	}
	for _, p := range []profile{extended, core, unmarked, keyed, labelled} {
		all = append(all, quirkyCases(decomposing(p), kills, recreated, slow, whileDown(p), orphaned)...)
		if p.mock.Profile != mockcloud.Core {
			all = append(all, quirkyCases(decomposing(p), kills, edited)...)
		}
	}
	all = append(all, quirkyCases(decomposing(core), kills, equalNames)...)
	// Where labels alone lead to what a create made, nothing does without them.
	all = append(all, quirkyCases(withQuirk(extended, "dropLabels"), kills, undecidedCreate, undecidedDeletedWhileDown)...)
	all = append(all, quirkyCases(withQuirk(keyless, "dropLabels"), kills, undecidedCreate, undecidedDeletedWhileDown)...)
	for _, p := range []profile{core, notExclusive, unmarked, bare} {
		all = append(all, quirkyCases(withDomains(p), kills, undecidedCreate, undecidedDeletedWhileDown)...)
	}
	for _, p := range []profile{extended, keyless, unmarked} {
		all = append(all, quirkyCases(recycling(p), kills, groupCreated, groupShrunk, groupRolled, groupDeleted)...)
	}
	return all
}

// whileDown returns the scenario of a VM that is deleted while no manager runs. Where only keys lead to what a create
// made, a user has to decide.
func whileDown(p profile) scenario {
	if p.name == keyed.name {
		return undecidedDeletedWhileDown
	}
	return deletedWhileDown
}

// withQuirk returns a kind of cloud that always has a quirk.
func withQuirk(p profile, quirk string) profile {
	p.name += ", " + quirk
	p.always = append(slices.Clone(p.always), quirk)
	return p
}

// withDomains returns a kind of cloud that shows names with a domain, cutting one that cuts them, and decomposing one that
// shows them in the Unicode normal form D. The names of VMs alone may have letters that this form changes.
func withDomains(p profile) profile { return withQuirk(p, "domainNames") }
func cutting(p profile) profile     { return withQuirk(p, "cutNames=2") }
func decomposing(p profile) profile { return withQuirk(p, "decomposedNames") }

// loseDeletes loses answers to a DELETE that took effect: the connection is reset, or a
// gateway answers.
func (w *world) loseDeletes(seed uint64) error {
	match := mockcloud.Match{Method: http.MethodDelete, Path: "**", Probability: 0.25, Count: 2, Seed: seed}
	_, reset := w.mock.AddFault(mockcloud.Fault{Match: match, Answer: mockcloud.After, Reset: true})
	match.Seed++
	_, gateway := w.mock.AddFault(mockcloud.Fault{
		Match: match, Answer: mockcloud.After, Status: http.StatusBadGateway, ContentType: "text/html", Body: "<html>502</html>",
	})
	return errors.Join(reset, gateway)
}

// givenToStranger reports whether an object waits for a person because the cloud has given the id of its
// server or network to a stranger. A process that did not send the DELETE may not know that, nor one whose
// DELETE got no answer, if only the time of creation tells one server from another.
func (w *world) givenToStranger(conditions []metav1.Condition, isStrangers bool) bool {
	ready := meta.FindStatusCondition(conditions, pcapi.ReadyCondition)
	labels, set := w.profile.mock.Capabilities[mockcloud.Labels]
	unknowable := len(w.managers) > 1 || w.profile.mock.Profile == mockcloud.Core || set && !labels
	return w.profile.recycles && unknowable && isStrangers && ready != nil && ready.Reason == pcapi.BlockedReason
}

// withStrangers sends requests to the cloud. Whenever a server or network was deleted, a
// stranger creates another one before the answer to a request is returned.
func (w *world) withStrangers(side string, to http.RoundTripper, r *http.Request) (*http.Response, error) {
	resp, err := to.RoundTrip(r)
	if side != cloudSide {
		return resp, err
	}
	return resp, errors.Join(err, w.addStrangers())
}

// addStrangers makes one server or network of a stranger for each that was deleted.
func (w *world) addStrangers() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var servers, networks int
	for _, e := range w.mock.Ledger() {
		switch {
		case e.Op == mockcloud.OpGone, e.Op == mockcloud.OpDelete && e.Final:
			servers++
		case e.Op == mockcloud.OpDeleteNetwork:
			networks++
		}
	}
	for ; w.strangers.servers < servers; w.strangers.servers++ {
		put, err := w.mock.PutServer(mockcloud.Server{Name: fmt.Sprintf("stranger-%d", w.strangers.servers)})
		if err != nil {
			return err
		}
		w.foreign[put.ID] = put
	}
	for ; w.strangers.networks < networks; w.strangers.networks++ {
		put, err := w.mock.PutNetwork(mockcloud.Network{Name: fmt.Sprintf("stranger-%d", w.strangers.networks), CIDR: "10.0.0.0/8", Gateway: "10.0.0.1"})
		if err != nil {
			return err
		}
		w.networks.foreign[put.ID] = put
	}
	return nil
}

// replace replaces a whole object by its manifest, as kubectl replace does: it has no
// finalizers, annotations and labels then. The operator has to put its finalizer back.
func replace(object func(*world) client.Object) step {
	return func(ctx context.Context, w *world) error {
		replaced := object(w)
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			if err := w.env.client.Get(ctx, client.ObjectKeyFromObject(replaced), replaced); err != nil {
				return err
			}
			replaced.SetFinalizers(nil)
			replaced.SetAnnotations(nil)
			replaced.SetLabels(nil)
			return w.env.client.Update(ctx, replaced)
		})
		if err != nil {
			return err
		}
		return w.until(ctx, func() error { return w.observed(replaced) })
	}
}

// observed returns an error as long as an object is on record as it was before this version.
func (w *world) observed(version client.Object) error {
	var last client.Object
	switch version.(type) {
	case *pcapi.VM:
		if object := w.recorder.vm(version.GetName()); object != nil {
			last = object
		}
	case *pcapi.Network:
		w.mu.Lock()
		defer w.mu.Unlock()
		if object := w.networks.latest[version.GetName()]; object != nil {
			last = object
		}
	}
	if last == nil {
		return nil
	}
	order, err := resourceversion.CompareResourceVersion(last.GetResourceVersion(), version.GetResourceVersion())
	if err == nil && order < 0 {
		err = fmt.Errorf("the replacement of %s is not observed", version.GetName())
	}
	return err
}

func theVM(w *world) client.Object       { return w.object(vm) }
func theNetwork(w *world) client.Object  { return w.networkObject() }
func theSnapshot(w *world) client.Object { return w.snapshotObject() }

// removeUnlisted deletes VMs while no listing shows their servers, which the status of the
// Cloud says, and a gateway answers every call of these servers with 404. After some listings
// both end.
func removeUnlisted(names []string) step {
	return func(ctx context.Context, w *world) error {
		defer w.mock.ClearFaults()
		unlisted := mockcloud.Fault{Match: mockcloud.Match{Method: http.MethodGet, Path: "/servers"}, List: &mockcloud.ListFault{}}
		var shown time.Time
		for _, name := range names {
			status := w.recorder.vm(name).Status
			unlisted.List.HideIDs = append(unlisted.List.HideIDs, status.VMID)
			if from := (inventory.Settings{SettleTime: settleTime}).ShownFrom(status.CreatedTime.Time); shown.Before(from) {
				shown = from
			}
		}
		// One listing then lacks all of them. Otherwise those that a later one lacks set the brake when the gateway
		// answers that none exists.
		if err := w.untilHeld(ctx, func() error { return passed(shown) }); err != nil {
			return err
		}
		if _, err := w.mock.AddFault(unlisted); err != nil {
			return err
		}
		if err := w.untilHeld(ctx, func() error { return w.knowsIncomplete(ctx) }); err != nil {
			return err
		}
		if !w.gate.holding() {
			if _, err := w.mock.AddFault(mockcloud.Fault{
				Match: mockcloud.Match{Path: "/servers/*"}, Status: http.StatusNotFound, ContentType: "text/html", Body: "<html>404</html>",
			}); err != nil {
				return err
			}
		}
		if err := each(names, removeOne)(ctx, w); err != nil {
			return err
		}
		enough := w.seen(8)
		return w.untilHeld(ctx, func() error {
			if !enough() {
				return errors.New("the cloud is not listed any more")
			}
			return nil
		})
	}
}

// passed returns an error until the time is reached.
func passed(end time.Time) error {
	if time.Now().Before(end) {
		return fmt.Errorf("it is not %s yet", end.Format(time.TimeOnly))
	}
	return nil
}

// knowsIncomplete returns an error unless the status of the Cloud says that its listing is incomplete.
func (w *world) knowsIncomplete(ctx context.Context) error {
	c := &pcapi.Cloud{}
	if err := w.env.client.Get(ctx, client.ObjectKey{Name: w.name}, c); err != nil {
		return err
	}
	if is := meta.FindStatusCondition(c.Status.Conditions, pcapi.ConformantCondition); is == nil || is.Reason != pcapi.ListingIncompleteReason {
		return fmt.Errorf("the status of the Cloud does not say that the listing is incomplete: %+v", is)
	}
	return nil
}

// untilHeld waits until check returns no error, or until the manager is about to be killed.
func (w *world) untilHeld(ctx context.Context, check func() error) error {
	return w.until(ctx, func() error {
		if w.gate.holding() {
			return nil
		}
		return check()
	})
}

// exchange deletes some VMs and creates others at the same time. Without labels, nothing
// proves that a server whose DELETE got no answer is gone once a stranger has its id: a user has to decide.
func exchange(old, others []string) step {
	return func(ctx context.Context, w *world) error {
		to := gone
		if w.profile.mock.Profile == mockcloud.Core {
			to = goneOrUndecided
		}
		for i := range old {
			if err := errors.Join(remove(old[i], to)(ctx, w), create(others[i])(ctx, w)); err != nil {
				return err
			}
		}
		return nil
	}
}
