package diagnostics

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/diagnostics/wire"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/tenancy"
)

// servers streams the servers of a state, sorted.
func (h *handler) servers(w http.ResponseWriter, r *http.Request) {
	name, inv, ok := h.inventoryOf(w, r)
	if !ok {
		return
	}
	state := r.URL.Query().Get("state")
	if state != wire.StateUnmanaged && state != wire.StateOrphaned {
		refuse(w, http.StatusBadRequest, wire.Invalid, fmt.Sprintf("state must be %s or %s", wire.StateUnmanaged, wire.StateOrphaned))
		return
	}
	snap := inv.View().Snapshot
	if snap == nil {
		refuse(w, http.StatusConflict, wire.Unavailable, fmt.Sprintf("Cloud %q has not been listed yet: see its condition Ready, and try again", name))
		return
	}
	known, err := h.objects(r.Context(), name)
	if err != nil {
		refuse(w, http.StatusInternalServerError, wire.Unavailable, "the objects cannot be read now: try again")
		return
	}
	found, counts := find(snap, known, state)
	w.Header().Set("Content-Type", "application/json")
	_ = stream(w, wire.Servers{Cloud: name, ListedAt: snap.Begun.UTC(), Counts: counts}, snap, found) // the client sees an answer that was cut
}

// objects is what the objects of this cluster have of a cloud.
type objects struct {
	cluster string
	// uids are those of all VMs, and ids the servers that VMs have or import. names are
	// those under which creates may have been sent.
	uids, ids, names map[string]bool
}

// objects reads the VMs of all Clouds: servers of VMs that use another Cloud for the same
// cloud are managed as well.
func (h *handler) objects(ctx context.Context, name string) (objects, error) {
	o := objects{cluster: h.Cluster, uids: map[string]bool{}, ids: map[string]bool{}, names: map[string]bool{}}
	same, err := tenancy.SameCloud(ctx, h.Cache, name)
	if err != nil {
		return o, err
	}
	var vms pcapi.VMList
	if err := h.Cache.List(ctx, &vms, client.UnsafeDisableDeepCopy); err != nil {
		return o, fmt.Errorf("list VMs: %w", err)
	}
	for i := range vms.Items {
		vm := &vms.Items[i]
		o.uids[string(vm.UID)] = true
		claimed := vm.Annotations[pcapi.ClaimedNameAnnotation]
		if vm.Status.VMID == "" && vm.Spec.Import == nil && claimed == "" {
			continue
		}
		on := cmp.Or(vm.Status.Cloud, vm.Annotations[pcapi.ClaimedCloudAnnotation])
		if on == "" {
			// A Cloud that cannot be found out now counts as this one: a server too
			// few is better than one that belongs to an object.
			if on, err = tenancy.CloudFor(ctx, h.Cache, vm.Namespace, vm.Spec.CloudRef); err != nil {
				on = name
			}
		}
		if !slices.Contains(same, on) || vm.Status.VMID == "" && vm.Status.NameInCloud == "" && !h.mayUse(ctx, vm, on) {
			continue
		}
		switch {
		case vm.Status.VMID != "":
			o.ids[vm.Status.VMID] = true
		case vm.Spec.Import != nil:
			o.ids[vm.Spec.Import.VMID] = true
		default:
			o.names[claimed] = true
		}
	}
	return o, nil
}

// mayUse reports whether a VM whose status has neither a server nor a claim may get one on a Cloud: the one that
// it names in spec.import, or one with the name that it claims. Else any user could keep
// servers out of the lists. If that cannot be found out now, it may.
func (h *handler) mayUse(ctx context.Context, vm *pcapi.VM, name string) bool {
	c, err := tenancy.Open(ctx, h.Cache, vm.Namespace, name)
	_, denied := errors.AsType[*tenancy.AccessError](err)
	switch {
	case denied:
		return false
	case err != nil, vm.Spec.Import == nil:
		return true
	}
	return tenancy.MayImport(&c.Spec, vm.Namespace, vm.Spec.Import.VMID) == nil
}

// place is a server among those that are listed.
type place struct{ name, id string }

// find returns the servers of a state, sorted by name and then by id, and how many servers
// there are of each.
func find(snap *inventory.Snapshot, known objects, state string) ([]place, wire.Counts) {
	var found []place
	var counts wire.Counts
	for server := range snap.All() {
		of := known.stateOf(&server, &counts)
		if of == state {
			found = append(found, place{server.Name, server.ID})
		}
	}
	slices.SortFunc(found, func(a, b place) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.id, b.id)) })
	return found, counts
}

// stateOf returns the state of a server, empty if it is neither unmanaged nor orphaned, and
// counts it.
func (o objects) stateOf(server *cloud.Server, counts *wire.Counts) string {
	uid, cluster := server.Labels[inventory.UIDLabel], server.Labels[inventory.ClusterLabel]
	switch {
	case o.ids[server.ID], cluster == o.cluster && o.uids[uid], cluster == "" && o.names[server.Name]:
		counts.Managed++
	case cluster == o.cluster && server.State == cloud.StateDeleting: // on its way out
	case cluster == o.cluster:
		counts.Orphaned++
		return wire.StateOrphaned
	case cluster != "":
		counts.OtherClusters++
	default:
		counts.Unmanaged++
		return wire.StateUnmanaged
	}
	return ""
}

// stream writes servers one after the other, without the memory for all as JSON.
func stream(w http.ResponseWriter, head wire.Servers, snap *inventory.Snapshot, found []place) error {
	out := bufio.NewWriterSize(w, 32<<10)
	head.Servers = []wire.Server{}
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	const end = "]}" // of the empty list, which is the last field
	if _, err := out.Write(text[:len(text)-len(end)]); err != nil {
		return err
	}
	for i, at := range found {
		server, ok := snap.Server(at.id)
		if !ok {
			continue // cannot happen: a snapshot does not change
		}
		line, err := json.Marshal(serverOf(server))
		if err != nil {
			return err
		}
		if i > 0 {
			_ = out.WriteByte(',') // the next write fails as well
		}
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	if _, err := out.WriteString(end + "\n"); err != nil {
		return err
	}
	return out.Flush()
}

func serverOf(s cloud.Server) wire.Server {
	server := wire.Server{
		ID: s.ID, Name: s.Name, State: string(s.State), CPU: s.CPU, MemoryMiB: s.MemoryMiB, Folder: s.Folder, Zone: s.Zone, Image: cmp.Or(s.Image.Name, s.Image.ID),
	}
	if !s.CreatedAt.IsZero() {
		server.CreatedAt = new(s.CreatedAt.UTC())
	}
	if uid := s.Labels[inventory.UIDLabel]; uid != "" {
		server.Owner = &wire.Owner{Namespace: s.Labels[inventory.NamespaceLabel], Name: s.Labels[inventory.NameLabel], UID: uid}
	}
	return server
}
