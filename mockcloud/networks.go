package mockcloud

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Network is a network that servers can be attached to.
type Network struct {
	// ID is a version 4 UUID.
	ID   string `json:"id"`
	Name string `json:"name"`
	// CIDR never changes.
	CIDR string `json:"cidr"`
	// IPv6CIDR is an IPv6 range; empty if the network has none. It never changes once the network has one.
	IPv6CIDR string `json:"ipv6CIDR,omitempty"`
	// Gateway is an address inside CIDR.
	Gateway string `json:"gateway"`
	// DNSNameservers are the DNS servers of the network.
	DNSNameservers []string `json:"dnsNameservers,omitempty"`
	// Router connects the network to an external one; nil if it has none.
	Router *Router `json:"router,omitempty"`

	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// Router is the router of a network.
type Router struct {
	// ExternalNetwork is one of Options.ExternalNetworks.
	ExternalNetwork string `json:"externalNetwork"`
}

type createNetwork struct {
	Name    string `json:"name"`
	CIDR    string `json:"cidr"`
	Gateway string `json:"gateway"`
	networkExtras
}

type patchNetwork struct {
	Gateway *string `json:"gateway"`
	networkExtras
}

func checkGateway(cidr, gateway string) error {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return invalid("cidr: %v", err)
	}
	address, err := netip.ParseAddr(gateway)
	if err != nil {
		return invalid("gateway: %v", err)
	}
	if !prefix.Contains(address) {
		return invalid("gateway %s is not inside %s", gateway, cidr)
	}
	return nil
}

// networks are the networks of a cloud.
type networks struct {
	core  *core
	reads *reads
	names *names
	keys  *keys
}

// handleCreate handles POST /networks.
func (ns *networks) handleCreate(w http.ResponseWriter, r *request) error {
	data, err := readBody(r)
	if err != nil {
		return err
	}
	var body createNetwork
	if err := decodeStrict(data, &body); err != nil {
		return err
	}
	if err := checkName(body.Name); err != nil {
		return err
	}
	if err := checkGateway(body.CIDR, body.Gateway); err != nil {
		return err
	}
	if err := body.check(ns.core, Network{CIDR: body.CIDR}); err != nil {
		return err
	}
	key, err := ns.keys.of(r, "networks", data)
	if err != nil {
		return err
	}
	answer, err := ns.create(body, key, r.id)
	if err != nil {
		return err
	}
	return writeJSON(w, answer.status, answer.body)
}

func (ns *networks) create(body createNetwork, key *keyRecord, requestID string) (keyedAnswer, error) {
	ns.core.mu.Lock()
	defer ns.core.mu.Unlock()
	if answer, found, err := ns.keys.replay(key); found || err != nil {
		return answer, err
	}
	if err := ns.admitName(body.Name); err != nil {
		return keyedAnswer{}, err
	}
	now := ns.core.now()
	n := &Network{
		ID: ns.core.newID(ns.core.st.hasNetwork), Name: body.Name, CIDR: body.CIDR, Gateway: body.Gateway,
		CreatedAt: now, UpdatedAt: now,
	}
	body.apply(n)
	how := LedgerEntry{Op: OpCreateNetwork, NetworkID: n.ID, Name: n.Name, RequestID: requestID}
	answer := keyedAnswer{status: http.StatusCreated, body: ns.shown(n)}
	changes := []Change{encoded(bucketNetworks, n.ID, n)}
	if key != nil {
		how.Key = keyOf(key.Key)
		key.record(n.ID, answer, now)
		changes = append(changes, encoded(bucketKeys, key.Key, key))
	}
	entry, change := ns.core.entry(how)
	if err := ns.core.store.Write(append(changes, change)...); err != nil {
		return keyedAnswer{}, err
	}
	if key != nil {
		ns.core.st.keys[key.Key] = key
	}
	ns.core.st.ledger = append(ns.core.st.ledger, entry)
	ns.remember(n.ID)
	ns.core.st.networks[n.ID] = n
	return answer, nil
}

// admitName returns an error if a new network may not have the name. The
// caller holds core.mu.
func (ns *networks) admitName(name string) error {
	if ns.core.prohibitedNames.match(name) {
		return problem(http.StatusForbidden, CodeNameProhibited, "the name %q is prohibited", name)
	}
	if !ns.core.has(UniqueNames) {
		return nil
	}
	for _, n := range ns.core.st.networks {
		if ns.names.shown(n.Name) == ns.names.shown(name) {
			return problem(http.StatusConflict, CodeNameTaken, "the name %q is taken", name)
		}
	}
	return nil
}

// handleList handles GET /networks: all of them, oldest first.
func (ns *networks) handleList(w http.ResponseWriter, _ *request) error {
	q := ns.core.quirks.Load()
	networks := []any{}
	for _, n := range sortedNetworks(ns.reads.networks()) {
		networks = append(networks, ns.shown(&n))
	}
	return writeJSON(w, http.StatusOK, q.shapeList(map[string]any{"networks": networks}, "Networks", "NETWORKS"))
}

// remember records the present version of a network before it changes, for
// reads that lag. The caller holds core.mu.
func (ns *networks) remember(id string) {
	ns.core.st.pastNetworks.add(ns.core.now(), ns.core.quirks.Load().keep(), id, ns.core.st.networks[id])
}

func (ns *networks) all() []Network {
	ns.core.mu.RLock()
	defer ns.core.mu.RUnlock()
	return sortedNetworks(ns.core.st.networks)
}

