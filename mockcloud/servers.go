package mockcloud

import (
	"encoding/hex"
	"net/http"
	"time"
)

// State is the state of a server.
type State string

const (
	StateBuilding  State = "BUILDING"
	StateActive    State = "ACTIVE"
	StateStopped   State = "STOPPED"
	StateSuspended State = "SUSPENDED"
	StateDeleting  State = "DELETING"
	StateError     State = "ERROR"
)

// The values of Server.PowerState.
const (
	PowerOn        = "On"
	PowerOff       = "Off"
	PowerSuspended = "Suspended"
)

// Server is a virtual machine, as tests and clients of the extended profile read
// it.
type Server struct {
	// ID is a version 4 UUID.
	ID     string            `json:"id"`
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	State  State             `json:"state,omitempty"`
	// CPU is the number of cores.
	CPU int `json:"cpu,omitempty"`
	// Memory is in GiB.
	Memory   int    `json:"memory,omitempty"`
	Template string `json:"template,omitempty"`
	Folder   string `json:"folder,omitempty"`
	// NetworkID is the network of the first interface.
	NetworkID  string `json:"networkId,omitempty"`
	PowerState string `json:"powerState,omitempty"`
	Host       string `json:"host,omitempty"`
	// Zone is that of the host, when the server was created.
	Zone         string        `json:"zone,omitempty"`
	AntiAffinity *AntiAffinity `json:"antiAffinity,omitempty"`
	// Interfaces are those that the create asked for, else one, unless the server is BUILDING.
	Interfaces []Interface `json:"interfaces,omitempty"`
	Disks      []Disk      `json:"disks,omitempty"`
	RootDisk   *RootDisk   `json:"rootDisk,omitempty"`
	// SecurityGroups are those of all interfaces, sorted.
	SecurityGroups []string `json:"securityGroups,omitempty"`
	// AllowedAddresses are what a client let the server use beside its own addresses, sorted.
	AllowedAddresses []string `json:"allowedAddresses,omitempty"`
	// PublicAddress is nil unless a client asked for one.
	PublicAddress *PublicAddress `json:"publicAddress,omitempty"`
	// GuestHeartbeat is that of the agent in the guest while the server is ACTIVE: OK, LOST or
	// NONE. OK if it is not set.
	GuestHeartbeat string `json:"guestHeartbeat,omitempty"`
	// CPUUtilization is in percent, 0-100 unless SetUtilisation was called.
	CPUUtilization *int      `json:"cpuUtilization,omitempty"`
	CPUUsageMHz    *int      `json:"cpuUsageMHz,omitempty"`
	MemoryUsageMB  *int      `json:"memoryUsageMB,omitempty"`
	CreatedAt      time.Time `json:"createdAt,omitzero"`
	UpdatedAt      time.Time `json:"updatedAt,omitzero"`
}

// Heartbeats of guests.
const (
	HeartbeatOK   = "OK"
	HeartbeatLost = "LOST"
	HeartbeatNone = "NONE"
)

// stateFor returns the state of a server with a power state when no operation is in
// progress.
func stateFor(power string) State {
	switch power {
	case PowerOff:
		return StateStopped
	case PowerSuspended:
		return StateSuspended
	}
	return StateActive
}

// servers creates, changes and deletes servers.
type servers struct {
	core       *core
	views      *views
	reads      *reads
	names      *names
	keys       *keys
	hosts      *hosts
	operations *operations
	records    *records
}

// create creates a server, or returns the response of the first create with
// the same key.
func (s *servers) create(body createServer, key *keyRecord, requestID string) (keyedAnswer, error) {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	if answer, found, err := s.keys.replay(key); found || err != nil {
		return answer, err
	}
	if same := s.names.namesakes(body.Name, deref(body.Folder, "")); len(same) > 0 && s.core.quirks.Load().ExistingOnCreate {
		return keyedAnswer{status: http.StatusOK, body: s.views.represent(same[0], s.core.now())}, nil
	}
	if err := s.admit(body); err != nil {
		return keyedAnswer{}, err
	}
	if s.operations.operates() {
		return s.operations.start(operation{Create: &body, Key: key, RequestID: requestID})
	}
	return s.createNow(body, key, requestID)
}

