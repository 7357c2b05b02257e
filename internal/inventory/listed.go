package inventory

import (
	"math"
	"time"
	"unique"

	"github.com/privatecloud/operator/internal/cloud"
)

// listed is a server as a snapshot holds it: what is read from a listing, in a part
// of the memory that a cloud.Server takes.
type listed struct {
	id, name, host, folder string
	interfaces             cloud.Interfaces
	state                  cloud.State
	// disks is one pointer, since servers that are alike have the same; zero without any.
	disks unique.Handle[cloud.Disks]
	// zone is one pointer, since many servers have the same; zero without one.
	zone unique.Handle[string]
	// public is the public address; zero without one.
	public unique.Handle[string]
	// traits is one pointer, since many servers have the same; zero if the cloud shows none of them.
	traits unique.Handle[traits]
	// owner has the owner labels; nil without any.
	owner     *owner
	createdAt time.Time
	// memory is in MiB.
	memory int
	cpu    int32
	// cpuUsage and memoryUsage are what the server uses of its host.
	cpuUsage, memoryUsage int32
	// utilization is that of its cores in percent, unknown if the cloud did not say.
	utilization int16
	heartbeat   cloud.Heartbeat
	// reported: a watch has reported the server, and no listing has shown it.
	reported bool
}

const unknown = -1

// traits are what many servers have in common.
type traits struct {
	image         cloud.Image
	flavor, fault string
	groups        cloud.SecurityGroups
	allowed       cloud.AllowedAddresses
	root          cloud.RootDisk
	// tags are as tagsOf returns them.
	tags string
}

// owner is what the owner labels of a server say, each empty if it is missing.
type owner struct{ uid, cluster, namespace, name string }

// newListed returns what is kept of a server that was listed.
func newListed(s *cloud.Server) *listed {
	l, by := read(s)
	return l.with(by)
}

// read returns what is kept of a server, without an owner, and its owner labels.
func read(s *cloud.Server) (listed, owner) {
	l := listed{
		id: s.ID, name: s.Name, host: s.Host, folder: s.Folder, interfaces: s.Interfaces, state: s.State, createdAt: s.CreatedAt,
		cpu: bounded(s.CPU), memory: s.MemoryMiB,
		cpuUsage: bounded(s.CPUUsageMHz), memoryUsage: bounded(s.MemoryUsageMB), utilization: unknown, heartbeat: s.Heartbeat,
	}
	if s.Disks != "" {
		l.disks = unique.Make(s.Disks)
	}
	if s.Zone != "" {
		l.zone = unique.Make(s.Zone)
	}
	if s.PublicAddress != "" {
		l.public = unique.Make(s.PublicAddress)
	}
	if t := (traits{image: s.Image, flavor: s.Flavor, fault: s.Fault, groups: s.SecurityGroups, allowed: s.AllowedAddresses, root: s.RootDisk, tags: tagsOf(s.Labels)}); t != (traits{}) {
		l.traits = unique.Make(t)
	}
	if s.CPUUtilization != nil {
		l.utilization = int16(*s.CPUUtilization) //nolint:gosec // in percent
	}
	return l, owner{uid: s.Labels[UIDLabel], cluster: s.Labels[ClusterLabel], namespace: s.Labels[NamespaceLabel], name: s.Labels[NameLabel]}
}

// with returns a copy that has these owner labels.
func (l listed) with(by owner) *listed {
	if by != (owner{}) {
		l.owner = new(by)
	}
	return &l
}

// is reports whether the server is what read returned: all that is kept of it.
func (l *listed) is(read listed, by owner) bool {
	read.owner = l.owner
	return *l == read && l.ownedBy() == by
}

// bounded returns n as far as an int32 holds it.
func bounded(n int) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }

// ownedBy returns the owner labels.
func (l *listed) ownedBy() owner {
	if l.owner == nil {
		return owner{}
	}
	return *l.owner
}

// shared returns the value of a handle, the zero value for none.
func shared[T comparable](handle unique.Handle[T]) (value T) {
	if handle != (unique.Handle[T]{}) {
		value = handle.Value()
	}
	return value
}

// server returns the server. Fields that are not kept are zero.
func (l *listed) server() cloud.Server {
	common := shared(l.traits)
	s := cloud.Server{
		ID: l.id, Name: l.name, Host: l.host, Folder: l.folder, Interfaces: l.interfaces, State: l.state, Fault: common.fault, CreatedAt: l.createdAt, Disks: shared(l.disks), Zone: shared(l.zone), Image: common.image, Flavor: common.flavor,
		SecurityGroups: common.groups, AllowedAddresses: common.allowed, PublicAddress: shared(l.public), RootDisk: common.root,
		CPU: int(l.cpu), MemoryMiB: l.memory,
		CPUUsageMHz: int(l.cpuUsage), MemoryUsageMB: int(l.memoryUsage), Labels: withTags(l.ownedBy().labels(), common.tags), Heartbeat: l.heartbeat,
	}
	if l.utilization != unknown {
		s.CPUUtilization = new(int(l.utilization))
	}
	return s
}

func (o owner) labels() map[string]string {
	var labels map[string]string
	for _, label := range [...]struct{ key, value string }{
		{UIDLabel, o.uid}, {ClusterLabel, o.cluster}, {NamespaceLabel, o.namespace}, {NameLabel, o.name},
	} {
		if label.value == "" {
			continue
		}
		if labels == nil {
			labels = make(map[string]string, 4)
		}
		labels[label.key] = label.value
	}
	return labels
}
