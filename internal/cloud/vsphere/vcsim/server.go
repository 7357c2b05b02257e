// Package vcsim runs govmomi's simulator of a vCenter in the process of a test, and
// cmd/vcsim in a process of its own.
//
//	server.go     the simulator, its VMs and folders
//	options.go    its address, and clones that take time
//	front.go      what is before it, counts requests and makes them fail
//	omitted.go    properties that are left out of answers
//	switches.go   tasks and logins that fail, a vCenter that restarts, more objects
//	starting.go   clones end once their VMs are started
//	drs.go        anti-affinity rules, which the simulator only stores
//	held.go       changes of these rules, and of VMs, that take long
//	record.go     which VMs were made and removed
//	disks.go      disks of VMs
//	clones.go     what clones have of their source
//	calls.go      the calls by what they read
//	extended.go   what the simulator lacks, or does in a way that tests cannot use
//	collector.go  reports changes of VMs as a vCenter does
package vcsim

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// Template is the name of the template, and Folder that of the VM folder that belongs
// to the operator. The template is beside the folder.
const (
	Template = "small"
	Folder   = "op"
)

// uplinks is the tag of the port groups that connect distributed switches to hosts.
const uplinks = "SYSTEM/DVS.UPLINKPG"

// Server is a vCenter with one cluster of three hosts.
type Server struct {
	Model *simulator.Model
	// Admin is a client of a session of its own, whose requests do not count.
	Admin *govmomi.Client
	Front *Front
	// URL is the endpoint of the SOAP API.
	URL string

	server  *simulator.Server
	before  *httptest.Server
	folders *object.DatacenterFolders

	// placing is held while a VM is placed and started.
	placing sync.Mutex

	mu sync.Mutex
	// collectors report changes in place of the simulator's own, of which those in waiting
	// were asked for changes. plain is whether only these report changes.
	collectors map[*collector]bool
	waiting    map[*simulator.PropertyCollector]bool
	plain      bool
	// ovf are the names of the VMs whose guests get an OVF environment.
	ovf map[string]bool
	// addresses are the MAC addresses that were given, each with the name of a VM, and
	// sharedAddresses those that another VM got as well.
	addresses       map[string]string
	sharedAddresses []string
}

// making is held while a simulator is made, which changes variables of its package.
var making sync.Mutex

// Start starts a simulator.
func Start(ctx context.Context) (*Server, error) { return StartWith(ctx, Options{}) }

func serve(ctx context.Context, listener net.Listener) (*Server, error) {
	s := &Server{collectors: map[*collector]bool{}, waiting: map[*simulator.PropertyCollector]bool{}, addresses: map[string]string{}, ovf: map[string]bool{}}
	if err := s.make(); err != nil {
		return nil, fmt.Errorf("make the simulator: %w", err)
	}
	s.Front = newFront(s.server.URL.Host)
	s.Front.starts, s.Front.places = s.start, s.place
	s.listen(listener)
	if err := s.prepare(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("prepare the simulator: %w", err)
	}
	return s, nil
}

func (s *Server) make() error {
	making.Lock()
	defer making.Unlock()
	s.Model = simulator.VPX()
	s.Model.Machine, s.Model.Host, s.Model.ClusterHost, s.Model.Cluster = 1, 0, 3, 1
	if err := s.Model.Create(); err != nil {
		return err
	}
	s.Model.Service.TLS, s.Model.Service.RegisterEndpoints = nil, true
	s.Model.Map().Handler = s.extend
	s.server = s.Model.Service.NewServer()
	return nil
}

func (s *Server) prepare(ctx context.Context) error {
	template := s.TemplateVM()
	template.Config.Template, template.Summary.Config.Template = true, true
	template.Name, template.Config.Name = Template, Template
	s.tagUplinks()
	var err error
	if s.Admin, err = govmomi.NewClient(ctx, s.server.URL, true); err != nil {
		return err
	}
	datacenter, err := find.NewFinder(s.Admin.Client).DefaultDatacenter(ctx)
	if err != nil {
		return err
	}
	if s.folders, err = datacenter.Folders(ctx); err != nil {
		return err
	}
	_, err = s.MakeFolder(ctx, Folder)
	return err
}

// Close ends the simulator.
func (s *Server) Close() {
	s.before.CloseClientConnections()
	s.before.Close()
	s.endWaits(true)
	s.server.Close()
	s.Model.Remove()
}

// TemplateVM returns the template.
func (s *Server) TemplateVM() *simulator.VirtualMachine {
	for _, vm := range s.VMs() {
		if vm.Name == Template && vm.Config.Template || len(s.VMs()) == 1 {
			return vm
		}
	}
	return nil
}

// VMs returns all VMs, with the template.
func (s *Server) VMs() []*simulator.VirtualMachine {
	var all []*simulator.VirtualMachine
	for _, entity := range s.Model.Map().All("VirtualMachine") {
		all = append(all, entity.(*simulator.VirtualMachine)) //nolint:forcetypeassert // all VMs have this type
	}
	return all
}

