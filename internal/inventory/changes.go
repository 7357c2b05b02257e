package inventory

// comparedField is a field of cloud.Server whose change Publish reports.
type comparedField struct {
	name  string
	equal func(a, b *listed) bool
}

// comparedFields and ignoredFields together name each field of
// cloud.Server exactly once. A new field belongs to comparedFields if a reconciler
// reads it from a listing. The cheapest comparisons come first.
var comparedFields = []comparedField{
	{"State", func(a, b *listed) bool { return a.state == b.state }},
	{"CPU", func(a, b *listed) bool { return a.cpu == b.cpu }},
	{"MemoryMiB", func(a, b *listed) bool { return a.memory == b.memory }},
	{"CPUUtilization", func(a, b *listed) bool { return a.utilization == b.utilization }},
	{"Heartbeat", func(a, b *listed) bool { return a.heartbeat == b.heartbeat }},
	{"ID", func(a, b *listed) bool { return a.id == b.id }},
	{"Name", func(a, b *listed) bool { return a.name == b.name }},
	{"Interfaces", func(a, b *listed) bool { return a.interfaces == b.interfaces }},
	{"Disks", func(a, b *listed) bool { return a.disks == b.disks }},
	{"PublicAddress", func(a, b *listed) bool { return a.public == b.public }},
	{"SecurityGroups", func(a, b *listed) bool { return a.traits == b.traits }},
	{"AllowedAddresses", func(a, b *listed) bool { return a.traits == b.traits }},
	{"Zone", func(a, b *listed) bool { return a.zone == b.zone }},
	{"RootDisk", func(a, b *listed) bool { return a.traits == b.traits }},
	{"Image", func(a, b *listed) bool { return a.traits == b.traits }},
	{"Fault", func(a, b *listed) bool { return a.traits == b.traits }},
	{"Flavor", func(a, b *listed) bool { return a.traits == b.traits }},
	{"Host", func(a, b *listed) bool { return a.host == b.host }},
	{"Labels", func(a, b *listed) bool { return a.ownedBy() == b.ownedBy() && a.traits == b.traits }},
}

// ignoredFields are the fields of cloud.Server whose change alone enqueues
// nothing, each with the reason. Those that no reconciler reads are not kept.
var ignoredFields = map[string]string{
	"Folder":        "VMs read it when the cloud refuses their create",
	"NetworkID":     "set by the create; no reconciler reads it from a listing",
	"CPUUsageMHz":   "changes in almost every listing; GPUInfos read it when they are reconciled",
	"MemoryUsageMB": "changes in almost every listing; GPUInfos read it when they are reconciled",
	"CreatedAt":     "orders the servers of one owner and does not change",
	"UpdatedAt":     "says that something changed; the other fields say what",
}

// equalServers reports whether a and b agree in all compared fields.
func equalServers(a, b *listed) bool {
	for i := range comparedFields {
		if !comparedFields[i].equal(a, b) {
			return false
		}
	}
	return true
}

// changed returns the IDs of the servers that appeared, vanished or differ in a
// compared field since old.
func (s *Snapshot) changed(old *Snapshot) []string {
	var ids []string
	for server := range s.ids.notIn(&old.ids) {
		if before := old.ids.get(server.id); before == nil || !equalServers(before, server) {
			ids = append(ids, server.id)
		}
	}
	for server := range old.ids.notIn(&s.ids) {
		if !s.Has(server.id) {
			ids = append(ids, server.id)
		}
	}
	return ids
}

// ownersOf returns the objects named by the labels of those servers among ids that old
// does not have, or has in another state. No object may have recorded such a server yet:
// it may be the late effect of a create, or one that an operation has just completed.
func (s *Snapshot) ownersOf(old *Snapshot, ids []string) []Ref {
	var refs []Ref
	for _, id := range ids {
		server, before := s.ids.get(id), old.ids.get(id)
		if server == nil || server.owner == nil || server.owner.name == "" || before != nil && before.state == server.state {
			continue
		}
		refs = append(refs, Ref{Namespace: server.owner.namespace, Name: server.owner.name})
	}
	return refs
}
