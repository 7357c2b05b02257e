package vsphere

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	uuidPath        = "config.instanceUuid"
	summaryUUIDPath = "summary.config.instanceUuid"
	connectionPath  = "runtime.connectionState"
	versionPath     = "config.changeVersion"
	templatePath    = "config.template"
	powerPath       = "runtime.powerState"
)

// extraPath is the path of one key of the extraConfig, which as a whole is long.
func extraPath(key string) string { return `config.extraConfig["` + key + `"]` }

// vmPaths are what is read of a VM.
var vmPaths = []string{
	"name", "parent", uuidPath, summaryUUIDPath, templatePath, "config.createDate", versionPath,
	"config.hardware.numCPU", "config.hardware.memoryMB", extraPath(labelsKey), extraPath(originKey),
	powerPath, connectionPath, "runtime.host", "runtime.maxCpuUsage", "summary.quickStats",
}

// entity is what was read of a managed object.
type entity struct {
	ref   types.ManagedObjectReference
	props map[string]types.AnyType
	// inside is whether it is below the root; set by Client.look.
	inside bool
}

func (s entity) text(path string) string {
	text, _ := s.props[path].(string)
	return text
}

func (s entity) flag(path string) bool {
	flag, _ := s.props[path].(bool)
	return flag
}

func (s entity) number(path string) int {
	n, _ := s.props[path].(int32)
	return int(n)
}

func (s entity) reference(path string) types.ManagedObjectReference {
	ref, _ := s.props[path].(types.ManagedObjectReference)
	return ref
}

// extra returns the value of a key of the extraConfig, and whether there is one.
func (s entity) extra(key string) (string, bool) {
	option, ok := s.props[extraPath(key)].(types.OptionValue)
	text, _ := option.Value.(string)
	return text, ok && text != ""
}

// marked reports whether the VM has an owner's mark.
func (s entity) marked() bool {
	_, found := s.extra(labelsKey)
	return found && !s.copied()
}

// copied reports whether the mark is that of another VM, of which this one is a copy: a
// clone has the extraConfig of its source, and an instance UUID of its own.
func (s entity) copied() bool {
	key, id := s.origin().Key, s.text(uuidPath)
	return key != "" && id != "" && idOf(key) != id
}

// created reports whether a create of an operator made the VM. A VM that was imported
// is marked only.
func (s entity) created() bool {
	_, found := s.extra(originKey)
	return found && s.marked()
}

// labels returns the labels, nil if there are none. Labels that cannot be read count as
// absent: only somebody who edits the VM by hand makes such.
func (s entity) labels() map[string]string {
	text, _ := s.extra(labelsKey)
	var labels map[string]string
	if s.copied() || json.Unmarshal([]byte(text), &labels) != nil || len(labels) == 0 {
		return nil
	}
	return labels
}

func (s entity) origin() origin {
	text, _ := s.extra(originKey)
	var from origin
	if json.Unmarshal([]byte(text), &from) != nil {
		return origin{}
	}
	return from
}

// lost reports whether the vCenter cannot read the VM at the moment.
func (s entity) lost() bool {
	switch s.props[connectionPath] {
	case types.VirtualMachineConnectionStateInaccessible, types.VirtualMachineConnectionStateInvalid, types.VirtualMachineConnectionStateOrphaned:
		return true
	}
	return false
}

// state returns the state as far as it does not concern the life of the VM.
func (s entity) state() cloud.State {
	if s.lost() {
		return cloud.StateError
	}
	switch s.props[powerPath] {
	case types.VirtualMachinePowerStatePoweredOn:
		return cloud.StateActive
	case types.VirtualMachinePowerStatePoweredOff:
		return cloud.StateStopped
	}
	return cloud.StateUnknown
}

// server returns the VM as a server, without the names of its host and folder.
func (s entity) server(id string) cloud.Server {
	server := cloud.Server{
		ID: id, Name: unescaped(s.text("name")), Labels: s.labels(), Template: s.origin().Template, NetworkID: s.origin().Network, State: s.state(),
		CPU: s.number("config.hardware.numCPU"), MemoryMiB: s.number("config.hardware.memoryMB"),
	}
	if created, ok := s.props["config.createDate"].(time.Time); ok {
		server.CreatedAt = created
	}
	stats, ok := s.props["summary.quickStats"].(types.VirtualMachineQuickStats)
	if !ok {
		return server
	}
	server.CPUUsageMHz, server.MemoryUsageMB = int(stats.OverallCpuUsage), int(stats.HostMemoryUsage)
	switch most := s.number("runtime.maxCpuUsage"); {
	case most > 0:
		server.CPUUtilization = new(min(100, max(0, server.CPUUsageMHz*100/most)))
	case server.State == cloud.StateStopped:
		server.CPUUtilization = new(0)
	}
	return server
}

// unescaped returns a name without the escapes of the vCenter.
var unescaped = strings.NewReplacer("%2f", "/", "%2F", "/", "%5c", `\`, "%5C", `\`, "%25", "%").Replace

func objects(contents []types.ObjectContent) []entity {
	out := make([]entity, 0, len(contents))
	for _, object := range contents {
		s := entity{ref: object.Obj, props: make(map[string]types.AnyType, len(object.PropSet))}
		for _, property := range object.PropSet {
			s.props[property.Name] = property.Val
		}
		out = append(out, s)
	}
	return out
}

// retrieve reads the paths of objects of one type. Those that do not exist are an error.
func retrieve(ctx context.Context, vim *vim25.Client, kind string, paths []string, refs ...types.ManagedObjectReference) ([]entity, error) {
	spec := types.PropertyFilterSpec{PropSet: []types.PropertySpec{{Type: kind, PathSet: paths}}}
	for _, ref := range refs {
		spec.ObjectSet = append(spec.ObjectSet, types.ObjectSpec{Obj: ref})
	}
	return collect(ctx, vim, spec)
}

// collect reads all that a filter selects.
func collect(ctx context.Context, vim *vim25.Client, spec types.PropertyFilterSpec) ([]entity, error) {
	collector := vim.ServiceContent.PropertyCollector
	res, err := methods.RetrievePropertiesEx(ctx, vim, &types.RetrievePropertiesEx{This: collector, SpecSet: []types.PropertyFilterSpec{spec}})
	if err != nil {
		return nil, err
	}
	var all []entity
	for result := res.Returnval; result != nil; {
		all = append(all, objects(result.Objects)...)
		if result.Token == "" {
			break
		}
		more, err := methods.ContinueRetrievePropertiesEx(ctx, vim, &types.ContinueRetrievePropertiesEx{This: collector, Token: result.Token})
		if err != nil {
			return nil, err
		}
		result = &more.Returnval
	}
	return all, nil
}

// children selects what is in a folder and, if deep is set, in the folders below it.
func children(folder types.ManagedObjectReference, deep bool, further ...types.BaseSelectionSpec) types.ObjectSpec {
	const name = "children"
	into := &types.TraversalSpec{SelectionSpec: types.SelectionSpec{Name: name}, Type: "Folder", Path: "childEntity", SelectSet: further}
	if deep {
		into.SelectSet = append(into.SelectSet, &types.SelectionSpec{Name: name})
	}
	return types.ObjectSpec{Obj: folder, Skip: new(true), SelectSet: []types.BaseSelectionSpec{into}}
}