// VM returns the VM of a name, nil if there is none.
func (s *Server) VM(name string) *simulator.VirtualMachine {
	for _, vm := range s.VMs() {
		if vm.Name == name {
			return vm
		}
	}
	return nil
}

// Change changes properties of a managed object.
func (s *Server) Change(ref types.ManagedObjectReference, changes ...types.PropertyChange) {
	s.Model.Map().AtomicUpdate(s.Model.Service.Context, s.Model.Map().Get(ref), changes)
}

// PortGroups returns the ids of the port groups that VMs can be attached to, by name.
func (s *Server) PortGroups() map[string]string {
	ids := map[string]string{}
	for _, kind := range []string{"Network", "DistributedVirtualPortgroup"} {
		for _, entity := range s.Model.Map().All(kind) {
			if !isUplink(entity.Entity()) {
				ids[entity.Entity().Name] = entity.Reference().Value
			}
		}
	}
	return ids
}

// tagUplinks marks the port groups of uplinks as a vCenter does, and the simulator does
// not.
func (s *Server) tagUplinks() {
	for _, entity := range s.Model.Map().All("DistributedVirtualPortgroup") {
		if strings.Contains(entity.Entity().Name, "-DVUplinks-") {
			s.Change(entity.Reference(), types.PropertyChange{Name: "tag", Val: []types.Tag{{Key: uplinks}}})
		}
	}
}

func isUplink(entity *mo.ManagedEntity) bool {
	return slices.ContainsFunc(entity.Tag, func(tag types.Tag) bool { return tag.Key == uplinks })
}

// AttachedTo returns the ids of the port groups that the adapters of a VM are attached to.
func (s *Server) AttachedTo(vm *simulator.VirtualMachine) []string {
	var ids []string
	for _, card := range object.VirtualDeviceList(vm.Config.Hardware.Device).SelectByType((*types.VirtualEthernetCard)(nil)) {
		switch backing := card.GetVirtualDevice().Backing.(type) {
		case *types.VirtualEthernetCardNetworkBackingInfo:
			ids = append(ids, s.PortGroups()[backing.DeviceName])
		case *types.VirtualEthernetCardDistributedVirtualPortBackingInfo:
			ids = append(ids, backing.Port.PortgroupKey)
		}
	}
	return ids
}

// MakeFolder makes a VM folder below that of the datacenter.
func (s *Server) MakeFolder(ctx context.Context, name string) (*object.Folder, error) {
	return s.folders.VmFolder.CreateFolder(ctx, name)
}

// FolderNames returns the names of all folders.
func (s *Server) FolderNames() []string {
	var names []string
	for _, entity := range s.Model.Map().All("Folder") {
		names = append(names, entity.Entity().Name)
	}
	return names
}

// EndSessions ends all sessions but that of Admin, with their requests for changes, as
// after the time that a vCenter keeps idle ones.
func (s *Server) EndSessions(ctx context.Context) error {
	_, err := s.endSessions(ctx)
	return err
}

// endSessions is EndSessions, and returns how many sessions it ended.
func (s *Server) endSessions(ctx context.Context) (ended int, err error) {
	own, err := s.Admin.SessionManager.UserSession(ctx)
	if err != nil {
		return 0, err
	}
	var manager mo.SessionManager
	collector := property.DefaultCollector(s.Admin.Client)
	if err := collector.RetrieveOne(ctx, s.Admin.SessionManager.Reference(), []string{"sessionList"}, &manager); err != nil {
		return 0, err
	}
	for _, session := range manager.SessionList {
		if session.Key == own.Key {
			continue
		}
		if err := s.Admin.SessionManager.TerminateSession(ctx, []string{session.Key}); err != nil {
			return ended, err
		}
		ended++
	}
	s.endWaits(false)
	return ended, nil
}

var taskRef = regexp.MustCompile(`type="Task">([^<]+)<`)

// start waits until a clone has ended, and starts its VM.
func (s *Server) start(answer string) {
	found := taskRef.FindStringSubmatch(answer)
	if found == nil {
		return
	}
	made, ok := s.wait(types.ManagedObjectReference{Type: "Task", Value: found[1]}).(types.ManagedObjectReference)
	if !ok {
		return // the clone failed
	}
	s.measure(made)
	if started, err := object.NewVirtualMachine(s.Admin.Client, made).PowerOn(context.Background()); err == nil {
		s.wait(started.Reference())
	}
}

// measure gives a VM that is started what its CPU use is a part of.
func (s *Server) measure(vm types.ManagedObjectReference) {
	s.Change(vm, types.PropertyChange{Name: "runtime.maxCpuUsage", Val: int32(4000)})
}

// wait returns the result of a task once it has ended. It reads the task in the process:
// with requests for changes, which need a collector for each, many clones are slow.
func (s *Server) wait(ref types.ManagedObjectReference) types.AnyType {
	task, ok := s.Model.Map().Get(ref).(*simulator.Task)
	if !ok {
		return nil
	}
	task.Wait()
	return task.Info.Result
}
