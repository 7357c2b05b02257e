package gpuinfo

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodes holds of all nodes what a choice depends on. They are read from the cache again
// when one of them has changed. The zero value is ready for use.
type nodes struct {
	mu sync.Mutex
	// held is nil if the nodes must be read. It is shared and never changed.
	held []node
}

// read returns the nodes. It reads under the lock, so that a change is not missed.
func (n *nodes) read(ctx context.Context, reader client.Reader) ([]node, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held != nil {
		return n.held, nil
	}
	var list corev1.NodeList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	n.held = make([]node, 0, len(list.Items))
	for i := range list.Items {
		n.held = append(n.held, nodeOf(&list.Items[i]))
	}
	return n.held, nil
}

// changed drops the nodes after an event of one.
func (n *nodes) changed() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held = nil
}
