package fake

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// defaultUtilization is the utilization of a server that has none of its own, in percent.
const defaultUtilization = 42

// Options are what a Cloud starts with. The zero value is a core cloud.
type Options struct {
	// Capabilities are what the cloud can do. A call that needs another one fails
	// with Unsupported and does not reach the cloud.
	Capabilities cloud.Capabilities
	// Clock is time.Now if nil.
	Clock func() time.Time
	// Prohibited are names that may not be used.
	Prohibited []string
	// Hosts are those that the cloud reports; servers are placed on them in turn.
	Hosts []cloud.Host
}

// Cloud is a cloud in memory and a client of it. It is safe for concurrent use.
// Ids are s1, s2 and so on for servers, n1, n2 and so on for networks.
type Cloud struct {
	clock func() time.Time

	mu         sync.Mutex
	caps       cloud.Capabilities
	prohibited map[string]bool
	hosts      []cloud.Host
	// antiAffinity is that of servers that have one, by their ids.
	antiAffinity map[string]cloud.AntiAffinity
	// interfaces are what servers that were created with Interfaces asked for, by their ids.
	interfaces map[string][]cloud.Attachment
	servers    *store[cloud.Server]
	networks   *store[cloud.Network]
	// poweredOff are the servers that are STOPPED once they are built.
	poweredOff map[string]bool
	// slow means that builds and deletions end when Finish is called.
	slow bool
	// hidden and lag are what a listing leaves out.
	hidden      map[string]bool
	lag         time.Duration
	utilization int
	// normalize means that names become lower case; answer is the server that a
	// create answers with instead of a new one.
	normalize bool
	answer    string
	// alter changes each new server, and altered has the names that were requested for them, by
	// their ids.
	alter   func(*cloud.Server)
	altered map[string]string
	// alterNetwork and alterSnapshot change each new network and snapshot.
	alterNetwork  func(*cloud.Network)
	alterSnapshot func(*cloud.Snapshot)
	// needsStop means that running servers cannot be resized.
	needsStop bool
	// keepsSize means that changes of the size are accepted and not made.
	keepsSize bool
	// guests is what guests do that are asked to shut down.
	guests Guests
	// operating means that changes of servers are operations, which end when
	// FinishOperations is called.
	operating bool
	// proving means that operations say what they have made, and that a server is gone.
	proving bool
	// firsts are the names of creates that came as the first with their key, and repeated
	// those of them whose key another create had used.
	firsts, repeated []string
	operations       *store[operation]
	// userData are the user data of the creates of each name, oldest first.
	userData    map[string][]string
	serverKeys  keys[cloud.CreateServer, cloud.Server]
	networkKeys keys[cloud.CreateNetwork, cloud.Network]
	snapshots   snapshots

	// watches is closed to end the calls of Watch, of which watchers are under way.
	watches  chan struct{}
	watchers int
	// undated means that changes have no AsOf.
	undated bool

	log    log
	faults faults
	// onCall is called before a call has its effect, and onAnswer after.
	onCall, onAnswer Hook
	misuse           error
	closed           chan struct{}
	closing          sync.Once
	closes           int
}

var _ cloud.Client = (*Cloud)(nil)

// New returns a cloud without servers and networks.
func New(opts Options) *Cloud {
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	c := &Cloud{
		clock: opts.Clock, caps: cloud.NewCapabilities(opts.Capabilities...), hosts: opts.Hosts, antiAffinity: map[string]cloud.AntiAffinity{}, prohibited: map[string]bool{},
		interfaces: map[string][]cloud.Attachment{}, altered: map[string]string{},
		servers: newStore[cloud.Server]("s"), networks: newStore[cloud.Network]("n"),
		operations: newStore[operation]("op"),
		poweredOff: map[string]bool{}, hidden: map[string]bool{}, utilization: defaultUtilization,
		userData: map[string][]string{}, serverKeys: keys[cloud.CreateServer, cloud.Server]{}, networkKeys: keys[cloud.CreateNetwork, cloud.Network]{},
		snapshots: newSnapshots(),
		log:       log{sent: map[Verb]int{}}, faults: newFaults(), closed: make(chan struct{}), watches: make(chan struct{}),
	}
	for _, name := range opts.Prohibited {
		c.prohibited[name] = true
	}
	return c
}

// Can returns the cloud's capabilities without a call.
func (c *Cloud) Can() cloud.Capabilities {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.caps
}

// Capabilities returns what the cloud can do.
func (c *Cloud) Capabilities(ctx context.Context) (cloud.Capabilities, error) {
	return do(ctx, c, call{verb: Capabilities, op: "get capabilities"}, func() (cloud.Capabilities, error) {
		return c.caps, nil
	})
}

// CheckName reports whether a server may be created with this name.
func (c *Cloud) CheckName(ctx context.Context, name cloud.Name) error {
	op := "check name " + quote(name.Name)
	if err := checkName(op, name.Name); err != nil {
		return err
	}
	_, err := do(ctx, c, call{verb: CheckName, object: name.Name, op: op}, func() (struct{}, error) {
		return struct{}{}, c.nameOfServer(op, name)
	})
	return err
}

// nameOfServer reports whether a new server may have the name. The caller holds mu.
func (c *Cloud) nameOfServer(op string, name cloud.Name) error {
	if c.normalize {
		name.Name = strings.ToLower(name.Name)
	}
	key := func(n cloud.Name) string {
		if c.caps.Has(cloud.FolderNames) {
			return n.Folder + "/" + n.Name
		}
		return n.Name
	}
	for _, open := range c.operations.all() {
		if c.caps.Has(cloud.UniqueNames) && !open.Done && open.name.Name != "" && key(open.name) == key(name) {
			return failure(op, cloud.Taken, "the name is taken")
		}
	}
	return nameOf(c, op, name.Name, key(name), c.servers, func(s cloud.Server) string {
		return key(cloud.Name{Name: cmp.Or(c.altered[s.ID], s.Name), Folder: s.Folder})
	})
}

// nameOf reports whether a new item of a store may have the name, which is unique in
// the form that nameIn returns. The caller holds mu.
func nameOf[R any](c *Cloud, op, name, unique string, in *store[R], nameIn func(R) string) error {
	if c.prohibited[name] {
		return &cloud.Error{Kind: cloud.Prohibited, Code: "nameProhibited", Op: op, Detail: "the name is prohibited"}
	}
	if !c.caps.Has(cloud.UniqueNames) {
		return nil
	}
	for _, item := range in.all() {
		if nameIn(item) == unique {
			return failure(op, cloud.Taken, "the name is taken")
		}
	}
	return nil
}

// Close ends a client's use of the cloud. The cloud goes on to serve others.
func (c *Cloud) Close(context.Context) {
	c.mu.Lock()
	c.closes++
	c.mu.Unlock()
	c.closing.Do(func() { close(c.closed) })
}

// Closed returns a channel that is closed by the first call of Close.
func (c *Cloud) Closed() <-chan struct{} { return c.closed }

// Closes returns how often Close was called.
func (c *Cloud) Closes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closes
}
