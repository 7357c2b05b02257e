package vsphere

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/vmware/govmomi/vim25/types"
)

// maxRefs bounds refs.
const maxRefs = 200_000

// refs remembers the ids of VMs by their number in the vCenter, since a VM that is not
// accessible does not show its id.
type refs struct {
	mu  sync.Mutex
	ids map[uint64]uuid.UUID
	// numbers has one VM of each id, and copies the others.
	numbers map[uuid.UUID]uint64
	copies  map[uuid.UUID][]uint64
}

func (r *refs) put(ref types.ManagedObjectReference, id string) {
	number, ok := numberOf(ref)
	parsed, err := uuid.Parse(id)
	if !ok || err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.ids[number]; ok && known == parsed {
		return
	}
	r.remove(number)
	if r.ids == nil || len(r.ids) >= maxRefs {
		r.ids, r.numbers, r.copies = map[uint64]uuid.UUID{}, map[uuid.UUID]uint64{}, map[uuid.UUID][]uint64{}
	}
	r.ids[number] = parsed
	if _, ok := r.numbers[parsed]; ok {
		r.copies[parsed] = append(r.copies[parsed], number)
	} else {
		r.numbers[parsed] = number
	}
}

// remove drops a VM. The caller holds mu.
func (r *refs) remove(number uint64) {
	id, ok := r.ids[number]
	if !ok {
		return
	}
	delete(r.ids, number)
	others := r.copies[id]
	switch {
	case r.numbers[id] != number:
		others = slices.DeleteFunc(others, func(other uint64) bool { return other == number })
	case len(others) == 0:
		delete(r.numbers, id)
	default:
		r.numbers[id], others = others[0], others[1:]
	}
	if len(others) == 0 {
		delete(r.copies, id)
	} else {
		r.copies[id] = others
	}
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
	number, ok := r.numbers[wanted]
	if !ok {
		return types.ManagedObjectReference{}, false
	}
	return types.ManagedObjectReference{Type: "VirtualMachine", Value: "vm-" + strconv.FormatUint(number, 10)}, true
}

// count returns how many VMs are remembered.
func (r *refs) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ids)
}

func (r *refs) forget(ref types.ManagedObjectReference) {
	number, ok := numberOf(ref)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(number)
}

func numberOf(ref types.ManagedObjectReference) (uint64, bool) {
	digits, ok := strings.CutPrefix(ref.Value, "vm-")
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, ok && err == nil
}
