package fairqueue

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLoadShowsWhoWaits(t *testing.T) {
	q := newQueue(t, 2)
	var queues Queues
	queues.Add(q)
	(*Queues)(nil).Add(q)
	idle := []Load{{Controller: "test", PerNamespace: 2, PerCloud: 3}}
	if diff := cmp.Diff(idle, queues.Load("c")); diff != "" {
		t.Errorf("at rest (-want +got):\n%s", diff)
	}
	q.add(0, several("c", "many", 5)...)
	q.add(0, on("c", "few", 0), on("other", "few", 0))
	take(q, 4) // two of many, one of few, and that of the other Cloud
	want := []Load{{
		Controller: "test", PerNamespace: 2, PerCloud: 3, Running: 3, Waiting: 3,
		Namespaces: []NamespaceLoad{{Namespace: "few", Running: 1}, {Namespace: "many", Running: 2, Waiting: 3}},
	}}
	if diff := cmp.Diff(want, queues.Load("c")); diff != "" {
		t.Errorf("load (-want +got):\n%s", diff)
	}
	if loads := (*Queues)(nil).Load("c"); loads != nil {
		t.Errorf("no queues have the load %v", loads)
	}
}
