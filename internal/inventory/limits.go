package inventory

import (
	"fmt"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// maxServers bounds the servers of one listing.
	maxServers = 100_000
	// maxBytes bounds what the operator keeps of one listing: the strings, each that
	// servers share once, and labelCost for each label.
	maxBytes = 64 << 20
	// labelCost is about the memory of a label beside its strings, in bytes.
	labelCost = 32
)

// intake takes the servers of one listing into a snapshot, as far as the limits
// allow. It holds one copy of each string that many servers share: with tens of
// thousands of servers, the keys of their labels alone take megabytes.
type intake struct {
	snap   *Snapshot
	shared map[string]string
	bytes  int
}

func newIntake(snap *Snapshot) *intake {
	return &intake{snap: snap, shared: map[string]string{}}
}

// add adds servers to the snapshot. It fails as Unreadable when the listing is
// larger than the operator reads.
func (in *intake) add(servers []cloud.Server) error {
	for i := range servers {
		in.bytes += len(servers[i].ID) + len(servers[i].Name) + len(servers[i].NetworkID) + labelCost*len(servers[i].Labels)
		if in.bytes <= maxBytes { // before the labels are copied
			in.snap.servers[servers[i].ID] = in.server(servers[i])
		}
		if err := in.exceeded(); err != nil {
			return err
		}
	}
	return nil
}

// addMarker counts a page marker, which is kept until the listing ends.
func (in *intake) addMarker(marker string) error {
	in.bytes += len(marker)
	return in.exceeded()
}

func (in *intake) exceeded() error {
	tooLarge := func(what string) error {
		return &cloud.Error{Kind: cloud.Unreadable, Op: "list servers", Detail: fmt.Sprintf(
			"the cloud lists more than %s, which is more than the operator reads: use credentials that see only the servers of this cluster", what)}
	}
	switch {
	case len(in.snap.servers) > maxServers:
		return tooLarge(fmt.Sprintf("%d servers", maxServers))
	case in.bytes > maxBytes:
		return tooLarge(fmt.Sprintf("%d MiB of names and labels", maxBytes>>20))
	}
	return nil
}

func (in *intake) string(s string) string {
	if shared, ok := in.shared[s]; ok {
		return shared
	}
	in.shared[s] = s
	in.bytes += len(s)
	return s
}

// server returns s with one copy of the strings that servers share.
func (in *intake) server(s cloud.Server) cloud.Server {
	s.Host, s.Template, s.Folder = in.string(s.Host), in.string(s.Template), in.string(s.Folder)
	if len(s.Labels) == 0 {
		s.Labels = nil
		return s
	}
	labels := make(map[string]string, len(s.Labels))
	for key, value := range s.Labels {
		if key != UIDLabel && key != NameLabel {
			value = in.string(value)
		} else {
			in.bytes += len(value)
		}
		labels[in.string(key)] = value
	}
	s.Labels = labels
	return s
}
