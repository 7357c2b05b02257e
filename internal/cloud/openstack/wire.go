package openstack

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// server is a server in the JSON of the compute service.
type server struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Status    string            `json:"status"`
	Task      string            `json:"OS-EXT-STS:task_state"`
	Power     int               `json:"OS-EXT-STS:power_state"`
	Progress  float64           `json:"progress"`
	Metadata  map[string]string `json:"metadata"`
	CreatedAt stamp             `json:"created"`
	UpdatedAt stamp             `json:"updated"`
	Flavor    struct {
		Name      string `json:"original_name"`
		VCPUs     int    `json:"vcpus"`
		MemoryMiB int    `json:"ram"`
		Disk      int    `json:"disk"`
	} `json:"flavor"`
	Image     imageRef  `json:"image"`
	Addresses addresses `json:"addresses"`
	Zone      string    `json:"OS-EXT-AZ:availability_zone"`
	// Groups is missing while the server has no port.
	Groups securityGroups `json:"security_groups"`
	// Volumes are those that the server has.
	Volumes []attachedVolume `json:"os-extended-volumes:volumes_attached"`
	// disks and root, the size in MiB of the volume that the server boots from, are set by identify.
	disks cloud.Disks
	root  int
	// assigned is a floating address that the service does not show yet; may be empty.
	assigned string
	// Fault is as the service reports it until complete is called.
	Fault struct {
		Message string `json:"message"`
	} `json:"fault"`
}

// imageRef is the image of a server. Its name is not among what the compute service shows.
type imageRef struct{ id, name string }

// UnmarshalJSON reads a reference to an image: an object, or an empty text for a server that
// boots from a volume. It must not make a page unreadable.
func (i *imageRef) UnmarshalJSON(data []byte) error {
	var ref struct {
		ID string `json:"id"`
	}
	*i = imageRef{}
	if json.Unmarshal(data, &ref) == nil && isID(ref.ID) {
		i.id = ref.ID
	}
	return nil
}

// stamp is a time, zero if it cannot be read: a time must not make a page unreadable.
type stamp struct{ time.Time }

// UnmarshalJSON reads the formats of compute, which has a zone, and of network.
func (s *stamp) UnmarshalJSON(data []byte) error {
	text := strings.Trim(string(data), `"`)
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05"} {
		if parsed, err := time.Parse(layout, text); err == nil {
			s.Time = parsed.UTC()
			return nil
		}
	}
	s.Time = time.Time{}
	return nil
}

// check returns why a server cannot be used; nil if it can. In a listing, the service
// leaves out the names of servers of a cell that does not answer.
func (s *server) check() error {
	switch {
	case !isID(s.ID):
		return errors.New("a server without an id")
	case s.Name == "" && s.Status == "UNKNOWN":
		return fmt.Errorf("server %s without a name: its cell of the compute service does not answer", s.ID)
	case s.Name == "":
		return fmt.Errorf("server %s without a name", s.ID)
	}
	return nil
}

// states are what the statuses of servers mean. Those that are missing are unknown.
var states = map[string]cloud.State{
	statusBuild: cloud.StateBuilding, "REBUILD": cloud.StateBuilding, statusResize: cloud.StateBuilding, "REVERT_RESIZE": cloud.StateBuilding,
	"ACTIVE": cloud.StateActive, "REBOOT": cloud.StateActive, "HARD_REBOOT": cloud.StateActive, "PASSWORD": cloud.StateActive,
	"MIGRATING": cloud.StateActive, "SHUTOFF": cloud.StateStopped, statusSuspended: cloud.StateSuspended, "ERROR": cloud.StateError,
}

// state returns the state of a server. A resize that waits for its confirmation counts
// as over only if this client began it: then the size differs until it is confirmed.
func (s *server) state() cloud.State {
	switch {
	case s.deleting(), s.kept():
		return cloud.StateDeleting
	case s.Status == statusVerify && s.resizedHere() && s.Power == powerShutdown:
		return cloud.StateStopped
	case s.Status == statusVerify && s.resizedHere():
		return cloud.StateActive
	}
	if state, known := states[s.Status]; known {
		return state
	}
	return cloud.StateUnknown
}

// The statuses and tasks that decide more than a state.
const (
	statusBuild     = "BUILD"
	statusActive    = "ACTIVE"
	statusStopped   = "SHUTOFF"
	statusSuspended = "SUSPENDED"
	statusVerify    = "VERIFY_RESIZE"
	statusResize    = "RESIZE"
	taskDeleting    = "deleting"
	taskSoftly      = "soft-deleting"
	powerShutdown   = 4

	// These are listed only among changes.
	statusDeleted     = "DELETED"
	statusSoftDeleted = "SOFT_DELETED"
)

// kept reports whether the server is deleted, and the cloud keeps it so that it can be restored, or as a record.
func (s *server) kept() bool { return s.Status == statusDeleted || s.Status == statusSoftDeleted }

func (s *server) deleting() bool { return s.Task == taskDeleting || s.Task == taskSoftly }

// resizedHere reports whether the flavor is that of a resize which this client began.
func (s *server) resizedHere() bool {
	_, flavor, ok := parseSize(s.Metadata[resizeKey])
	return ok && flavor == s.Flavor.Name
}

