package mockcloud

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"
)

// createServer is the body of POST /servers. The core profile has Name only.
type createServer struct {
	Name       string            `json:"name"`
	CPU        *int              `json:"cpu"`
	Memory     *int              `json:"memory"`
	Template   *string           `json:"template"`
	Folder     *string           `json:"folder"`
	NetworkID  *string           `json:"networkId"`
	PowerState *string           `json:"powerState"`
	Labels     map[string]string `json:"labels"`
	// UserData is replaced by its SHA-256 once it was checked: the cloud keeps no secrets.
	UserData []byte    `json:"userData"`
	Disks    []Disk    `json:"disks"`
	RootDisk *RootDisk `json:"rootDisk"`

	Zone         *string       `json:"zone"`
	AntiAffinity *AntiAffinity `json:"antiAffinity"`
	Interfaces   []Attachment  `json:"interfaces"`

	SecurityGroups []string `json:"securityGroups"`
}

// patchServer is the body of PATCH /servers/{id}. Labels are merged; a null value
// removes a label.
type patchServer struct {
	CPU        *int    `json:"cpu"`
	Memory     *int    `json:"memory"`
	PowerState *string `json:"powerState"`
	// PowerOffMode is how a PowerState of Off is reached: PowerOffHard, the default, or PowerOffSoft.
	PowerOffMode *string            `json:"powerOffMode"`
	Labels       map[string]*string `json:"labels"`
	Disks        []patchDisk        `json:"disks"`
	// RootDisk has its size alone.
	RootDisk *RootDisk `json:"rootDisk"`

	SecurityGroups []string `json:"securityGroups"`
	// AllowedAddresses is absent, or empty to remove them.
	AllowedAddresses []string `json:"allowedAddresses"`
	// PublicAddress is absent, null to remove the address, or an askedAddress.
	PublicAddress json.RawMessage `json:"publicAddress,omitempty"`
}

// coreServer is a server in the core profile.
type coreServer struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// The limits of the fields of a server.
const (
	maxCPU      = 1024
	maxMemory   = 65536
	maxText     = 255
	maxLabels   = 64
	maxLabelKey = 317
	// maxLabelValue is what the operator reads.
	maxLabelValue = 1024
	maxBody       = 1 << 20
	maxUserData   = 64 << 10
)

func readBody(r *request) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, invalid("reading body: %v", err)
	}
	if len(data) > maxBody {
		return nil, invalid("body is larger than %d bytes", maxBody)
	}
	return data, nil
}

// decodeStrict returns an error for unknown fields and for more than one value.
func decodeStrict(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return invalid("body: %v", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return invalid("body: more than one JSON value")
	}
	return nil
}

// supported returns an error for fields whose capability is off.
func (b createServer) supported(c *core) error {
	core := c.profile == Core
	switch {
	case core && (b.CPU != nil || b.Memory != nil || b.Template != nil):
		return unsupported("cpu, memory or template")
	case b.Folder != nil && !c.has(Folders):
		return unsupported("folders")
	case b.PowerState != nil && !c.has(Power):
		return unsupported("powerState")
	case b.Labels != nil && !c.has(Labels):
		return unsupported("labels")
	case b.UserData != nil && !c.has(UserData):
		return unsupported("userData")
	}
	if err := supportedDisks(c, b.Disks, b.RootDisk); err != nil {
		return err
	}
	return b.placeable(c)
}

// placeable returns an error for fields of the placement whose capability is off.
func (b createServer) placeable(c *core) error {
	switch {
	case b.Zone != nil && !c.has(Zones):
		return unsupported("zone")
	case b.AntiAffinity != nil && !c.has(WithAntiAffinity):
		return unsupported("antiAffinity")
	case b.SecurityGroups != nil && !c.has(WithSecurityGroups):
		return unsupported("securityGroups")
	}
	return b.attachable(c)
}

// supported returns an error for fields whose capability is off.
func (p patchServer) supported(c *core) error {
	switch {
	case (p.CPU != nil || p.Memory != nil) && !c.has(Resize):
		return unsupported("resize")
	case p.PowerState != nil && !c.has(Power):
		return unsupported("powerState")
	case p.suspends() && !c.has(Suspend):
		return unsupported("powerState Suspended")
	case p.PowerOffMode != nil && !c.has(SoftPowerOff):
		return unsupported("powerOffMode")
	case p.Labels != nil && !c.has(Labels):
		return unsupported("labels")
	case p.SecurityGroups != nil && !c.has(WithSecurityGroups):
		return unsupported("securityGroups")
	case p.AllowedAddresses != nil && !c.has(AllowedAddresses):
		return unsupported("allowedAddresses")
	case p.PublicAddress != nil && !c.has(PublicAddresses):
		return unsupported("publicAddress")
	}
	return p.supportedDisks(c)
}

func (p patchServer) check() error {
	if err := p.checkDisks(); err != nil {
		return err
	}
	if err := p.checkRootDisk(); err != nil {
		return err
	}
	if err := p.checkReach(); err != nil {
		return err
	}
	if err := p.checkPowerState(); err != nil {
		return err
	}
	return checkSize(p.CPU, p.Memory)
}

