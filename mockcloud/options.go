package mockcloud

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// Profile is the part of the REST API that a cloud has.
type Profile string

const (
	// Core has exactly six calls, and servers with an id and a name.
	Core Profile = "core"
	// Extended has GET /capabilities and every call and field that it lists.
	Extended Profile = "extended"
)

// Capability is an optional feature of a cloud with the extended profile. The core
// profile has UniqueNames only.
type Capability string

const (
	Idempotency Capability = "idempotency"
	Labels      Capability = "labels"
	UniqueNames Capability = "uniqueNames"
	BulkStatus  Capability = "bulkStatus"
	Async       Capability = "async"
	Power       Capability = "power"
	Resize      Capability = "resize"
	Folders     Capability = "folders"
	Networks    Capability = "networks"
	Hosts       Capability = "hosts"
	Events      Capability = "events"
	Sessions    Capability = "sessions"
	Operations  Capability = "operations"
	FolderNames Capability = "folderNames"
	UserData    Capability = "userData"
	Addresses   Capability = "addresses"
	Snapshots   Capability = "snapshots"
	Revert      Capability = "revert"
	// SoftPowerOff is that the guest can be asked to shut down.
	SoftPowerOff Capability = "softPowerOff"
	Disks        Capability = "disks"
	// WithRootDisk is that the size of the root disk of a server can be chosen, and grow.
	WithRootDisk Capability = "rootDisk"
	// WithDiskTypes is that the types of new disks can be chosen: see DiskTypes.
	WithDiskTypes Capability = "diskTypes"
	// KeepDisks is that disks can be kept when their server is deleted. It needs Disks.
	KeepDisks Capability = "keepDisks"
	Zones     Capability = "zones"
	// WithAntiAffinity is that servers can be kept on different hosts.
	WithAntiAffinity Capability = "antiAffinity"
	// GuestHeartbeat is that servers show whether an agent in their guest runs.
	GuestHeartbeat Capability = "guestHeartbeat"
	// Suspend is that servers can be suspended.
	Suspend Capability = "suspend"
	// Interfaces is that servers can have several network interfaces.
	Interfaces Capability = "interfaces"
	// StaticAddresses is that the addresses of new servers can be chosen.
	StaticAddresses Capability = "staticAddresses"
	// WithSecurityGroups is that servers have security groups.
	WithSecurityGroups Capability = "securityGroups"
	// PublicAddresses is that servers can be given addresses of an external network.
	PublicAddresses Capability = "publicAddresses"
	// AllowedAddresses is that servers can be allowed to use addresses beside their own.
	AllowedAddresses Capability = "allowedAddresses"
	// NetworkDNS is that networks have DNS servers.
	NetworkDNS Capability = "networkDNS"
	// Routers is that networks can have a router to an external network.
	Routers Capability = "routers"
	// DualStack is that networks can have an IPv6 range.
	DualStack Capability = "dualStack"
	// Console is that what the console of a server printed can be read.
	Console Capability = "console"
)

// AllCapabilities lists every capability, in the order of GET /capabilities.
var AllCapabilities = []Capability{
	Idempotency, Labels, UniqueNames, BulkStatus, Async, Power,
	Resize, Folders, Networks, Hosts, Events, Sessions, Operations, FolderNames, UserData, Addresses, Snapshots, Revert, SoftPowerOff, Disks, Zones, WithAntiAffinity, GuestHeartbeat, Suspend, Interfaces, StaticAddresses,
	WithSecurityGroups, PublicAddresses, AllowedAddresses, NetworkDNS, Routers, DualStack, WithRootDisk, WithDiskTypes, KeepDisks, Console,
}

// Default reports whether a capability is on in the extended profile unless the
// options say otherwise. Few clouds have the others.
func (c Capability) Default() bool { return c != Operations && c != FolderNames && c != Events }

// Duration is a time.Duration that JSON holds as a string such as "1.5s".
type Duration time.Duration

// MarshalJSON writes the duration as a string.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String())
}

// UnmarshalJSON reads a string that time.ParseDuration understands.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("a duration is a string such as \"1.5s\": %w", err)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("parsing duration: %w", err)
	}
	*d = Duration(parsed)
	return nil
}

// Behaviour has the options that can be changed while a cloud runs.
type Behaviour struct {
	// BuildTime is how long a new server stays BUILDING; with 0, a create returns
	// 201. It needs the capability async.
	BuildTime Duration `json:"buildTime,omitempty"`
	// DeleteTime is how long a server stays DELETING; with 0, a delete returns 204.
	// It needs the capability async.
	DeleteTime Duration `json:"deleteTime,omitempty"`
	// OperationTime is how long a create, change or deletion of a server takes that is
	// answered with an operation; with 0, none is. It needs the capability operations. A
	// server that is created so is shown once the operation is done.
	OperationTime Duration `json:"operationTime,omitempty"`
	// FailOperations is a name or glob: operations about servers of these names fail.
	FailOperations string `json:"failOperations,omitempty"`
	// ResizeStopped: the size of a server can be changed only while it is stopped.
	ResizeStopped bool `json:"resizeStopped,omitempty"`
	// ShutdownTime is how long a guest takes to shut down when it is asked to.
	ShutdownTime Duration `json:"shutdownTime,omitempty"`
	// IgnoreShutdown is a name or glob: the guests of these servers do not shut down when
	// they are asked to.
	IgnoreShutdown string `json:"ignoreShutdown,omitempty"`
	// NoGuestAgent is a name or glob: the guests of these servers cannot be asked.
	NoGuestAgent string `json:"noGuestAgent,omitempty"`
	// Latency is a delay at the start of every call.
	Latency Duration `json:"latency,omitempty"`
	// Utilisation is the model of cpuUtilization: fixed:N (percent, default
	// fixed:50), sine[:PERIOD] (default 10m) or walk[:SEED].
	Utilisation string `json:"utilisation,omitempty"`
	// ProhibitedNames are names or globs (* and ?) that may not be used. Nil means
	// "forbidden"; an empty list means none.
	ProhibitedNames []string `json:"prohibitedNames"`
	// ProhibitedTemplates are templates or globs that cause 422 templateProhibited.
	ProhibitedTemplates []string `json:"prohibitedTemplates,omitempty"`
	// Templates are all templates that exist; any other causes 422 templateUnknown.
	// Empty means that every template exists.
	Templates []string `json:"templates,omitempty"`
	// SecurityGroups are all security groups that exist beside DefaultSecurityGroup; any other causes 422
	// securityGroupUnknown. Nil means "ssh" and "web".
	SecurityGroups []string `json:"securityGroups,omitempty"`
	// Quota is the maximum number of servers; 0 is no limit.
	Quota int `json:"quota,omitempty"`
}

