package faults

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
	"github.com/privatecloud/operator/mockcloud"
)

// stock is what a test sees of the servers of a cloud, and puts there, without the operator.
type stock interface {
	PutServer(s mockcloud.Server) (mockcloud.Server, error)
	Server(id string) (mockcloud.Server, bool)
	Servers() []mockcloud.Server
	Ledger() []mockcloud.LedgerEntry
}

// inFolder has each method of a vCenter that changes something.
var inFolder = scenario{name: "create in a folder, resize, stop, start, delete", act: []step{
	create(vm, func(vm *pcapi.VM) { vm.Spec.Folder, vm.Spec.CPU = "team", pcapi.Cores(1) }), edit(vm, `{"spec":{"cpu":2}}`),
	edit(vm, `{"spec":{"powerState":"Off"}}`), edit(vm, `{"spec":{"powerState":"On"}}`), remove(vm, gone),
}}

// keptApart creates a VM beside another one of its anti-affinity group.
var keptApart = scenario{name: "create apart from another", arrange: []step{create("beside", apart)}, act: []step{create(vm, apart)}}

// startVCenter starts a vCenter with the templates that scenarios name.
func (w *world) startVCenter(ctx context.Context) (err error) {
	if w.vcenter, err = vcsim.Start(ctx); err != nil {
		return err
	}
	for _, name := range []string{"first", "second"} {
		if err := w.vcenter.MakeTemplate(ctx, name); err != nil {
			return fmt.Errorf("make a template: %w", err)
		}
	}
	put := map[string]bool{}
	for _, template := range w.vcenter.VMs() {
		put[template.Self.Value] = true
	}
	w.stock = &vcenterStock{vcenter: w.vcenter, put: put}
	return nil
}

// createVSphereCloud is createCloud for the vCenter.
func (w *world) createVSphereCloud(ctx context.Context, spec pcapi.CloudSpec) error {
	if err := w.env.client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: w.name, Labels: map[string]string{pcapi.CredentialsForLabel: w.name}},
		StringData: map[string]string{"username": "operator@vsphere.local", "password": "secret"},
	}); err != nil {
		return err
	}
	spec.Type, spec.CredentialsSecretRef, spec.InsecureAllowHTTP = pcapi.CloudTypeVSphere, &pcapi.SecretReference{Name: w.name}, true
	spec.VSphere = &pcapi.VSphereCloud{Folder: vcsim.Folder, Templates: pcapi.VSphereTemplates{Folder: "/DC0/vm", Default: vcsim.Template}}
	return w.createCloud(ctx, w.name, w.cloud.URL+"/sdk", spec)
}

// vsphereChanges are the methods that change something.
var vsphereChanges = map[string]bool{
	"CloneVM_Task": true, "ReconfigVM_Task": true, "PowerOnVM_Task": true, "PowerOffVM_Task": true, "ShutdownGuest": true, "Destroy_Task": true, "CreateFolder": true, "RevertToSnapshot_Task": true,
	"ReconfigureComputeResource_Task": true,
}

var soapMethod = regexp.MustCompile(`<(?:\w+:)?Body[^>]*>\s*<(?:\w+:)?(\w+)`)

// vcenterProxy returns a proxy of a vCenter.
func vcenterProxy(target string, g *gate) (*proxy, error) {
	at, err := url.Parse(strings.TrimSuffix(target, "/sdk"))
	if err != nil {
		return nil, fmt.Errorf("reach the vCenter: %w", err)
	}
	return newProxy(at, &http.Transport{MaxIdleConnsPerHost: 16}, func(*http.Request) {}, g, func(r *http.Request) (effect, bool) {
		body, _ := io.ReadAll(r.Body) // what is missing is no request
		r.Body = io.NopCloser(bytes.NewReader(body))
		e := effect{side: cloudSide, path: "/sdk"}
		if found := soapMethod.FindSubmatch(body); found != nil {
			e.method = string(found[1])
		}
		if e.method == "RetrievePropertiesEx" && bytes.Contains(body, []byte("<maxObjects>")) {
			e.path = "/servers"
		}
		return e, vsphereChanges[e.method]
	}), nil
}

// vcenterStock are the VMs of a vCenter that are no templates.
type vcenterStock struct {
	vcenter *vcsim.Server

	mu sync.Mutex
	// put has the templates and the VMs that PutServer made, by the values of their
	// references.
	put map[string]bool
}

// PutServer makes a VM that is not the operator's. Labels make it look like one.
func (s *vcenterStock) PutServer(server mockcloud.Server) (mockcloud.Server, error) {
	var marks map[string]string
	if len(server.Labels) > 0 {
		text, err := json.Marshal(server.Labels)
		if err != nil {
			return server, err
		}
		marks = map[string]string{vcsim.LabelsKey: string(text), "privatecloud.origin": "{}"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	vm, err := s.vcenter.MakeVM(context.Background(), server.Name, marks)
	if err != nil {
		return server, err
	}
	s.put[vm.Self.Value] = true
	put, _ := s.Server(vm.Config.InstanceUuid)
	return put, nil
}

// Server returns a VM by its instance UUID.
func (s *vcenterStock) Server(id string) (mockcloud.Server, bool) {
	for _, server := range s.Servers() {
		if server.ID == id {
			return server, true
		}
	}
	return mockcloud.Server{}, false
}

// Servers returns all VMs.
func (s *vcenterStock) Servers() (all []mockcloud.Server) {
	for _, vm := range s.vcenter.VMs() {
		if vm.Config.Template {
			continue
		}
		server := mockcloud.Server{
			ID: vm.Config.InstanceUuid, Name: vm.Name, Labels: vcsim.Labels(vm), State: mockcloud.StateStopped,
			CPU: int(vm.Config.Hardware.NumCPU), Memory: int(vm.Config.Hardware.MemoryMB),
		}
		if group := s.vcenter.KeptApart(vm); group != "" {
			server.AntiAffinity = &mockcloud.AntiAffinity{Group: group, Policy: mockcloud.AntiAffinityRequired}
		}
		for name, size := range vcsim.Disks(vm) {
			server.Disks = append(server.Disks, mockcloud.Disk{Name: name, Size: size})
		}
		slices.SortFunc(server.Disks, func(a, b mockcloud.Disk) int { return cmp.Compare(a.Name, b.Name) })
		if vcsim.Running(vm) {
			server.State = mockcloud.StateActive
		}
		all = append(all, server)
	}
	return all
}

// Ledger returns what the events of the vCenter say of its VMs.
func (s *vcenterStock) Ledger() []mockcloud.LedgerEntry {
	entries, err := s.vcenter.Record(context.Background())
	if err != nil {
		panic(fmt.Sprintf("read the events of the vCenter: %v", err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var ledger []mockcloud.LedgerEntry
	for _, e := range entries {
		entry := mockcloud.LedgerEntry{Seq: e.Number, Time: e.Time, Op: mockcloud.OpCreate, By: mockcloud.ByClient, ServerID: e.VM, Name: e.Name}
		if s.put[e.VM] {
			entry.By = mockcloud.ByAdmin
		}
		if e.Removed {
			entry.Op = mockcloud.OpGone
		}
		ledger = append(ledger, entry)
	}
	return ledger
}