func (b createServer) check() error {
	if err := checkName(b.Name); err != nil {
		return err
	}
	for field, text := range map[string]*string{"template": b.Template, "folder": b.Folder, "networkId": b.NetworkID, "zone": b.Zone} {
		if text != nil && len(*text) > maxText {
			return invalid("%s is longer than %d bytes", field, maxText)
		}
	}
	if err := checkSize(b.CPU, b.Memory); err != nil {
		return err
	}
	if err := b.checkPowerState(); err != nil {
		return err
	}
	if len(b.UserData) > maxUserData {
		return invalid("userData has %d bytes, and at most %d are allowed", len(b.UserData), maxUserData)
	}
	if err := checkDisks(b.Disks, 1); err != nil {
		return err
	}
	if err := b.RootDisk.check(); err != nil {
		return err
	}
	if err := b.AntiAffinity.check(); err != nil {
		return err
	}
	if err := b.checkInterfaces(); err != nil {
		return err
	}
	if err := checkGroups(b.SecurityGroups); err != nil {
		return err
	}
	return checkLabels(b.Labels)
}

func checkSize(cpu, memory *int) error {
	if cpu != nil && (*cpu < 1 || *cpu > maxCPU) {
		return invalid("cpu is 1-%d cores", maxCPU)
	}
	if memory != nil && (*memory < 1 || *memory > maxMemory) {
		return invalid("memory is 1-%d GiB", maxMemory)
	}
	return nil
}

func (b createServer) checkPowerState() error {
	if b.PowerState != nil && *b.PowerState != PowerOn && *b.PowerState != PowerOff {
		return invalid("powerState of a new server is On or Off")
	}
	return nil
}

func checkLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return invalid("more than %d labels", maxLabels)
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if key == "" || len(key) > maxLabelKey {
			return invalid("label %q: a key has 1-%d bytes", key, maxLabelKey)
		}
		if len(labels[key]) > maxLabelValue {
			return invalid("label %q: a value has at most %d bytes", key, maxLabelValue)
		}
	}
	return nil
}

// admit returns an error if a valid create is not allowed now. The caller holds
// core.mu.
func (s *servers) admit(b createServer) error {
	if err := s.names.admit(b.Name, deref(b.Folder, "")); err != nil {
		return err
	}
	if b.Template != nil {
		if s.core.prohibitedTemplates.match(*b.Template) {
			return problem(http.StatusUnprocessableEntity, CodeTemplateProhibited, "the template %q is prohibited", *b.Template)
		}
		if len(s.core.behave.Templates) > 0 && !slices.Contains(s.core.behave.Templates, *b.Template) {
			return problem(http.StatusUnprocessableEntity, CodeTemplateUnknown, "there is no template %q", *b.Template)
		}
	}
	if err := admitDisks(b); err != nil {
		return err
	}
	if _, err := s.hosts.allowed(b); err != nil {
		return err
	}
	if err := s.core.st.admitAttachments(b); err != nil {
		return err
	}
	if err := s.core.admitGroups(b.SecurityGroups); err != nil {
		return err
	}
	if quota := s.core.behave.Quota; quota > 0 && len(s.core.st.servers) >= quota {
		return problem(http.StatusForbidden, CodeQuotaExceeded, "the quota of %d servers is used up", quota)
	}
	return nil
}

// views shows servers as the profile and the capabilities do.
type views struct {
	core *core
}

// represent returns the server as the profile and the capabilities show it.
func (v *views) represent(r *record, now time.Time) any {
	core := v.core.profile == Core
	if core {
		return v.core.quirks.Load().shapeServer(coreServer{ID: r.ID, Name: r.Name}, r, core)
	}
	s := r.Server
	if v.core.has(BulkStatus) {
		v.measure(r, &s, now)
	}
	if !v.core.has(Labels) {
		s.Labels = nil
	}
	if !v.core.has(Power) {
		s.PowerState = ""
	}
	if !v.core.has(Folders) {
		s.Folder = ""
	}
	if !v.core.has(Networks) {
		s.NetworkID, s.Interfaces = "", withoutNetworks(s.Interfaces)
	}
	if !v.core.has(Hosts) {
		s.Host = ""
	}
	if !v.core.has(Zones) {
		s.Zone = ""
	}
	if !v.core.has(WithAntiAffinity) {
		s.AntiAffinity = nil
	}
	if !v.core.has(Addresses) || s.State == StateBuilding {
		s.Interfaces = nil
	}
	s.Disks, s.RootDisk = shownDisks(v.core, s.Disks, s.RootDisk)
	if !v.core.has(WithSecurityGroups) {
		s.SecurityGroups = nil
	}
	if !v.core.has(AllowedAddresses) {
		s.AllowedAddresses = nil
	}
	if !v.core.has(PublicAddresses) {
		s.PublicAddress = nil
	}
	s.GuestHeartbeat = v.heartbeatOf(r)
	return v.core.quirks.Load().shapeServer(s, r, core)
}

// heartbeatOf returns what a server shows as its guestHeartbeat.
func (v *views) heartbeatOf(r *record) string {
	switch {
	case !v.core.has(GuestHeartbeat) || r.State != StateActive:
		return ""
	case r.GuestHeartbeat != "":
		return r.GuestHeartbeat
	}
	return HeartbeatOK
}

// coreMHz is the clock rate of every core.
const coreMHz = 2600

// measure sets the utilization of a server, which is 0 unless it is ACTIVE.
func (v *views) measure(r *record, s *Server, now time.Time) {
	var percent, memory int
	if r.State == StateActive {
		percent = (*v.core.model.Load())(r.ID, now)
		memory = r.Memory * 1024 * (30 + percent/2) / 100
	}
	if r.Override != nil {
		percent = *r.Override
	}
	mhz := r.CPU * coreMHz * percent / 100
	s.CPUUtilization, s.CPUUsageMHz, s.MemoryUsageMB = &percent, &mhz, &memory
}

func (v *views) full(r *record, now time.Time) Server {
	s := r.Server
	s.Labels = maps.Clone(s.Labels)
	v.measure(r, &s, now)
	return s
}
