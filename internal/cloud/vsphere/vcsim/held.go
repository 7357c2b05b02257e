package vcsim

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	"github.com/vmware/govmomi/vim25/xml"
)

// HeldRules are changes of DRS rules that take long.
type HeldRules struct {
	server *Server
	// proceed lets one change go on, or fail, and ended tells that it has ended.
	proceed chan bool
	ended   chan struct{}
	// taken counts the changes.
	taken atomic.Int64
}

// HoldRules accepts changes of DRS rules. Their tasks run until Release or End is called. There
// may be no other replacement of requests meanwhile.
func (s *Server) HoldRules() *HeldRules {
	h := &HeldRules{server: s, proceed: make(chan bool), ended: make(chan struct{})}
	s.Front.set(func() { s.Front.instead = h.take })
	return h
}

// Release lets one of the changes take effect. It reports whether there was one.
func (h *HeldRules) Release() bool { return h.next(true) }

// Fail makes one of the changes fail.
func (h *HeldRules) Fail() bool { return h.next(false) }

func (h *HeldRules) next(apply bool) bool {
	select {
	case h.proceed <- apply:
		<-h.ended
		return true
	default:
		return false
	}
}

// End lets all changes take effect, and holds no more.
func (h *HeldRules) End() {
	h.server.Front.set(func() { h.server.Front.instead = nil })
	for h.Release() {
	}
}

// take answers a change of rules with a task that waits.
func (h *HeldRules) take(method, body string) (status int, answer string) {
	if method != "ReconfigureComputeResource_Task" {
		return 0, ""
	}
	var asked methods.ReconfigureComputeResource_TaskBody
	if decodeBody(body, &asked) != nil || asked.Req == nil {
		return 0, ""
	}
	// A task locks its object. That of this one is nothing that others read or change.
	locked := types.ManagedObjectReference{Type: asked.Req.This.Type, Value: "held-" + strconv.FormatInt(h.taken.Add(1), 10)}
	lock := *h.server.Model.Service.Context // a lock belongs to one Context
	task := simulator.CreateTask(locked, strings.TrimSuffix(method, "_Task"), func(*simulator.Task) (types.AnyType, types.BaseMethodFault) {
		apply := <-h.proceed
		defer func() { h.ended <- struct{}{} }()
		if !apply {
			return nil, &types.InvalidArgument{InvalidProperty: "rulesSpec"}
		}
		return nil, h.apply(asked.Req)
	}).Run(&lock)
	return taskAnswer(method, task)
}

// apply makes a change, and returns why it failed.
func (h *HeldRules) apply(asked *types.ReconfigureComputeResource_Task) types.BaseMethodFault {
	spec, ok := asked.Spec.(*types.ClusterConfigSpecEx)
	if !ok {
		return &types.InvalidArgument{InvalidProperty: "spec"}
	}
	if err := h.server.reconfigure(context.Background(), spec); err != nil {
		return &types.InvalidArgument{InvalidProperty: err.Error()}
	}
	return nil
}

// HoldChanges accepts changes of VMs, whose tasks run until release is called. Meanwhile a further change of
// such a VM is refused. There may be no other replacement of requests meanwhile.
func (s *Server) HoldChanges() (release func()) {
	const method = "ReconfigVM_Task"
	proceed := make(chan struct{})
	var mu sync.Mutex
	busy := map[types.ManagedObjectReference]bool{}
	s.Front.set(func() {
		s.Front.instead = func(called, body string) (status int, answer string) {
			var asked methods.ReconfigVM_TaskBody
			if called != method || decodeBody(body, &asked) != nil || asked.Req == nil {
				return 0, ""
			}
			mu.Lock()
			defer mu.Unlock()
			if busy[asked.Req.This] {
				return Fault("TaskInProgress")
			}
			busy[asked.Req.This] = true
			locked := types.ManagedObjectReference{Type: asked.Req.This.Type, Value: "held-" + asked.Req.This.Value}
			lock := *s.Model.Service.Context
			task := simulator.CreateTask(locked, strings.TrimSuffix(method, "_Task"), func(*simulator.Task) (types.AnyType, types.BaseMethodFault) {
				<-proceed
				change, err := object.NewVirtualMachine(s.Admin.Client, asked.Req.This).Reconfigure(context.Background(), asked.Req.Spec)
				if err == nil {
					err = change.Wait(context.Background())
				}
				if err != nil {
					return nil, &types.InvalidArgument{InvalidProperty: err.Error()}
				}
				return nil, nil
			}).Run(&lock)
			return taskAnswer(method, task)
		}
	})
	return func() {
		s.Front.set(func() { s.Front.instead = nil })
		close(proceed)
	}
}

// decodeBody reads the SOAP body of a request.
func decodeBody(body string, into any) error {
	decoder := xml.NewDecoder(strings.NewReader(body))
	decoder.TypeFunc = types.TypeFunc()
	return decoder.Decode(&soap.Envelope{Body: into})
}
