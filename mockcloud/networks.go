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
	// Gateway is an address inside CIDR.
	Gateway   string    `json:"gateway"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

type createNetwork struct {
	Name    string `json:"name"`
	CIDR    string `json:"cidr"`
	Gateway string `json:"gateway"`
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

// handleCreateNetwork handles POST /networks.
func (c *Cloud) handleCreateNetwork(w http.ResponseWriter, r *request) error {
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
	key, err := c.keys.of(r, "networks", data)
	if err != nil {
		return err
	}
	answer, err := c.createNetwork(body, key, r.id)
	if err != nil {
		return err
	}
	return writeJSON(w, answer.status, answer.body)
}

func (c *Cloud) createNetwork(body createNetwork, key *keyRecord, requestID string) (keyedAnswer, error) {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	if answer, found, err := c.keys.replay(key); found || err != nil {
		return answer, err
	}
	if err := c.admitNetworkName(body.Name); err != nil {
		return keyedAnswer{}, err
	}
	now := c.core.now()
	n := &Network{
		ID: c.core.newID(c.core.st.hasNetwork), Name: body.Name, CIDR: body.CIDR, Gateway: body.Gateway,
		CreatedAt: now, UpdatedAt: now,
	}
	how := LedgerEntry{Op: OpCreateNetwork, NetworkID: n.ID, Name: n.Name, RequestID: requestID}
	answer := keyedAnswer{status: http.StatusCreated, body: c.core.quirks.Load().shapeNetwork(n)}
	changes := []Change{encoded(bucketNetworks, n.ID, n)}
	if key != nil {
		how.Key = keyOf(key.Key)
		key.record(n.ID, answer, now)
		changes = append(changes, encoded(bucketKeys, key.Key, key))
	}
	entry, change := c.core.entry(how)
	if err := c.core.store.Write(append(changes, change)...); err != nil {
		return keyedAnswer{}, err
	}
	if key != nil {
		c.core.st.keys[key.Key] = key
	}
	c.core.st.ledger = append(c.core.st.ledger, entry)
	c.rememberNetwork(n.ID)
	c.core.st.networks[n.ID] = n
	return answer, nil
}

// admitNetworkName returns an error if a new network may not have the name. The
// caller holds mu.
func (c *Cloud) admitNetworkName(name string) error {
	if c.core.prohibitedNames.match(name) {
		return problem(http.StatusForbidden, CodeNameProhibited, "the name %q is prohibited", name)
	}
	if !c.core.has(UniqueNames) {
		return nil
	}
	for _, n := range c.core.st.networks {
		if c.names.shown(n.Name) == c.names.shown(name) {
			return problem(http.StatusConflict, CodeNameTaken, "the name %q is taken", name)
		}
	}
	return nil
}

// handleListNetworks handles GET /networks: all of them, oldest first.
func (c *Cloud) handleListNetworks(w http.ResponseWriter, _ *request) error {
	q := c.core.quirks.Load()
	networks := []any{}
	for _, n := range sortedNetworks(c.reads.networks()) {
		networks = append(networks, q.shapeNetwork(&n))
	}
	return writeJSON(w, http.StatusOK, q.shapeList(map[string]any{"networks": networks}, "Networks", "NETWORKS"))
}

// rememberNetwork records the present version of a network before it changes, for
// reads that lag. The caller holds mu.
func (c *Cloud) rememberNetwork(id string) {
	c.core.st.pastNetworks.add(c.core.now(), c.core.quirks.Load().keep(), id, c.core.st.networks[id])
}

// Networks returns all networks, oldest first.
func (c *Cloud) Networks() []Network {
	c.core.mu.RLock()
	defer c.core.mu.RUnlock()
	return sortedNetworks(c.core.st.networks)
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

// handleGetNetwork handles GET /networks/{id}.
func (c *Cloud) handleGetNetwork(w http.ResponseWriter, r *request) error {
	n := c.reads.networks()[r.vars[0]]
	if n == nil {
		return notFound("network", r.vars[0])
	}
	return writeJSON(w, http.StatusOK, c.core.quirks.Load().shapeNetwork(n))
}

// handlePatchNetwork handles PATCH /networks/{id}. Only the gateway can change.
func (c *Cloud) handlePatchNetwork(w http.ResponseWriter, r *request) error {
	data, err := readBody(r)
	if err != nil {
		return err
	}
	var body struct {
		Gateway string `json:"gateway"`
	}
	if err := decodeStrict(data, &body); err != nil {
		return err
	}
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	n := c.core.st.networks[r.vars[0]]
	if n == nil {
		return notFound("network", r.vars[0])
	}
	if err := checkGateway(n.CIDR, body.Gateway); err != nil {
		return err
	}
	next := *n
	next.Gateway, next.UpdatedAt = body.Gateway, c.core.now()
	q := c.core.quirks.Load()
	switch q.IgnorePatch {
	case PatchUnchanged:
		return writeJSON(w, http.StatusOK, q.shapeNetwork(n))
	case PatchEcho:
		return writeJSON(w, http.StatusOK, q.shapeNetwork(&next))
	}
	if err := c.core.store.Write(encoded(bucketNetworks, n.ID, next)); err != nil {
		return err
	}
	c.rememberNetwork(n.ID)
	c.core.st.networks[n.ID] = &next
	return writeJSON(w, http.StatusOK, q.shapeNetwork(&next))
}

// handleDeleteNetwork handles DELETE /networks/{id}. It returns 409 while servers
// are attached.
func (c *Cloud) handleDeleteNetwork(w http.ResponseWriter, r *request) error {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	if attached := c.core.st.attached[r.vars[0]]; attached > 0 && c.core.st.networks[r.vars[0]] != nil {
		return problem(http.StatusConflict, CodeAttached, "%d servers are attached", attached)
	}
	if err := c.removeNetwork(r.vars[0], LedgerEntry{RequestID: r.id}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// removeNetwork deletes a network. It completes the ledger entry with the fields of
// the network. The caller holds mu.
func (c *Cloud) removeNetwork(id string, how LedgerEntry) error {
	n := c.core.st.networks[id]
	if n == nil {
		return notFound("network", id)
	}
	how.Op, how.NetworkID, how.Name = OpDeleteNetwork, n.ID, n.Name
	entry, change := c.core.entry(how)
	changes := []Change{change, {Bucket: bucketNetworks, Key: n.ID}}
	gone := c.core.st.keysOf(n.ID, entry.Time, &changes)
	if err := c.core.store.Write(changes...); err != nil {
		return err
	}
	for _, key := range gone {
		c.core.st.keys[key.Key] = key
		c.core.st.due.add(due{at: key.GoneAt.Add(c.core.retention), what: dueForget, id: key.Key})
	}
	c.core.updateNextDue()
	c.core.st.ledger = append(c.core.st.ledger, entry)
	c.rememberNetwork(n.ID)
	delete(c.core.st.networks, n.ID)
	return nil
}

// PutNetwork adds a network or replaces the one with the same ID, without checks.
// Fields that are zero get a default: a new ID, the present time. The ledger
// records a new network with ByAdmin.
func (c *Cloud) PutNetwork(n Network) (Network, error) {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	now := c.core.now()
	if n.ID == "" {
		n.ID = c.core.newID(c.core.st.hasNetwork)
	}
	if n.CreatedAt.IsZero() {
		n.CreatedAt = now
	}
	n.UpdatedAt = now
	changes := []Change{encoded(bucketNetworks, n.ID, n)}
	var entries []LedgerEntry
	if c.core.st.networks[n.ID] == nil {
		entry, change := c.core.entry(LedgerEntry{Op: OpCreateNetwork, By: ByAdmin, NetworkID: n.ID, Name: n.Name})
		entries, changes = append(entries, entry), append(changes, change)
	}
	if err := c.core.store.Write(changes...); err != nil {
		return Network{}, fmt.Errorf("putting network %s: %w", n.ID, err)
	}
	c.core.st.ledger = append(c.core.st.ledger, entries...)
	c.rememberNetwork(n.ID)
	c.core.st.networks[n.ID] = &n
	return n, nil
}

// DeleteNetwork deletes a network even if servers are attached to it. It returns an
// error if there is no such network.
func (c *Cloud) DeleteNetwork(id string) error {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	return c.removeNetwork(id, LedgerEntry{By: ByAdmin})
}

func (c *Cloud) handlePutNetwork(w http.ResponseWriter, r *request) error {
	var n Network
	if err := readInto(r, &n); err != nil {
		return err
	}
	put, err := c.PutNetwork(n)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, put)
}

// keysOf returns the keys of a network as expiring, and appends their changes. It
// reads all keys, because networks do not have their key. The caller holds mu.
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
