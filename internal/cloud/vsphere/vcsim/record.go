package vcsim

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/vmware/govmomi/event"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// LabelsKey is the key of a VM's extraConfig that has its labels as JSON.
const LabelsKey = "privatecloud.labels"

// Labels returns the labels of a VM, nil if it has none.
func Labels(vm *simulator.VirtualMachine) (labels map[string]string) {
	decode(vm, LabelsKey, &labels)
	return labels
}

// decode reads the JSON of a key of the extraConfig. What is no JSON counts as absent.
func decode(vm *simulator.VirtualMachine, key string, into any) {
	for _, option := range vm.Config.ExtraConfig {
		if value := option.GetOptionValue(); value.Key == key {
			_ = json.Unmarshal(fmt.Append(nil, value.Value), into)
		}
	}
}

// Running reports whether a VM is powered on.
func Running(vm *simulator.VirtualMachine) bool {
	return vm.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn
}

// Entry is a VM that was made or removed.
type Entry struct {
	Number int
	Time   time.Time
	// VM is the value of its reference.
	VM, Name string
	Removed  bool
}

// Record returns which VMs were made and removed, in order. It has what the last 1,000
// events say.
func (s *Server) Record(ctx context.Context) ([]Entry, error) {
	events, err := event.NewManager(s.Admin.Client).QueryEvents(ctx, types.EventFilterSpec{
		EventTypeId: []string{"VmCreatedEvent", "VmRemovedEvent"}, MaxCount: 1000,
	})
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(events))
	for _, e := range events {
		about := e.GetEvent()
		_, removed := e.(*types.VmRemovedEvent)
		entries = append(entries, Entry{Number: int(about.Key), Time: about.CreatedTime, VM: about.Vm.Vm.Value, Name: about.Vm.Name, Removed: removed})
	}
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Number, b.Number) })
	return entries, nil
}

// RemoveVM removes a VM that is stopped.
func (s *Server) RemoveVM(ctx context.Context, vm *simulator.VirtualMachine) error {
	task, err := object.NewVirtualMachine(s.Admin.Client, vm.Self).Destroy(ctx)
	if err != nil {
		return err
	}
	return task.Wait(ctx)
}
