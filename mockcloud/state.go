package mockcloud

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// record is a stored server. A record in the state is replaced and never changed,
// so that readers can use it after they release the lock.
type record struct {
	Server
	// ReadyAt is the time when the build ends; zero unless BUILDING.
	ReadyAt time.Time `json:"readyAt,omitzero"`
	// GoneAt is the time when the deletion ends; zero unless DELETING.
	GoneAt time.Time `json:"goneAt,omitzero"`
	// OffAt is the time when the guest has shut down; zero unless it was asked to.
	OffAt time.Time `json:"offAt,omitzero"`
	// Key is the key of the idempotency record; empty if there is none.
	Key string `json:"key,omitempty"`
	// Override replaces the utilisation model.
	Override *int `json:"override,omitempty"`
	// Labelled is set when a client has set labels.
	Labelled bool `json:"labelled,omitempty"`
	// Boots is how often the server has started.
	Boots int `json:"boots,omitempty"`
	// UserDataSHA256 is the SHA-256 of the user data in hexadecimal digits; empty for none.
	UserDataSHA256 string `json:"userDataSHA256,omitempty"`
	// Snapshots are those of the server, oldest first.
	Snapshots []Snapshot `json:"snapshots,omitempty"`
	// Frozen are what the server was when its snapshots were taken, by their IDs.
	Frozen map[string]frozen `json:"frozen,omitempty"`
}

// position is the position of a server in a list.
type position struct {
	created int64
	id      string
}

func (p position) compare(other position) int {
	return cmp.Or(cmp.Compare(p.created, other.created), cmp.Compare(p.id, other.id))
}

func (r *record) position() position {
	return position{created: r.CreatedAt.UnixNano(), id: r.ID}
}

// state is the state of a cloud, guarded by core.mu.
type state struct {
	servers map[string]*record
	order   []position
	// byName has sets of IDs, because names may not be unique.
	byName   map[string]map[string]struct{}
	networks map[string]*Network
	// attached counts the servers of each network.
	attached map[string]int
	// addresses are those of servers, which are used once each in a network.
	addresses map[lease]struct{}
	keys      map[string]*keyRecord
	// operations has those that are open or ended less than a day ago.
	operations map[string]*operation
	ledger     []LedgerEntry
	due        dueHeap
	placed     int

	// pastServers and pastNetworks are for reads that lag.
	pastServers  history[record]
	pastNetworks history[Network]
}

func newState() state {
	return state{
		servers:   map[string]*record{},
		byName:    map[string]map[string]struct{}{},
		networks:  map[string]*Network{},
		attached:  map[string]int{},
		addresses: map[lease]struct{}{},
		keys:      map[string]*keyRecord{},

		operations: map[string]*operation{},
	}
}

// put adds a server or replaces the one with the same ID.
func (s *state) put(r *record) {
	s.forget(r.ID)
	s.servers[r.ID] = r
	if s.byName[r.Name] == nil {
		s.byName[r.Name] = map[string]struct{}{}
	}
	s.byName[r.Name][r.ID] = struct{}{}
	for _, id := range r.networksOf() {
		s.attached[id]++
	}
	for taken := range r.leases() {
		s.addresses[taken] = struct{}{}
	}
	at, found := slices.BinarySearchFunc(s.order, r.position(), position.compare)
	if !found {
		s.order = slices.Insert(s.order, at, r.position())
	}
}

// forget removes a server from all indexes. It ignores an unknown ID.
func (s *state) forget(id string) {
	old, known := s.servers[id]
	if !known {
		return
	}
	delete(s.servers, id)
	delete(s.byName[old.Name], id)
	if len(s.byName[old.Name]) == 0 {
		delete(s.byName, old.Name)
	}
	for _, id := range old.networksOf() {
		s.attached[id]--
	}
	for taken := range old.leases() {
		delete(s.addresses, taken)
	}
	if at, found := slices.BinarySearchFunc(s.order, old.position(), position.compare); found {
		s.order = slices.Delete(s.order, at, at+1)
	}
}

// load fills an empty state from the store.
func (s *state) load(store Store, retention time.Duration) error {
	err := store.Load(bucketServers, decoding(func(r *record) {
		s.put(r)
		s.schedule(r)
	}))
	if err != nil {
		return fmt.Errorf("loading servers: %w", err)
	}
	if err := store.Load(bucketNetworks, decoding(func(n *Network) { s.networks[n.ID] = n })); err != nil {
		return fmt.Errorf("loading networks: %w", err)
	}
	err = store.Load(bucketKeys, decoding(func(k *keyRecord) {
		s.keys[k.Key] = k
		if !k.GoneAt.IsZero() {
			s.due.add(due{at: k.GoneAt.Add(retention), what: dueForget, id: k.Key})
		}
	}))
	if err != nil {
		return fmt.Errorf("loading idempotency keys: %w", err)
	}
	err = store.Load(bucketOperations, decoding(func(o *operation) {
		s.operations[o.ID] = o
		s.due.add(o.due())
	}))
	if err != nil {
		return fmt.Errorf("loading operations: %w", err)
	}
	err = store.Load(bucketLedger, decoding(func(e *LedgerEntry) { s.ledger = append(s.ledger, *e) }))
	if err != nil {
		return fmt.Errorf("loading ledger: %w", err)
	}
	return nil
}

func (s *state) schedule(r *record) {
	switch {
	case !r.GoneAt.IsZero():
		s.due.add(due{at: r.GoneAt, what: dueGone, id: r.ID})
	case !r.ReadyAt.IsZero():
		s.due.add(due{at: r.ReadyAt, what: dueReady, id: r.ID})
	case !r.OffAt.IsZero():
		s.due.add(due{at: r.OffAt, what: dueOff, id: r.ID})
	}
}

func decoding[T any](use func(*T)) func(string, []byte) error {
	return func(key string, value []byte) error {
		item := new(T)
		if err := json.Unmarshal(value, item); err != nil {
			return fmt.Errorf("decoding %s: %w", key, err)
		}
		use(item)
		return nil
	}
}

func encoded(bucket, key string, value any) Change {
	data, err := json.Marshal(value)
	if err != nil {
		// Every stored type consists of strings, numbers, times and maps of these.
		panic(fmt.Sprintf("encoding %s/%s: %v", bucket, key, err))
	}
	return Change{Bucket: bucket, Key: key, Value: data}
}

func (r *record) clone() *record {
	next := *r
	next.Labels = maps.Clone(r.Labels)
	return &next
}
