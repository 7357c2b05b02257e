package cloud

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// State is the phase of a server's life, as the cloud names it.
type State string

const (
	StateBuilding State = "BUILDING"
	StateActive   State = "ACTIVE"
	StateStopped  State = "STOPPED"
	// StateSuspended is that the server does not run and the cloud keeps its memory.
	StateSuspended State = "SUSPENDED"
	StateDeleting  State = "DELETING"
	StateError     State = "ERROR"
	// StateUnknown is any state that this operator does not know. Such a server is
	// observed, and changed only by its deletion.
	StateUnknown State = "UNKNOWN"
)

// MaxStateWord bounds a cloud's word for a state that is not known, in Server.Fault, in runes.
const MaxStateWord = 32

// Transitional reports whether the cloud is expected to leave this state by itself.
func (s State) Transitional() bool { return s == StateBuilding || s == StateDeleting }

// PowerState is whether a server is meant to run.
type PowerState string

const (
	// PowerOn starts a server that is STOPPED, and resumes one that is SUSPENDED.
	PowerOn PowerState = "On"
	// PowerOff stops a server that is ACTIVE. The call fails with Busy if it is SUSPENDED,
	// since its memory would be lost.
	PowerOff PowerState = "Off"
	// PowerSuspended suspends a server that is ACTIVE: it is SUSPENDED then, and PowerOn
	// resumes it with the memory that it had. The call fails with Busy if it is STOPPED.
	// No server is created so.
	PowerSuspended PowerState = "Suspended"
)

// Server is a virtual machine as the cloud reports it. Fields that a cloud
// does not report are zero; a core cloud reports ID and Name alone, and its
// servers count as ACTIVE.
type Server struct {
	// ID is chosen by the cloud and never changes.
	ID   string
	Name string
	// Labels are the owner labels and whatever else the server was created with.
	Labels map[string]string
	State  State
	// Fault is why the server is in StateError, for users, of bounded length. It has nothing of
	// the platform, and nothing that differs between tries. In StateUnknown it is the cloud's word
	// for the state. Empty where the cloud does not say.
	Fault string
	// CPU is the number of cores.
	CPU int
	// MemoryMiB is the memory in MiB. Clouds have sizes that are no whole GiB.
	MemoryMiB int
	// Flavor is the name of the size, where sizes have names, or FlavorPending.
	Flavor string
	// Image is what the server was made from, as the cloud shows it.
	Image  Image
	Folder string
	// NetworkID is the network of the first interface that a create attached to one.
	NetworkID string
	Host      string
	Zone      string
	// Interfaces have the addresses of the server, as the cloud or the guest reports them.
	Interfaces Interfaces
	// SecurityGroups are those of all interfaces.
	SecurityGroups SecurityGroups
	// PublicAddress is the one that a SetPublicAddress has given the server. It is AddressPending
	// while the cloud does not show it, and empty without one, also if the server has an address that somebody else gave it.
	PublicAddress string
	// AllowedAddresses are those that a SetAllowedAddresses has let the server use beside its own. They are AddressPending
	// while they are changed.
	AllowedAddresses AllowedAddresses
	// Disks are those that have a name. Those of the template have none.
	Disks Disks
	// RootDisk is the one that the server boots from, as far as the cloud shows it.
	RootDisk RootDisk
	// Heartbeat is that of the guest while the server runs.
	Heartbeat Heartbeat
	// CPUUtilization is the mean use of the server's cores in percent, 0-100;
	// nil where the cloud did not say.
	CPUUtilization *int
	// CPUUsageMHz and MemoryUsageMB are what the server uses of its host; 0
	// where the cloud did not say.
	CPUUsageMHz   int
	MemoryUsageMB int
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// AlikeNames reports whether two names differ only in case, in their Unicode normal form, and in spaces around
// them: a cloud may normalize names.
func AlikeNames(a, b string) bool { return NormalName(a) == NormalName(b) }

// shortestCut is the shortest length to which a cloud cuts names: that of NetBIOS.
const shortestCut = 15

// ChosenFrom returns a function that reports whether a cloud may have made a name of the name that a create asked for: it
// has added a domain or a prefix, cut it to 15 characters or more, or replaced characters that are neither letters nor digits.
func ChosenFrom(asked string) func(name string) bool {
	asked = NormalName(asked)
	qualified, plain := asked+".", plainName(asked)
	return func(name string) bool {
		name = NormalName(name)
		switch {
		case name == asked:
			return false
		case strings.HasPrefix(name, qualified), plain != "" && plainName(name) == plain:
			return true
		case strings.HasSuffix(name, asked):
			return strings.ContainsAny(name[len(name)-len(asked)-1:len(name)-len(asked)], "-_./")
		}
		return strings.HasPrefix(asked, name) && utf8.RuneCountInString(name) >= shortestCut
	}
}

// mostCutOfHash is how many characters of the hash at the end of a name of names.Owned a cloud may cut off: half of it
// proves the owner.
const mostCutOfHash = 6

// anotherHash matches what follows a name of names.Owned in a longer name of names.Owned.
var anotherHash = regexp.MustCompile(`-[0-9a-f]{12}(\.|$)|-[0-9a-f]{6,11}$`)

// ProvesOwner reports whether a name is owned, a name of names.Owned, as a cloud may give it: in another case, with
// other characters between letters and digits, with a prefix, with at most half of the hash at the end cut off, or with a
// domain appended. What the name of another object can be does not count.
func ProvesOwner(name, owned string) bool {
	name, owned = NormalName(name), NormalName(owned)
	domain, appended := strings.CutPrefix(name, owned)
	prefix, prefixed := strings.CutSuffix(name, owned)
	switch {
	case appended:
		return domain == "" || domain[0] == '.' && !anotherHash.MatchString(domain)
	case prefixed:
		return strings.ContainsAny(prefix[len(prefix)-1:], "-_./")
	case strings.HasPrefix(owned, name):
		return len(name) >= len(owned)-mostCutOfHash
	}
	return plainName(name) == plainName(owned)
}

// OfOwner returns those of found whose names prove the owner of owned; see ProvesOwner. A cloud gives names in one form:
// these have owned itself if one of them has, else the name of the first.
func OfOwner[R any](found []R, owned string, name func(R) string) []R {
	proved := slices.DeleteFunc(slices.Clone(found), func(r R) bool { return !ProvesOwner(name(r), owned) })
	if len(proved) == 0 {
		return nil
	}
	form := name(proved[0])
	if slices.ContainsFunc(proved, func(r R) bool { return AlikeNames(name(r), owned) }) {
		form = owned
	}
	return slices.DeleteFunc(proved, func(r R) bool { return !AlikeNames(name(r), form) })
}

// MadeFrom reports whether a cloud may have made a name of owned, a name of names.Owned, at a create. It proves no owner: it
// is for the answer to the create, and for the resource with the recorded id.
func MadeFrom(name, owned string) bool {
	return ProvesOwner(name, owned) || ChosenFrom(owned)(name) || strings.HasPrefix(NormalName(name), NormalName(owned))
}

// plainName returns the letters and digits of a name, empty if there are none.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, name)
}