// Options are the options of a new cloud. The zero value is a cloud with the
// extended profile, every capability that is on by
// default, a store in memory and no authentication.
type Options struct {
	// Profile defaults to Extended.
	Profile Profile `json:"profile,omitempty"`
	// Capabilities switches capabilities on or off; the others have their Default.
	Capabilities map[Capability]bool `json:"capabilities,omitempty"`
	Behaviour
	// Quirks are the ways in which the cloud differs from its document.
	Quirks Quirks `json:"quirks,omitzero"`

	// Hosts default to four hosts, two of them with a GPU.
	Hosts []Host `json:"hosts,omitempty"`
	// ExternalNetworks are the names of the networks that routers connect to, and that have public addresses; "ext-net" if nil.
	ExternalNetworks []string `json:"externalNetworks,omitempty"`
	// SeedServers is the number of servers in a new store that belong to no client.
	SeedServers int `json:"seedServers,omitempty"`

	// Token is a bearer token that does not expire; none if empty.
	Token string `json:"token,omitempty"`
	// Username and Password open sessions. If they are set, calls need a token.
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	// SessionTTL is how long a session lasts, 1h if zero.
	SessionTTL Duration `json:"sessionTTL,omitempty"`
	// KeyRetention is how long an idempotency key is kept after its server is
	// deleted, 24h if zero.
	KeyRetention Duration `json:"keyRetention,omitempty"`

	// Faults are active from the start.
	Faults []Fault `json:"faults,omitempty"`
	// CallLog is the number of calls that GET /calls returns, 1000 if zero.
	CallLog int `json:"callLog,omitempty"`

	// DataFile is the bbolt file of the store; a store in memory if empty. Store, if
	// set, is used instead.
	DataFile string `json:"dataFile,omitempty"`
	Store    Store  `json:"-"`
	// Version is the version of the binary, as the metrics report it; "dev" if
	// empty.
	Version string `json:"-"`
	// Clock is the system clock if nil.
	Clock Clock `json:"-"`
	// Log discards messages if nil.
	Log *slog.Logger `json:"-"`
}

func (o *Options) setDefaults() {
	if o.Profile == "" {
		o.Profile = Extended
	}
	if o.ProhibitedNames == nil {
		o.ProhibitedNames = []string{"forbidden"}
	}
	if o.SecurityGroups == nil {
		o.SecurityGroups = []string{"ssh", "web"}
	}
	if o.Utilisation == "" {
		o.Utilisation = "fixed:50"
	}
	if o.Hosts == nil {
		o.Hosts = defaultHosts()
	}
	if o.ExternalNetworks == nil {
		o.ExternalNetworks = []string{"ext-net"}
	}
	if o.SessionTTL == 0 {
		o.SessionTTL = Duration(time.Hour)
	}
	if o.KeyRetention == 0 {
		o.KeyRetention = Duration(24 * time.Hour)
	}
	if o.CallLog == 0 {
		o.CallLog = 1000
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

func (o *Options) validate() error {
	if o.Profile != Core && o.Profile != Extended {
		return fmt.Errorf("unknown profile %q: it is core or extended", o.Profile)
	}
	for name := range o.Capabilities {
		if !slices.Contains(AllCapabilities, name) {
			return fmt.Errorf("unknown capability %q", name)
		}
	}
	if o.SeedServers < 0 || o.CallLog < 0 {
		return fmt.Errorf("seedServers and callLog must not be negative")
	}
	if err := o.Quirks.validate(); err != nil {
		return err
	}
	return o.Behaviour.validate()
}

func (b *Behaviour) validate() error {
	if min(b.BuildTime, b.DeleteTime, b.OperationTime, b.Latency) < 0 {
		return fmt.Errorf("buildTime, deleteTime, operationTime and latency must not be negative")
	}
	if b.Quota < 0 {
		return fmt.Errorf("quota must not be negative")
	}
	_, err := parseUtilisation(b.Utilisation)
	return err
}

// has reports whether a capability is on. The core profile has UniqueNames only.
func (o *Options) has(name Capability) bool {
	if o.Profile == Core && name != UniqueNames {
		return false
	}
	on, set := o.Capabilities[name]
	return on || (!set && name.Default())
}
