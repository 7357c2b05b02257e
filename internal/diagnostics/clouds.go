package diagnostics

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/diagnostics/wire"
	"github.com/privatecloud/operator/internal/inventory"
)

// maxMissing bounds the VMs that are named of those whose servers a listing lacks.
const maxMissing = 10

// inventoryOf returns the inventory of the Cloud that a request names. It refuses the
// request and reports false if the Cloud is not this manager's.
func (h *handler) inventoryOf(w http.ResponseWriter, r *http.Request) (string, *inventory.Inventory, bool) {
	name := r.PathValue("cloud")
	var c pcapi.Cloud
	err := h.Cache.Get(r.Context(), client.ObjectKey{Name: name}, &c, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		refuse(w, http.StatusNotFound, wire.NotFound, fmt.Sprintf("Cloud %q does not exist: see kubectl get clouds", name))
	case err != nil:
		refuse(w, http.StatusInternalServerError, wire.Unavailable, fmt.Sprintf("Cloud %q cannot be read now: try again", name))
	case !h.Scope.Selects(c.Labels):
		refuse(w, http.StatusNotFound, wire.NotFound, fmt.Sprintf("Cloud %q is another manager's: ask that one", name))
	default:
		return name, h.Directory.Cloud(name), true
	}
	return name, nil, false
}

func (h *handler) clouds(w http.ResponseWriter, r *http.Request) {
	var list pcapi.CloudList
	if err := h.Cache.List(r.Context(), &list, client.UnsafeDisableDeepCopy); err != nil {
		refuse(w, http.StatusInternalServerError, wire.Unavailable, "the Clouds cannot be read now: try again")
		return
	}
	own := wire.Clouds{Names: []string{}}
	for i := range list.Items {
		if c := &list.Items[i]; h.Scope.Selects(c.Labels) {
			own.Names = append(own.Names, c.Name)
		}
	}
	slices.Sort(own.Names)
	answer(w, own)
}

func (h *handler) cloud(w http.ResponseWriter, r *http.Request) {
	name, inv, ok := h.inventoryOf(w, r)
	if !ok {
		return
	}
	view := inv.View()
	c := wire.Cloud{Cloud: name, Unavailable: view.Unavailable, Braked: view.Braked}
	for _, capability := range view.Capabilities {
		c.Capabilities = append(c.Capabilities, string(capability))
	}
	if at := inv.LastPoll(); !at.IsZero() {
		c.LastPoll = new(at.UTC())
	}
	if snap := view.Snapshot; snap != nil {
		c.Listing = &wire.Listing{Begun: snap.Begun.UTC(), DurationSeconds: snap.Took.Seconds(), Servers: snap.Len()}
	}
	if view.Braked && view.Snapshot != nil {
		missing, err := h.missing(r.Context(), name, view)
		if err != nil {
			refuse(w, http.StatusInternalServerError, wire.Unavailable, "the objects cannot be read now: try again")
			return
		}
		c.Missing = &missing
	}
	if reporter, ok := view.Client.(cloud.LoadReporter); ok {
		c.Limiter = limiterOf(reporter.Load())
	}
	for _, load := range h.Queues.Load(name) {
		workers := wire.Workers{Controller: load.Controller, PerNamespace: load.PerNamespace, PerCloud: load.PerCloud, Running: load.Running, Waiting: load.Waiting}
		for _, of := range load.Namespaces {
			workers.Namespaces = append(workers.Namespaces, wire.NamespaceShare(of))
		}
		c.Workers = append(c.Workers, workers)
	}
	answer(w, c)
}

// missing returns the VMs whose servers the last listing had to show, and lacks.
func (h *handler) missing(ctx context.Context, name string, view inventory.View) (wire.Missing, error) {
	m := wire.Missing{VMs: []wire.MissingVM{}}
	var vms pcapi.VMList
	if err := h.Cache.List(ctx, &vms, client.UnsafeDisableDeepCopy); err != nil {
		return m, fmt.Errorf("list VMs: %w", err)
	}
	for i := range vms.Items {
		vm := &vms.Items[i]
		expected := vm.DeletionTimestamp.IsZero() && vm.Status.State != pcapi.VMStateLost && vm.Spec.ManagementPolicy != pcapi.ManagementPolicyObserveOnly
		if !expected || vm.Status.Cloud != name || vm.Status.VMID == "" || view.Snapshot.Has(vm.Status.VMID) {
			continue
		}
		if at := vm.Status.CreatedTime; at != nil && view.Snapshot.Begun.Before(view.Settings.ShownFrom(at.Time)) {
			continue
		}
		m.VMs = append(m.VMs, wire.MissingVM{Namespace: vm.Namespace, Name: vm.Name, ID: vm.Status.VMID})
	}
	slices.SortFunc(m.VMs, func(a, b wire.MissingVM) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	m.Count = len(m.VMs)
	m.VMs = m.VMs[:min(m.Count, maxMissing)]
	return m, nil
}

func limiterOf(load cloud.Load) *wire.Limiter {
	l := &wire.Limiter{
		RequestsPerSecond: load.RequestsPerSecond, Burst: load.Burst, MaxInFlight: load.MaxInFlight, InFlight: load.InFlight, Waiting: load.Waiting,
	}
	for _, of := range load.Flows {
		flow := wire.Flow{Namespace: of.Name, Waiting: of.Waiting}
		if !of.RetryAt.IsZero() {
			flow.RetryAt = new(of.RetryAt.UTC())
		}
		l.Flows = append(l.Flows, flow)
	}
	return l
}
