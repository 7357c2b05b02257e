package vsphere_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
)

func TestFolderIsMadeWithItsFirstVMAndRemovedWithItsLast(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	long := strings.Repeat("a-very-long-name-", 12)
	for _, folder := range []string{"team-a", long} {
		first := create(t, c, cloud.CreateServer{Name: "one", Folder: folder})
		second := create(t, c, cloud.CreateServer{Name: "two", Folder: folder})
		for _, s := range append(list(t, c), first, second) {
			if s.Folder != folder {
				t.Errorf("server %s is in folder %q, want %q", s.Name, s.Folder, folder)
			}
		}
		before := len(v.FolderNames())
		remove(t, c, first.ID)
		if got := len(v.FolderNames()); got != before {
			t.Errorf("%d folders while a VM is left, want %d", got, before)
		}
		remove(t, c, second.ID)
		if got := len(v.FolderNames()); got != before-1 {
			t.Errorf("%d folders without the last VM, want %d", got, before-1)
		}
	}
	if !slices.Contains(v.FolderNames(), vcsim.Folder) {
		t.Error("the operator's folder was removed")
	}
}

func TestVMThatComesIntoARemovedFolderKeepsItsFiles(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	last := create(t, c, cloud.CreateServer{Name: "last", Folder: "team-a"})
	into := object.NewFolder(v.Admin.Client, *v.VM("last").Parent)
	template := object.NewVirtualMachine(v.Admin.Client, v.TemplateVM().Self)
	pool, host := v.VM("last").ResourcePool, v.VM("last").Runtime.Host
	var files string
	v.Front.Rewrite(func(method, body string) string {
		if method != "UnregisterAndDestroy_Task" {
			return body
		}
		task, err := template.Clone(t.Context(), into, "late", types.VirtualMachineCloneSpec{Location: types.VirtualMachineRelocateSpec{Pool: pool, Host: host}})
		if err == nil {
			err = task.Wait(t.Context())
		}
		if err != nil {
			t.Errorf("clone: %v", err)
			return body
		}
		files = v.VM("late").Config.Files.VmPathName
		return body
	})
	remove(t, c, last.ID)
	if slices.Contains(v.FolderNames(), "team-a") || v.VM("late") != nil || files == "" {
		t.Fatalf("folders %v, VM %v, want the folder removed with what came into it", v.FolderNames(), v.VM("late"))
	}
	root, err := find.NewFinder(v.Admin.Client).Folder(t.Context(), "/DC0/vm/"+vcsim.Folder)
	if err != nil {
		t.Fatal(err)
	}
	task, err := root.RegisterVM(t.Context(), files, "late", false, object.NewResourcePool(v.Admin.Client, *pool), object.NewHostSystem(v.Admin.Client, *host))
	if err == nil {
		err = task.Wait(t.Context())
	}
	if err != nil {
		t.Errorf("register the VM again: %v", err)
	}
}

func TestFolderIsNotRemovedUnderACreate(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	ctx, cancel := context.WithTimeout(t.Context(), onceTime)
	defer cancel()
	var running sync.WaitGroup
	for n := range 4 {
		running.Go(func() {
			for round := range 10 {
				name := fmt.Sprintf("vm-%d-%d", n, round)
				created, err := insist(ctx, c, cloud.CreateServer{Name: name, Folder: "shared", IdempotencyKey: name})
				if err != nil {
					t.Errorf("create %s: %v", name, err)
					return
				}
				if _, err := c.GetServer(ctx, created.ID); err != nil {
					t.Errorf("%s is gone: %v", name, err)
				}
				result, err := c.DeleteServer(ctx, created.ID)
				if err != nil {
					t.Errorf("delete %s: %v", name, err)
					return
				}
				if _, err := follow(ctx, c, result.Operation); !cloud.Is(err, cloud.NotFound) {
					t.Errorf("%s after its deletion: %v", name, err)
				}
			}
		})
	}
	running.Wait()
	if got := list(t, c); len(got) != 0 {
		t.Errorf("%d servers are left", len(got))
	}
}

// The folder is kept for a create that this client began, unless the vCenter says that it has
// ended, which another client may have seen first.
func TestFolderIsKeptForCreatesThatRun(t *testing.T) {
	const forgotten types.TaskInfoState = "forgotten"
	for state, want := range map[types.TaskInfoState]bool{
		types.TaskInfoStateSuccess: false, types.TaskInfoStateError: false, forgotten: false,
		types.TaskInfoStateQueued: true, types.TaskInfoStateRunning: true,
	} {
		t.Run(string(state), func(t *testing.T) {
			v := newVCenter(t)
			began, saw := v.client(t), v.client(t)
			result, err := began.CreateServer(t.Context(), cloud.CreateServer{Name: "web", Folder: "team-a", IdempotencyKey: someKey})
			if err != nil {
				t.Fatalf("CreateServer: %v", err)
			}
			server, err := follow(t.Context(), saw, result.Operation)
			if err != nil {
				t.Fatalf("the create: %v", err)
			}
			if task := taskOf(result.Operation); state == forgotten {
				ctx := *v.Model.Service.Context // a lock belongs to one Context
				v.Model.Map().Remove(&ctx, task)
			} else {
				v.Change(task, types.PropertyChange{Name: "info.state", Val: state})
			}
			remove(t, began, server.ID)
			if kept := slices.Contains(v.FolderNames(), "team-a"); kept != want {
				t.Errorf("the folder is kept: %t, want %t", kept, want)
			}
		})
	}
}

// Two deletions end at the same time: the one that asks first still sees the VM of the other.
func TestFolderIsLookedAtAgainAfterADeletionThatEndsMeanwhile(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	one := create(t, c, cloud.CreateServer{Name: "one", Folder: "team-a"})
	two := create(t, c, cloud.CreateServer{Name: "two", Folder: "team-a"})
	folder := *v.VM("one").Parent
	full := v.Model.Map().Get(folder).(mo.Entity).Entity().Parent //nolint:forcetypeassert // it is a folder
	var looks atomic.Int32
	v.Front.Rewrite(func(_, body string) string {
		if !strings.Contains(body, "<pathSet>childEntity</pathSet>") || looks.Add(1) > 1 {
			return body
		}
		result, err := c.DeleteServer(t.Context(), two.ID)
		if err == nil {
			_, err = follow(t.Context(), c, result.Operation)
		}
		if !cloud.Is(err, cloud.NotFound) {
			t.Errorf("the other deletion: %v, want its VM gone", err)
		}
		return strings.ReplaceAll(body, ">"+folder.Value+"<", ">"+full.Value+"<")
	})
	remove(t, c, one.ID)
	if slices.Contains(v.FolderNames(), "team-a") || looks.Load() != 2 {
		t.Errorf("folders %v after %d looks, want none without VMs after 2", v.FolderNames(), looks.Load())
	}
}
