package mockcloud

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// Profile is how much of the REST API the cloud has.
type Profile string

const (
	// Core has exactly six calls, and servers with an id and a name.
	Core Profile = "core"
	// Extended answers GET /capabilities and has whatever that lists.
	Extended Profile = "extended"
)

// Capability names something that an extended cloud can do. UniqueNames alone
// counts for the core profile too.
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
)

// AllCapabilities lists every capability, in the order of GET /capabilities.
var AllCapabilities = []Capability{
	Idempotency, Labels, UniqueNames, BulkStatus, Async, Power,
	Resize, Folders, Networks, Hosts, Events, Sessions,
}

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

// Behaviour is what a running cloud can be made to do differently.
type Behaviour struct {
	// BuildTime is how long a new server stays BUILDING; 0 answers 201 at once.
	// It counts only with the capability async.
	BuildTime Duration `json:"buildTime,omitempty"`
	// DeleteTime is how long a server stays DELETING; 0 answers 204 at once.
	// It counts only with the capability async.
	DeleteTime Duration `json:"deleteTime,omitempty"`
	// Latency is waited out at the start of every call.
	Latency Duration `json:"latency,omitempty"`
	// Utilisation is the model of cpuUtilization: fixed:N (percent, default
	// fixed:50), sine[:PERIOD] (default 10m) or walk[:SEED].
	Utilisation string `json:"utilisation,omitempty"`
	// ProhibitedNames are names or globs (* and ?) that may not be used. Nil
	// stands for "forbidden" alone; an empty list prohibits nothing.
	ProhibitedNames []string `json:"prohibitedNames"`
	// ProhibitedTemplates are templates or globs that answer 422 templateProhibited.
	ProhibitedTemplates []string `json:"prohibitedTemplates,omitempty"`
	// Templates, where not empty, are the only ones known; any other answers
	// 422 templateUnknown.
	Templates []string `json:"templates,omitempty"`
	// Quota is the most servers that may exist at once; 0 is no limit.
	Quota int `json:"quota,omitempty"`
}

// Options says how a cloud starts. The zero value is an extended cloud with
// every capability, in memory, open to anybody.
type Options struct {
	// Profile defaults to Extended.
	Profile Profile `json:"profile,omitempty"`
	// Capabilities switches single ones off or on; what is absent is on.
	Capabilities map[Capability]bool `json:"capabilities,omitempty"`
	Behaviour

	// Hosts default to four, two of them with a GPU.
	Hosts []Host `json:"hosts,omitempty"`
	// SeedServers is the number of strangers' servers in a store that is new.
	SeedServers int `json:"seedServers,omitempty"`

	// Token, where set, is a bearer token that never expires.
	Token string `json:"token,omitempty"`
	// Username and Password, where set, open sessions; calls then need a token.
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	// SessionTTL is how long a session lasts, 1h if zero.
	SessionTTL Duration `json:"sessionTTL,omitempty"`
	// KeyRetention is how long an idempotency key outlives its server, 24h if
	// zero.
	KeyRetention Duration `json:"keyRetention,omitempty"`

	// Faults are in force from the start.
	Faults []Fault `json:"faults,omitempty"`
	// CallLog is how many calls GET /calls remembers, 1000 if zero.
	CallLog int `json:"callLog,omitempty"`

	// DataFile is a bbolt file that survives restarts; memory if empty. Store,
	// where set, is used instead of either.
	DataFile string `json:"dataFile,omitempty"`
	Store    Store  `json:"-"`
	// Version is the version of the binary, as the metrics report it; "dev" if
	// empty.
	Version string `json:"-"`
	// Clock is the system's if nil.
	Clock Clock `json:"-"`
	// Log is silent if nil.
	Log *slog.Logger `json:"-"`
}

func (o *Options) setDefaults() {
	if o.Profile == "" {
		o.Profile = Extended
	}
	if o.ProhibitedNames == nil {
		o.ProhibitedNames = []string{"forbidden"}
	}
	if o.Utilisation == "" {
		o.Utilisation = "fixed:50"
	}
	if o.Hosts == nil {
		o.Hosts = defaultHosts()
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
	return o.Behaviour.validate()
}

func (b *Behaviour) validate() error {
	if b.BuildTime < 0 || b.DeleteTime < 0 || b.Latency < 0 {
		return fmt.Errorf("buildTime, deleteTime and latency must not be negative")
	}
	if b.Quota < 0 {
		return fmt.Errorf("quota must not be negative")
	}
	_, err := parseUtilisation(b.Utilisation)
	return err
}

// has tells whether a capability is in force. A core cloud has none of them
// but unique names.
func (o *Options) has(name Capability) bool {
	if o.Profile == Core && name != UniqueNames {
		return false
	}
	on, set := o.Capabilities[name]
	return on || !set
}
