package vcsim

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// Connect makes the vCenter answer at its address again after Disconnect.
func (s *Server) Connect() error {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", s.before.Listener.Addr().String())
	if err != nil {
		return fmt.Errorf("listen for requests: %w", err)
	}
	s.before = &httptest.Server{Listener: listener, Config: &http.Server{Handler: s.Front}} //nolint:gosec // it answers tests only
	s.before.Start()
	return nil
}

// Disconnect refuses connections until Connect, as while the vCenter restarts. It keeps
// all of its state.
func (s *Server) Disconnect() {
	s.before.CloseClientConnections()
	s.before.Close()
}

// ExpireSessions ends all sessions but that of Admin again and again, this long after the
// last time, until stop is called, which returns how many were ended.
func (s *Server) ExpireSessions(interval time.Duration) (stop func() (int, error)) {
	ctx, cancel := context.WithCancel(context.Background())
	type result struct {
		ended int
		err   error
	}
	done := make(chan result, 1)
	go func() {
		var all result
		for all.err == nil {
			select {
			case <-ctx.Done():
				done <- all
				return
			case <-time.After(interval):
				var n int
				n, all.err = s.endSessions(context.WithoutCancel(ctx))
				all.ended += n
			}
		}
		done <- all
	}()
	return func() (int, error) {
		cancel()
		all := <-done
		return all.ended, all.err
	}
}

// AcceptPassword refuses logins with another password, until it is called again; the
// empty password accepts all.
func (f *Front) AcceptPassword(password string) { f.set(func() { f.password = password }) }

// refused reports whether a request is a login with a password that is not accepted.
func (f *Front) refused(method, body string) bool {
	return method == "Login" && f.password != "" && !strings.Contains(body, "<password>"+f.password+"</password>")
}

var subject = regexp.MustCompile(`<(?:\w+:)?_this[^>]* type="(\w+)"[^>]*>([^<]+)<`)

// FailTasks accepts requests of a method for which match returns true, and fails their
// tasks with a fault, until restore is called. this is what a request is about.
func (s *Server) FailTasks(method string, fault types.BaseMethodFault, match func(this mo.Reference, body string) bool) (restore func()) {
	s.Front.set(func() {
		s.Front.instead = func(called, body string) (int, string) {
			this := s.subject(body)
			if called != method || this == nil || match != nil && !match(this, body) {
				return 0, ""
			}
			return taskAnswer(method, s.failed(this, method, fault))
		}
	})
	return func() { s.Front.set(func() { s.Front.instead = nil }) }
}

// subject returns the object that a request is about, nil if there is none.
func (s *Server) subject(body string) mo.Reference {
	found := subject.FindStringSubmatch(body)
	if found == nil {
		return nil
	}
	return s.Model.Map().Get(types.ManagedObjectReference{Type: found[1], Value: found[2]})
}

// failed returns a task of a method that ends with a fault.
func (s *Server) failed(this mo.Reference, method string, fault types.BaseMethodFault) types.ManagedObjectReference {
	ctx := *s.Model.Service.Context // a lock belongs to one Context
	return simulator.CreateTask(this, strings.TrimSuffix(method, "_Task"), func(*simulator.Task) (types.AnyType, types.BaseMethodFault) {
		return nil, fault
	}).Run(&ctx)
}

