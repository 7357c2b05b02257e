package vsphere

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/vmware/govmomi/vim25/types"
)

// namesHold is how long a name is used without asking again.
const namesHold = 5 * time.Minute

// names remembers the names of hosts and folders.
type names struct {
	mu    sync.Mutex
	known map[string]namedAt
}

type namedAt struct {
	name string
	at   time.Time
}

func (n *names) get(ref types.ManagedObjectReference, now time.Time) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	known, ok := n.known[ref.Value]
	return known.name, ok && now.Sub(known.at) < namesHold
}

func (n *names) put(ref types.ManagedObjectReference, name string, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil || len(n.known) > 100_000 {
		n.known = map[string]namedAt{}
	}
	n.known[ref.Value] = namedAt{name, now}
}

// of returns the names of objects, of which each is a host or a folder. One that does
// not exist any more has none.
func (n *names) of(ctx context.Context, at *site, refs map[types.ManagedObjectReference]bool) (map[types.ManagedObjectReference]string, error) {
	now := time.Now()
	all := make(map[types.ManagedObjectReference]string, len(refs))
	spec := types.PropertyFilterSpec{ReportMissingObjectsInResults: new(true)}
	for _, kind := range []string{"Folder", "HostSystem"} {
		spec.PropSet = append(spec.PropSet, types.PropertySpec{Type: kind, PathSet: []string{"name"}})
	}
	for ref := range refs {
		if name, ok := n.get(ref, now); ok {
			all[ref] = name
		} else if ref.Value != "" {
			spec.ObjectSet = append(spec.ObjectSet, types.ObjectSpec{Obj: ref})
		}
	}
	if len(spec.ObjectSet) == 0 {
		return all, nil
	}
	found, err := collect(ctx, at.vim, spec)
	if err != nil {
		return nil, err
	}
	for _, object := range found {
		if name := unescaped(object.text("name")); name != "" {
			all[object.ref] = name
			n.put(object.ref, name, now)
		}
	}
	return all, nil
}

func isGone(err error) bool {
	_, gone := faultOf(err).(*types.ManagedObjectNotFound)
	return gone
}

// maxRefs bounds refs.
const maxRefs = 200_000

// refs remembers the ids of VMs by their number in the vCenter, since a VM that is not
// accessible does not show its id.
type refs struct {
	mu  sync.Mutex
	ids map[uint64]uuid.UUID
}

func (r *refs) put(ref types.ManagedObjectReference, id string) {
	number, ok := numberOf(ref)
	parsed, err := uuid.Parse(id)
	if !ok || err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil || len(r.ids) >= maxRefs {
		r.ids = map[uint64]uuid.UUID{}
	}
	r.ids[number] = parsed
}

// id returns the id that a VM had, empty if it is not known.
func (r *refs) id(ref types.ManagedObjectReference) string {
	number, ok := numberOf(ref)
	r.mu.Lock()
	defer r.mu.Unlock()
	if id, known := r.ids[number]; ok && known {
		return id.String()
	}
	return ""
}

// find returns the VM that had an id.
func (r *refs) find(id string) (types.ManagedObjectReference, bool) {
	wanted, err := uuid.Parse(id)
	if err != nil {
		return types.ManagedObjectReference{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for number, known := range r.ids {
		if known == wanted {
			return types.ManagedObjectReference{Type: "VirtualMachine", Value: "vm-" + strconv.FormatUint(number, 10)}, true
		}
	}
	return types.ManagedObjectReference{}, false
}

// count returns how many ids are remembered.
func (r *refs) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ids)
}

// all returns the ids that are remembered.
func (r *refs) all() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := make(map[string]bool, len(r.ids))
	for _, id := range r.ids {
		ids[id.String()] = true
	}
	return ids
}

func (r *refs) forget(ref types.ManagedObjectReference) {
	number, _ := numberOf(ref)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ids, number)
}

func numberOf(ref types.ManagedObjectReference) (uint64, bool) {
	digits, ok := strings.CutPrefix(ref.Value, "vm-")
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, ok && err == nil
}
