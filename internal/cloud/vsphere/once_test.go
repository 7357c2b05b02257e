package vsphere_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/vsphere"
)

// onceTime bounds the creates of TestEachCreateMakesOneVM.
const onceTime = 4 * time.Minute

// TestEachCreateMakesOneVM has several clients send one create each for the same VM,
// and rivals with another key for its name, while one in twenty answers is lost. All creates
// of every second VM come as the first with their key: the name alone excludes a second one.
func TestEachCreateMakesOneVM(t *testing.T) {
	const names, clients, rivals = 60, 8, 2
	v := newVCenter(t)
	v.Front.LeaveStopped()
	all := make([]*vsphere.Client, clients)
	for i := range all {
		all[i] = v.client(t)
	}
	ctx, cancel := context.WithTimeout(t.Context(), onceTime)
	defer cancel()
	v.Front.LoseRandomly(func(string) bool { return rand.IntN(20) == 0 })
	outcomes := make([]outcome, names)
	var running sync.WaitGroup
	slots := make(chan struct{}, 16)
	for n := range outcomes {
		keys := [2]string{uuid.NewString(), uuid.NewString()}
		for i, c := range all {
			key := keys[0]
			if i >= clients-rivals {
				key = keys[1]
			}
			slots <- struct{}{}
			running.Go(func() {
				defer func() { <-slots }()
				server, err := insist(ctx, c, cloud.CreateServer{Name: fmt.Sprintf("vm-%d", n), IdempotencyKey: key, First: n%2 == 0, Labels: map[string]string{"uid": key}})
				outcomes[n].add(key, server, err)
			})
		}
	}
	running.Wait()
	v.Front.LoseRandomly(nil)
	for n := range outcomes {
		outcomes[n].check(t, n)
	}
	count := map[string]int{}
	for _, s := range list(t, all[0]) {
		count[s.Name]++
	}
	for n := range names {
		if name := fmt.Sprintf("vm-%d", n); count[name] != 1 {
			t.Errorf("%d VMs are called %s, want one", count[name], name)
		}
	}
	if len(count) != names {
		t.Errorf("the vCenter has VMs of %d names, want %d", len(count), names)
	}
}

// insist sends a create until its outcome is clear.
func insist(ctx context.Context, c *vsphere.Client, req cloud.CreateServer) (cloud.Server, error) {
	for ctx.Err() == nil {
		result, err := c.CreateServer(ctx, req)
		if err == nil && result.Operation != "" {
			result.Server, err = follow(ctx, c, result.Operation)
		}
		if err == nil || cloud.Is(err, cloud.Taken, cloud.KeyReused, cloud.Rejected) {
			return result.Server, err
		}
	}
	return cloud.Server{}, ctx.Err()
}

// follow waits for an operation, and returns its server.
func follow(ctx context.Context, c *vsphere.Client, id string) (cloud.Server, error) {
	pause := time.NewTicker(10 * time.Millisecond)
	defer pause.Stop()
	for {
		operation, err := c.GetOperation(ctx, id)
		switch {
		case err != nil && !cloud.Is(err, cloud.Unavailable):
			return cloud.Server{}, err
		case err == nil && operation.Done && operation.Err != nil:
			return cloud.Server{}, operation.Err
		case err == nil && operation.Done:
			return c.GetServer(ctx, operation.ServerID)
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return cloud.Server{}, ctx.Err()
		}
	}
}

// outcome is what the creates of one name ended with.
type outcome struct {
	mu sync.Mutex
	// winners has the ids that creates returned, and refused how often a create ended
	// with Taken, by key. wrong has what must not happen.
	winners map[string]string
	refused map[string]int
	wrong   []string
}

func (o *outcome) add(key string, server cloud.Server, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.winners == nil {
		o.winners, o.refused = map[string]string{}, map[string]int{}
	}
	switch known := o.winners[key]; {
	case cloud.Is(err, cloud.Taken):
		o.refused[key]++
	case err != nil:
		o.wrong = append(o.wrong, err.Error())
	case server.Labels["uid"] != key:
		o.wrong = append(o.wrong, "a create returned the VM of another")
	case known != "" && known != server.ID:
		o.wrong = append(o.wrong, "creates of one key returned several VMs")
	default:
		o.winners[key] = server.ID
	}
}

func (o *outcome) check(t *testing.T, n int) {
	t.Helper()
	for _, wrong := range o.wrong {
		t.Errorf("vm-%d: %s", n, wrong)
	}
	if len(o.winners) != 1 {
		t.Errorf("vm-%d: the creates of %d keys made a VM, want one", n, len(o.winners))
	}
	for key := range o.winners {
		if o.refused[key] > 0 {
			t.Errorf("vm-%d: %d creates were refused their own VM", n, o.refused[key])
		}
	}
}

// list returns all servers.
func list(t *testing.T, c *vsphere.Client) []cloud.Server {
	t.Helper()
	var all []cloud.Server
	for opts := (cloud.ListServers{}); ; {
		page, err := c.ListServers(t.Context(), opts)
		if err != nil {
			t.Fatalf("ListServers: %v", err)
		}
		all = append(all, page.Servers...)
		if opts.Marker = page.Next; opts.Marker == "" {
			return all
		}
	}
}