// NormalName returns the form that names which are alike have in common.
func NormalName(name string) string {
	return strings.ToLower(strings.TrimSpace(norm.NFC.String(name)))
}

// Clone returns a copy that shares nothing with s.
func (s Server) Clone() Server {
	s.Labels = maps.Clone(s.Labels)
	if s.CPUUtilization != nil {
		v := *s.CPUUtilization
		s.CPUUtilization = &v
	}
	return s
}

// Status is the load of a server at the moment.
type Status struct {
	// CPUUtilization is in percent, 0-100; nil where the cloud does not say.
	CPUUtilization *int
}

// UserData is what a server reads at its first boot, such as a cloud-config. It may
// hold secrets: however it is printed, only its size shows.
type UserData []byte

// Format covers every verb of fmt.
func (u UserData) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "%d bytes", len(u)) }

// UserDataTooLarge returns the error of a create whose user data has size bytes in the
// form in which the cloud takes it, of which it takes most.
func UserDataTooLarge(op string, size, most int) *Error {
	return &Error{Kind: Rejected, Op: op, Detail: fmt.Sprintf(
		"the user data has %d bytes as it is sent, and this cloud takes %d: make it smaller, or have it load the rest from elsewhere", size, most)}
}

// CreateServer describes a new server. Name is required. Each other field needs
// the capability that is named beside it, and must be zero without it.
type CreateServer struct {
	Name       string
	CPU        int               // Sizing
	MemoryMiB  int               // Sizing
	Flavor     string            `json:",omitempty"` // Flavors; instead of CPU and MemoryMiB
	Template   string            // Sizing
	Folder     string            // Folders
	NetworkID  string            // Networks or NetworkAttach
	PowerState PowerState        // Power, and PowerAtCreate for Off; On or Off, empty means On
	Labels     map[string]string // Labels
	Disks      Disks             `json:",omitempty"` // WithDisks, and DiskTypes for those with types
	Zone       string            `json:",omitempty"` // Zones

	// RootDisk is the disk that the server boots from. The create is Rejected if it would be smaller than that of the
	// template, or fails later, as an operation does.
	RootDisk RootDisk `json:",omitzero"` // WithRootDisk, and DiskTypes for its type

	// SecurityGroups are those of all interfaces; empty leaves them to the cloud. The create is Rejected if one does
	// not exist.
	SecurityGroups SecurityGroups `json:",omitempty"` // WithSecurityGroups

	// Interfaces are the network interfaces of the server, in their order, instead of NetworkID:
	// several need the capability WithInterfaces, and addresses StaticAddresses, both beside
	// Networks or NetworkAttach. The create is Rejected if an address is in use. If it is outside
	// its network, the create is Rejected too, or fails later, as an operation does.
	Interfaces []Attachment `json:",omitempty"`

	// AntiAffinity keeps the server on another host than those of its group. The create fails
	// with NoHost if that is required and not possible, or later, as an operation does.
	AntiAffinity AntiAffinity `json:",omitzero"` // WithAntiAffinity

	// UserData is what the server reads at its first boot; empty for none. Needs the
	// capability WithUserData. It is no part of the body by which creates with one key are
	// compared: the Secret that it comes from may have changed between two tries.
	UserData UserData `json:"-"`

	// IdempotencyKey makes the call safe to send again: the same key and body
	// yield the same server. Ignored by clouds without Idempotency.
	IdempotencyKey string

	// First: no create with this key was sent before. It is no part of the body. A client
	// may omit the search for what an earlier create made.
	First bool `json:"-"`
}

// ListServers bounds and filters a listing.
type ListServers struct {
	// Limit is the number of servers a page, 1-1000; 0 leaves it to the cloud.
	Limit int
	// Marker continues after the page that returned it; empty starts at the first page.
	Marker string
	// Labels keeps the servers that carry all of these. Needs the capability Labels.
	Labels map[string]string
}

// ServerPage is one page of a listing.
type ServerPage struct {
	Servers []Server
	// Next is the marker of the following page, empty on the last.
	Next string
}
