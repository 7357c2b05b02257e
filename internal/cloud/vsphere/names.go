package vsphere

import (
	"context"
	"sync"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud/transport"
)

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
	return known.name, ok && now.Sub(known.at) < transport.NameLifetime
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
