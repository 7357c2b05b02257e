package vsphere

import (
	"cmp"
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
	statsPath       = "summary.quickStats"
	powerPath       = "runtime.powerState"
	guestNetPath    = "guest.net"
	heartbeatPath   = "guestHeartbeatStatus"
	parentPath      = "parent"
)

// extraPath is the path of one key of the extraConfig, which as a whole is long.
func extraPath(key string) string { return `config.extraConfig["` + key + `"]` }

// vmPaths are what is read of a VM.
var vmPaths = []string{
	"name", parentPath, uuidPath, summaryUUIDPath, templatePath, "config.createDate", versionPath,
	"config.hardware.numCPU", "config.hardware.memoryMB", extraPath(labelsKey), extraPath(originKey), extraPath(disksKey),
	powerPath, connectionPath, "runtime.host", "runtime.maxCpuUsage", statsPath, guestNetPath, heartbeatPath,
}

// entity is what was read of a managed object.
type entity struct {
	ref   types.ManagedObjectReference
	props map[string]types.AnyType
	// faults are why properties are missing.
	faults map[string]types.BaseMethodFault
	// above are the folders that it is in, and their datacenter, and inside is whether the
	// root is one of them; set by Client.look.
	above  []types.ManagedObjectReference
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

// image returns the template that the VM was cloned from, if a create of an operator made it.
func (s entity) image() cloud.Image {
	if s.copied() {
		return cloud.Image{}
	}
	from := s.origin()
	return cloud.Image{Name: cmp.Or(from.Template, from.Default)}
}

func (s entity) origin() origin {
	text, _ := s.extra(originKey)
	var from origin
	if json.Unmarshal([]byte(text), &from) != nil {
		return origin{}
	}
	return from
}

// antiAffinity returns that of the VM, zero for none.
func (s entity) antiAffinity() cloud.AntiAffinity {
	if s.copied() {
		return cloud.AntiAffinity{}
	}
	return s.origin().AntiAffinity
}

// deleted reports whether the object was deleted while it was read.
func (s entity) deleted() bool {
	for _, fault := range s.faults {
		if gone, ok := fault.(*types.ManagedObjectNotFound); ok && gone.Obj == s.ref {
			return true
		}
	}
	return false
}

// lost reports whether the vCenter cannot read the VM at the moment.
func (s entity) lost() bool {
	switch s.props[connectionPath] {
	case types.VirtualMachineConnectionStateInaccessible, types.VirtualMachineConnectionStateInvalid, types.VirtualMachineConnectionStateOrphaned:
		return true
	}
	return false
}

// configured reports whether the vCenter returned the configuration of the VM. It cannot while it has no
// access to the files, and a VM that is being created or registered has none yet.
func (s entity) configured() bool { return s.text(uuidPath) != "" }

// denied reports whether properties are missing because the account may not read them.
func (s entity) denied() bool {
	for _, fault := range s.faults {
		if _, denied := fault.(*types.NoPermission); denied {
			return true
		}
	}
	return false
}

// state returns the state as far as it does not concern the life of the VM.
func (s entity) state() cloud.State {
	if s.lost() {
		return cloud.StateError
	}
	if !s.configured() {
		return cloud.StateUnknown
	}
	switch s.props[powerPath] {
	case types.VirtualMachinePowerStatePoweredOn:
		return cloud.StateActive
	case types.VirtualMachinePowerStatePoweredOff:
		return cloud.StateStopped
	case types.VirtualMachinePowerStateSuspended:
		return cloud.StateSuspended
	}
	return cloud.StateUnknown
}

// heartbeat returns whether the vCenter receives heartbeats of VMware Tools. Those of a guest
// under load may be late, which is yellow.
func (s entity) heartbeat() cloud.Heartbeat {
	switch s.props[heartbeatPath] {
	case types.ManagedEntityStatusGreen, types.ManagedEntityStatusYellow:
		return cloud.HeartbeatOK
	case types.ManagedEntityStatusRed:
		return cloud.HeartbeatLost
	case types.ManagedEntityStatusGray:
		return cloud.HeartbeatNone
	}
	return cloud.HeartbeatUnknown
}

// server returns the VM as a server, without the names of its host and folder.
func (s entity) server(id string) cloud.Server {
	server := cloud.Server{
		ID: id, Name: unescaped(s.text("name")), Labels: s.labels(), Image: s.image(), NetworkID: s.origin().Network, State: s.state(),
		CPU: s.number("config.hardware.numCPU"), MemoryMiB: s.number("config.hardware.memoryMB"), Interfaces: s.interfaces(),
		Heartbeat: s.heartbeat(),
	}
	if created, ok := s.props["config.createDate"].(time.Time); ok {
		server.CreatedAt = created
	}
	stats, ok := s.props[statsPath].(types.VirtualMachineQuickStats)
	if !ok {
		return server
	}
	server.CPUUsageMHz, server.MemoryUsageMB = int(stats.OverallCpuUsage), int(stats.HostMemoryUsage)
	switch most := s.number("runtime.maxCpuUsage"); {
	case most > 0:
		server.CPUUtilization = new(min(100, max(0, server.CPUUsageMHz*100/most)))
	case server.State == cloud.StateStopped, server.State == cloud.StateSuspended:
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
		for _, missing := range object.MissingSet {
			if s.faults == nil {
				s.faults = map[string]types.BaseMethodFault{}
			}
			s.faults[missing.Path] = missing.Fault.Fault
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

const (
	// maxPages bounds the answers that one result takes, and maxObjects what it has: as
	// many VMs as the operator reads of a cloud.
	maxPages   = 1000
	maxObjects = 100_000
)

// errTooLarge is about a result that has no end.
var errTooLarge = &cloud.Error{Kind: cloud.Unreadable, Detail: "the vCenter returns more objects than the operator reads"}

// collect reads all that a filter selects.
func collect(ctx context.Context, vim *vim25.Client, spec types.PropertyFilterSpec) ([]entity, error) {
	collector := vim.ServiceContent.PropertyCollector
	res, err := methods.RetrievePropertiesEx(ctx, vim, &types.RetrievePropertiesEx{This: collector, SpecSet: []types.PropertyFilterSpec{spec}})
	if err != nil {
		return nil, err
	}
	result := res.Returnval
	if result == nil {
		return nil, nil
	}
	all := objects(result.Objects)
	for page := 1; result.Token != ""; page++ {
		if page == maxPages || len(all) > maxObjects {
			return nil, errTooLarge
		}
		if result, err = proceed(ctx, vim, result.Token); err != nil {
			return nil, err
		}
		all = append(all, objects(result.Objects)...)
	}
	return all, nil
}

// proceed reads the page of a result that a token leads to. The token is lost with the
// session.
func proceed(ctx context.Context, vim *vim25.Client, token string) (*types.RetrieveResult, error) {
	res, err := methods.ContinueRetrievePropertiesEx(ctx, vim, &types.ContinueRetrievePropertiesEx{This: vim.ServiceContent.PropertyCollector, Token: token})
	switch faultOf(err).(type) {
	case *types.InvalidProperty, *types.InvalidArgument, *types.ManagedObjectNotFound:
		return nil, refuse("", cloud.Unavailable, "the vCenter has forgotten where the listing was, as after the end of a session: it is begun again")
	}
	if err != nil {
		return nil, err
	}
	return &res.Returnval, nil
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