func sortedNetworks(networks map[string]*Network) []Network {
	list := make([]Network, 0, len(networks))
	for _, n := range networks {
		list = append(list, *n)
	}
	slices.SortFunc(list, func(a, b Network) int {
		if order := a.CreatedAt.Compare(b.CreatedAt); order != 0 {
			return order
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list
}

// handleGet handles GET /networks/{id}.
func (ns *networks) handleGet(w http.ResponseWriter, r *request) error {
	n := ns.reads.networks()[r.vars[0]]
	if n == nil {
		return notFound("network", r.vars[0])
	}
	return writeJSON(w, http.StatusOK, ns.shown(n))
}

// handlePatch handles PATCH /networks/{id}. Name and range cannot change.
func (ns *networks) handlePatch(w http.ResponseWriter, r *request) error {
	data, err := readBody(r)
	if err != nil {
		return err
	}
	var body patchNetwork
	if err := decodeStrict(data, &body); err != nil {
		return err
	}
	if body.Gateway == nil && body.IPv6CIDR == nil && body.DNSNameservers == nil && body.Router == nil {
		return invalid("the body changes nothing")
	}
	ns.core.mu.Lock()
	defer ns.core.mu.Unlock()
	n := ns.core.st.networks[r.vars[0]]
	if n == nil {
		return notFound("network", r.vars[0])
	}
	if err := body.check(ns.core, *n); err != nil {
		return err
	}
	next := *n
	if body.Gateway != nil {
		if err := checkGateway(n.CIDR, *body.Gateway); err != nil {
			return err
		}
		next.Gateway = *body.Gateway
	}
	body.apply(&next)
	next.UpdatedAt = ns.core.now()
	switch ns.core.quirks.Load().IgnorePatch {
	case PatchUnchanged:
		return writeJSON(w, http.StatusOK, ns.shown(n))
	case PatchEcho:
		return writeJSON(w, http.StatusOK, ns.shown(&next))
	}
	if err := ns.core.store.Write(encoded(bucketNetworks, n.ID, next)); err != nil {
		return err
	}
	ns.remember(n.ID)
	ns.core.st.networks[n.ID] = &next
	return writeJSON(w, http.StatusOK, ns.shown(&next))
}

// handleDelete handles DELETE /networks/{id}. It returns 409 while servers
// are attached.
func (ns *networks) handleDelete(w http.ResponseWriter, r *request) error {
	ns.core.mu.Lock()
	defer ns.core.mu.Unlock()
	if attached := ns.core.st.attached[r.vars[0]]; attached > 0 && ns.core.st.networks[r.vars[0]] != nil {
		return problem(http.StatusConflict, CodeAttached, "%d servers are attached", attached)
	}
	if err := ns.remove(r.vars[0], LedgerEntry{RequestID: r.id}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// remove deletes a network. It completes the ledger entry with the fields of
// the network. The caller holds core.mu.
func (ns *networks) remove(id string, how LedgerEntry) error {
	n := ns.core.st.networks[id]
	if n == nil {
		return notFound("network", id)
	}
	how.Op, how.NetworkID, how.Name = OpDeleteNetwork, n.ID, n.Name
	entry, change := ns.core.entry(how)
	changes := []Change{change, {Bucket: bucketNetworks, Key: n.ID}}
	gone := ns.core.st.keysOf(n.ID, entry.Time, &changes)
	if err := ns.core.store.Write(changes...); err != nil {
		return err
	}
	for _, key := range gone {
		ns.core.st.keys[key.Key] = key
		ns.core.st.due.add(due{at: key.GoneAt.Add(ns.core.retention), what: dueForget, id: key.Key})
	}
	ns.core.updateNextDue()
	ns.core.st.ledger = append(ns.core.st.ledger, entry)
	ns.remember(n.ID)
	delete(ns.core.st.networks, n.ID)
	return nil
}

func (ns *networks) put(n Network) (Network, error) {
	ns.core.mu.Lock()
	defer ns.core.mu.Unlock()
	now := ns.core.now()
	if n.ID == "" {
		n.ID = ns.core.newID(ns.core.st.hasNetwork)
	}
	if n.CreatedAt.IsZero() {
		n.CreatedAt = now
	}
	n.UpdatedAt = now
	changes := []Change{encoded(bucketNetworks, n.ID, n)}
	var entries []LedgerEntry
	if ns.core.st.networks[n.ID] == nil {
		entry, change := ns.core.entry(LedgerEntry{Op: OpCreateNetwork, By: ByAdmin, NetworkID: n.ID, Name: n.Name})
		entries, changes = append(entries, entry), append(changes, change)
	}
	if err := ns.core.store.Write(changes...); err != nil {
		return Network{}, fmt.Errorf("putting network %s: %w", n.ID, err)
	}
	ns.core.st.ledger = append(ns.core.st.ledger, entries...)
	ns.remember(n.ID)
	ns.core.st.networks[n.ID] = &n
	return n, nil
}

func (ns *networks) delete(id string) error {
	ns.core.mu.Lock()
	defer ns.core.mu.Unlock()
	return ns.remove(id, LedgerEntry{By: ByAdmin})
}

func (ns *networks) handlePut(w http.ResponseWriter, r *request) error {
	var n Network
	if err := readInto(r, &n); err != nil {
		return err
	}
	put, err := ns.put(n)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, put)
}

// keysOf returns the keys of a network as expiring, and appends their changes. It
// reads all keys, because networks do not have their key. The caller holds core.mu.
func (s *state) keysOf(id string, at time.Time, changes *[]Change) []*keyRecord {
	var gone []*keyRecord
	for _, key := range s.keys {
		if key.ID == id && strings.HasPrefix(key.Key, "networks/") {
			next := key.goneAt(at)
			gone = append(gone, next)
			*changes = append(*changes, encoded(bucketKeys, next.Key, next))
		}
	}
	return gone
}