// size returns the size that was asked for, if the flavor is the one that was chosen for
// it, and otherwise that of the flavor. Until a resize is confirmed it is the one before.
func (s *server) size() size {
	actual := size{cpu: s.Flavor.VCPUs, mib: s.Flavor.MemoryMiB}
	key := sizeKey
	if (s.Status == statusVerify || s.Status == statusResize) && s.resizedHere() {
		key = resizeKey
	}
	asked, flavor, ok := parseSize(s.Metadata[key])
	if !ok || flavor != s.Flavor.Name {
		return actual
	}
	return asked.or(actual)
}

// domain returns the server as the operator knows it.
func (s *server) domain() cloud.Server {
	size, state := s.size(), s.state()
	fault := ""
	switch state {
	case cloud.StateError:
		fault = s.Fault.Message
	case cloud.StateUnknown:
		fault = transport.Truncate(transport.Printable(s.Status), cloud.MaxStateWord)
	default:
	}
	return cloud.Server{
		ID: s.ID, Name: s.Name, Labels: labelsOf(s.Metadata), State: state, Fault: fault, CPU: size.cpu, MemoryMiB: size.mib,
		Flavor: s.flavor(), Image: cloud.Image{Name: s.Image.name, ID: s.imageID()}, NetworkID: s.Metadata[networkKey],
		Zone: s.Zone, Disks: s.disks, RootDisk: s.rootDisk(), Interfaces: s.Addresses.interfaces(), SecurityGroups: s.securityGroups(), AllowedAddresses: s.allowedAddresses(),
		PublicAddress: cmp.Or(s.assigned, s.Addresses.floating(s.Metadata[publicKey])), CreatedAt: s.CreatedAt.Time, UpdatedAt: s.UpdatedAt.Time,
	}
}

// hasVolumesOfCreate reports whether compute made volumes with the server, which the operator asked for.
func (s *server) hasVolumesOfCreate() bool { return s.Metadata[storedKey] != "" }

// imageID returns the id of the image that the server was made from, also if it boots from a volume; empty if it is not known.
func (s *server) imageID() string {
	if recorded := s.Metadata[imageKey]; s.Image.id == "" && isID(recorded) {
		return recorded
	}
	return s.Image.id
}

// rootDisk returns the disk that the server boots from: a volume, or that of the flavor.
func (s *server) rootDisk() cloud.RootDisk {
	if s.Image.id != "" {
		return cloud.RootDisk{SizeMiB: s.Flavor.Disk * mibPerGiB}
	}
	return cloud.RootDisk{SizeMiB: s.root}
}

// securityGroups returns the groups, none while those of several ports are changed one after the other.
func (s *server) securityGroups() cloud.SecurityGroups {
	if s.Metadata[guardedKey] != "" {
		return ""
	}
	return cloud.SecurityGroups(s.Groups)
}

// allowedAddresses returns what an update has allowed the server to use beside its own addresses. Compute does not show what the
// ports allow.
func (s *server) allowedAddresses() cloud.AllowedAddresses {
	switch recorded := s.Metadata[allowedKey]; recorded {
	case "":
		return ""
	case cloud.AddressPending:
		return cloud.AddressPending
	default:
		addresses, _ := cloud.NewAllowedAddresses(strings.Split(recorded, ","))
		return addresses
	}
}

// flavor returns the name of the flavor. With a resize that this client began, it is
// cloud.FlavorPending until the resize is confirmed.
func (s *server) flavor() string {
	if (s.Status == statusVerify || s.Status == statusResize) && s.resizedHere() {
		return cloud.FlavorPending
	}
	return s.Flavor.Name
}

// progress returns how much of a build or resize is done, in percent.
func (s *server) progress() int { return int(min(max(s.Progress, 0), 99)) }

// size is the size of a server; 0 is one that does not matter.
type size struct{ cpu, mib int }

// or returns the size with what does not matter taken from another.
func (s size) or(other size) size {
	if s.cpu == 0 {
		s.cpu = other.cpu
	}
	if s.mib == 0 {
		s.mib = other.mib
	}
	return s
}

func (s size) String() string {
	switch {
	case s.cpu == 0:
		return fmt.Sprintf("%d MiB of memory", s.mib)
	case s.mib == 0:
		return fmt.Sprintf("%d CPUs", s.cpu)
	}
	return fmt.Sprintf("%d CPUs and %d MiB of memory", s.cpu, s.mib)
}

// record returns the text that keeps a size and a flavor in metadata; empty if the name
// of the flavor is too long, with which the size of the flavor counts.
func (s size) record(flavor string) string {
	text := fmt.Sprintf("%dx%d@%s", s.cpu, s.mib, flavor)
	if len([]rune(text)) > maxMetadata {
		return ""
	}
	return text
}

// parseSize reads what record returns.
func parseSize(text string) (s size, flavor string, ok bool) {
	numbers, flavor, found := strings.Cut(text, "@")
	cpu, mib, also := strings.Cut(numbers, "x")
	var errCPU, errMiB error
	s.cpu, errCPU = strconv.Atoi(cpu)
	s.mib, errMiB = strconv.Atoi(mib)
	if !found || !also || errCPU != nil || errMiB != nil || s.cpu < 0 || s.mib < 0 || flavor == "" {
		return size{}, "", false
	}
	return s, flavor, true
}