// taskAnswer returns the answer of a method with its task.
func taskAnswer(method string, task types.ManagedObjectReference) (status int, body string) {
	return http.StatusOK, fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body>`+
		`<%sResponse xmlns="urn:vim25"><returnval type="Task">%s</returnval></%[1]sResponse></soapenv:Body></soapenv:Envelope>`, method, task.Value)
}

// RefuseHotAdd fails changes of the size of VMs that run with a fault, until restore is
// called.
func (s *Server) RefuseHotAdd(fault types.BaseMethodFault) (restore func()) {
	return s.FailTasks("ReconfigVM_Task", fault, func(this mo.Reference, body string) bool {
		vm, ok := this.(*simulator.VirtualMachine)
		return ok && vm.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn && (strings.Contains(body, "<numCPUs>") || strings.Contains(body, "<memoryMB>"))
	})
}

// MakeTemplate makes another template of this name beside the first one.
func (s *Server) MakeTemplate(ctx context.Context, name string) error {
	vm, err := s.clone(ctx, s.folders.VmFolder, name, nil)
	if err != nil {
		return err
	}
	return vm.MarkAsTemplate(ctx)
}

// MakeVM makes a VM in Folder that is not the operator's, with these pairs of key and
// value in its extraConfig.
func (s *Server) MakeVM(ctx context.Context, name string, extra map[string]string) (*simulator.VirtualMachine, error) {
	in, err := object.NewSearchIndex(s.Admin.Client).FindChild(ctx, s.folders.VmFolder, Folder)
	if err != nil {
		return nil, err
	}
	spec := &types.VirtualMachineConfigSpec{}
	for key, value := range extra {
		spec.ExtraConfig = append(spec.ExtraConfig, &types.OptionValue{Key: key, Value: value})
	}
	made, err := s.clone(ctx, object.NewFolder(s.Admin.Client, in.Reference()), name, spec)
	if err != nil {
		return nil, err
	}
	s.Change(made.Reference(), types.PropertyChange{Name: "runtime.maxCpuUsage", Val: int32(4000)})
	return s.Model.Map().Get(made.Reference()).(*simulator.VirtualMachine), nil //nolint:forcetypeassert // it is a VM
}

// clone makes a VM from the template, which it leaves stopped.
func (s *Server) clone(ctx context.Context, in *object.Folder, name string, config *types.VirtualMachineConfigSpec) (*object.VirtualMachine, error) {
	pool := s.Model.Map().Any("ResourcePool").Reference()
	task, err := object.NewVirtualMachine(s.Admin.Client, s.TemplateVM().Self).Clone(ctx, in, name, types.VirtualMachineCloneSpec{
		Location: types.VirtualMachineRelocateSpec{Pool: &pool}, Config: config,
	})
	if err != nil {
		return nil, err
	}
	info, err := task.WaitForResult(ctx)
	if err != nil {
		return nil, err
	}
	return object.NewVirtualMachine(s.Admin.Client, info.Result.(types.ManagedObjectReference)), nil //nolint:forcetypeassert // a clone returns a VM
}

// Move puts a VM into another folder. The simulator's own call for that is not reported.
// The parent changes first: a VM that a folder contains is never read with another parent, since a vCenter
// changes both at once.
func (s *Server) Move(vm *simulator.VirtualMachine, into types.ManagedObjectReference) {
	ctx, registry, from := *s.Model.Service.Context, s.Model.Map(), *vm.Parent // a lock belongs to one Context
	s.Change(vm.Self, types.PropertyChange{Name: "parent", Val: into})
	for _, ref := range []types.ManagedObjectReference{from, into} {
		in := registry.Get(ref).(*simulator.Folder) //nolint:forcetypeassert // VMs are in folders
		ctx.WithLock(in, func() {
			simulator.RemoveReference(&in.ChildEntity, vm.Self)
			if ref == into {
				in.ChildEntity = append(in.ChildEntity, vm.Self)
			}
		})
	}
}

// Convert makes a template of a VM, or a VM of a template.
func (s *Server) Convert(vm *simulator.VirtualMachine, template bool) {
	s.Change(vm.Self, types.PropertyChange{Name: "config.template", Val: template}, types.PropertyChange{Name: "summary.config.template", Val: template})
}

// MakeDatacenter makes a datacenter, and returns its folder of VMs.
func (s *Server) MakeDatacenter(ctx context.Context, name string) (folder types.ManagedObjectReference, err error) {
	made, err := object.NewRootFolder(s.Admin.Client).CreateDatacenter(ctx, name)
	if err != nil {
		return folder, err
	}
	folders, err := made.Folders(ctx)
	if err != nil {
		return folder, err
	}
	return folders.VmFolder.Reference(), nil
}

// MakeDatastore makes a datastore of this name, with files in folder, on the hosts.
func (s *Server) MakeDatastore(ctx context.Context, name, folder string) error {
	for _, host := range s.Model.Map().All("HostSystem") {
		system, err := object.NewHostSystem(s.Admin.Client, host.Reference()).ConfigManager().DatastoreSystem(ctx)
		if err != nil {
			return err
		}
		if _, err := system.CreateLocalDatastore(ctx, name, folder); err != nil {
			return err
		}
	}
	return nil
}

// MakePool makes a resource pool of this name below that of the cluster.
func (s *Server) MakePool(ctx context.Context, name string) error {
	root := s.Model.Map().Get(s.Model.Map().Any("ClusterComputeResource").Reference()).(*simulator.ClusterComputeResource).ResourcePool //nolint:forcetypeassert // it is a cluster
	_, err := object.NewResourcePool(s.Admin.Client, *root).Create(ctx, name, types.DefaultResourceConfigSpec())
	return err
}

// ForgetTasks makes the vCenter forget all tasks, as some are after it has restarted.
func (s *Server) ForgetTasks() {
	ctx := *s.Model.Service.Context
	for _, task := range s.Model.Map().All("Task") {
		s.Model.Map().Remove(&ctx, task.Reference())
	}
}