// createNow creates a server that is admitted. The caller holds core.mu.
func (s *servers) createNow(body createServer, key *keyRecord, requestID string) (keyedAnswer, error) {
	hosts, err := s.hosts.allowed(body)
	if err != nil {
		return keyedAnswer{}, err
	}
	now := s.core.now()
	r := &record{Labelled: len(body.Labels) > 0, UserDataSHA256: hex.EncodeToString(body.UserData), Server: Server{
		ID: s.core.newID(s.core.st.hasServer), Name: body.Name, Labels: body.Labels,
		CPU: deref(body.CPU, 1), Memory: deref(body.Memory, 1),
		Template: deref(body.Template, ""), Folder: deref(body.Folder, ""),
		PowerState: deref(body.PowerState, PowerOn),
		Host:       s.hosts.pick(hosts), AntiAffinity: body.AntiAffinity, Disks: typedDisks(body.Disks...), RootDisk: rootDiskOf(body.RootDisk), CreatedAt: now, UpdatedAt: now,
		SecurityGroups: groupsOrDefault(body.SecurityGroups),
	}}
	if asked := body.attachments(); len(asked) > 0 {
		r.NetworkID = asked[0].NetworkID
	}
	r.Zone, r.Interfaces = s.hosts.zoneOf(r.Host), s.core.st.attach(&r.Server, body.Interfaces)
	r.State = s.finalState(r.Name, r.PowerState)
	build := time.Duration(s.core.behave.BuildTime)
	if build > 0 && s.core.has(Async) && r.State != StateBuilding {
		r.State, r.ReadyAt = StateBuilding, now.Add(build)
	}
	status := http.StatusCreated
	if r.State == StateBuilding && s.core.has(Async) {
		status = http.StatusAccepted
	}
	if key != nil {
		r.Key = key.Key
	}
	return s.records.insert(r, status, key, LedgerEntry{Op: OpCreate, RequestID: requestID})
}

// finalState returns the state of a new server when its build has ended, which does
// not happen under Quirks.StuckBuilding.
func (s *servers) finalState(name, power string) State {
	if matches(s.core.quirks.Load().StuckBuilding, name) {
		return StateBuilding
	}
	return stateFor(power)
}

// delete accepts a deletion and returns the response.
func (s *servers) delete(id, by, requestID string) (keyedAnswer, error) {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	r := s.core.st.servers[id]
	if r == nil {
		return keyedAnswer{}, notFound("server", id)
	}
	if by == ByClient {
		if err := s.core.st.idle(id); err != nil {
			return keyedAnswer{}, err
		}
		if s.operations.operates() {
			answer, err := s.operations.start(operation{ServerID: id, Delete: true, RequestID: requestID})
			answer.body = nil // the header Location has the reference
			return answer, err
		}
	}
	status, err := s.deleteNow(r, by, requestID)
	return keyedAnswer{status: status}, err
}

// deleteNow deletes a server or begins its deletion, and returns the status of the
// response. The caller holds core.mu.
func (s *servers) deleteNow(r *record, by, requestID string) (int, error) {
	takes := time.Duration(s.core.behave.DeleteTime)
	if by == ByAdmin || takes == 0 || !s.core.has(Async) {
		how := LedgerEntry{Op: OpDelete, By: by, RequestID: requestID, Final: true}
		return http.StatusNoContent, s.records.remove(r, s.core.now(), how)
	}
	if r.State == StateDeleting {
		return http.StatusAccepted, nil
	}
	now := s.core.now()
	next := r.clone()
	next.State, next.GoneAt, next.ReadyAt, next.UpdatedAt = StateDeleting, now.Add(takes), time.Time{}, now
	entry, change := s.core.entry(LedgerEntry{
		Op: OpDelete, By: by, ServerID: r.ID, Name: r.Name, Labels: r.Labels,
		Key: keyOf(r.Key), RequestID: requestID,
	})
	if err := s.records.replace(next, change); err != nil {
		return 0, err
	}
	s.core.st.ledger = append(s.core.st.ledger, entry)
	return http.StatusAccepted, nil
}

func deref[T any](p *T, absent T) T {
	if p == nil {
		return absent
	}
	return *p
}
