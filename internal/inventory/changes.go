package inventory

import (
	"maps"

	"github.com/privatecloud/operator/internal/cloud"
)

// comparedField is a field of cloud.Server whose change Publish reports.
type comparedField struct {
	name  string
	equal func(a, b *cloud.Server) bool
}

// comparedFields and ignoredFields together name each field of cloud.Server
// exactly once. A new field belongs to comparedFields if a reconciler reads it
// from a listing. The cheapest comparisons come first.
var comparedFields = []comparedField{
	{"State", func(a, b *cloud.Server) bool { return a.State == b.State }},
	{"CPU", func(a, b *cloud.Server) bool { return a.CPU == b.CPU }},
	{"MemoryGiB", func(a, b *cloud.Server) bool { return a.MemoryGiB == b.MemoryGiB }},
	{"CPUUtilization", func(a, b *cloud.Server) bool { return equalOrNil(a.CPUUtilization, b.CPUUtilization) }},
	{"ID", func(a, b *cloud.Server) bool { return a.ID == b.ID }},
	{"Name", func(a, b *cloud.Server) bool { return a.Name == b.Name }},
	{"Host", func(a, b *cloud.Server) bool { return a.Host == b.Host }},
	{"Labels", func(a, b *cloud.Server) bool { return maps.Equal(a.Labels, b.Labels) }},
}

// ignoredFields are the fields of cloud.Server whose change alone enqueues
// nothing, each with the reason.
var ignoredFields = map[string]string{
	"Template":      "set by the create; no reconciler reads it from a listing",
	"Folder":        "set by the create; no reconciler reads it from a listing",
	"NetworkID":     "set by the create; no reconciler reads it from a listing",
	"CPUUsageMHz":   "changes in almost every listing; GPUInfos read it when they are reconciled",
	"MemoryUsageMB": "changes in almost every listing; GPUInfos read it when they are reconciled",
	"CreatedAt":     "orders the servers of one owner and does not change",
	"UpdatedAt":     "says that something changed; the other fields say what",
}

// equalServers reports whether a and b agree in all compared fields.
func equalServers(a, b *cloud.Server) bool {
	for i := range comparedFields {
		if !comparedFields[i].equal(a, b) {
			return false
		}
	}
	return true
}

// equalOrNil reports whether a and b are both nil or point to equal values.
func equalOrNil[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// changed returns the IDs of the servers that appeared, vanished or differ in a
// compared field since old.
func (s *Snapshot) changed(old *Snapshot) []string {
	var ids []string
	var before, after cloud.Server // outside the loop: what their addresses are passed to moves them to the heap
	for id, server := range s.servers {
		var known bool
		before, known = old.servers[id]
		after = server
		if !known || !equalServers(&before, &after) {
			ids = append(ids, id)
		}
	}
	for id := range old.servers {
		if _, ok := s.servers[id]; !ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// appeared returns the objects named by the labels of those servers among ids
// that old does not have. No object has recorded such a server yet: it may be
// the late effect of a create.
func (s *Snapshot) appeared(old *Snapshot, ids []string) []Ref {
	var refs []Ref
	for _, id := range ids {
		labels := s.servers[id].Labels
		if ref := (Ref{Namespace: labels[NamespaceLabel], Name: labels[NameLabel]}); ref.Name != "" && !old.Has(id) {
			refs = append(refs, ref)
		}
	}
	return refs
}
