package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// serve runs the command until the test ends, and returns its URLs.
func serve(t *testing.T, args ...string) (url, admin string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended, ready := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- run(ctx, append([]string{"--listen=127.0.0.1:0", "--admin=127.0.0.1:0"}, args...), io.Discard, func(api, control string) {
			url, admin = api, control
			close(ready)
		})
	}()
	select {
	case <-ready:
	case err := <-ended:
		stop()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return url, admin
}

// call calls an admin endpoint.
func call[T any](t *testing.T, method, url string) (status int, result T) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode == http.StatusOK && len(body) > 0 {
		if err := json.Unmarshal(body, &result); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
	}
	return response.StatusCode, result
}

func TestVMsCanBeListedAndChanged(t *testing.T) {
	_, admin := serve(t, "--folder=mine", "--vm=one=DC0_C0_H1", "--vm=two")

	one, two := VM{Name: "one", Folder: "mine", Host: "DC0_C0_H1", Running: true}, VM{Name: "two", Folder: "mine", Running: true}
	list := func(when string, want ...VM) {
		t.Helper()
		_, got := call[[]VM](t, http.MethodGet, admin+"/vms")
		if len(got) > 0 && got[len(got)-1].Name == "two" {
			got[len(got)-1].Host = "" // that of the template
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(VM{}, "ID"), cmpopts.IgnoreUnexported(VM{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	list("at the start", one, two)
	for _, path := range []string{"/vms/two/power-off", "/vms/one/power-off", "/vms/one/power-on"} {
		if status, _ := call[VM](t, http.MethodPost, admin+path); status != http.StatusOK {
			t.Errorf("POST %s: %d", path, status)
		}
	}
	two.Running = false
	list("after power-off", one, two)
	if status, _ := call[VM](t, http.MethodDelete, admin+"/vms/one"); status != http.StatusOK {
		t.Errorf("DELETE of a running VM: %d", status)
	}
	list("after the deletion", two)
	if status, _ := call[VM](t, http.MethodDelete, admin+"/vms/one"); status != http.StatusNotFound {
		t.Errorf("DELETE of a VM that does not exist: %d, want 404", status)
	}
}

// An operator powers a VM on as soon as it finds it off.
func TestVMThatIsPoweredOnMeanwhileIsDeleted(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f"}
	var args []string
	for _, name := range names {
		args = append(args, "--vm="+name)
	}
	_, admin := serve(t, args...)
	for _, name := range names {
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			for ctx.Err() == nil {
				request, err := http.NewRequestWithContext(ctx, http.MethodPost, admin+"/vms/"+name+"/power-on", nil)
				if err != nil {
					return
				}
				if response, err := http.DefaultClient.Do(request); err == nil {
					_ = response.Body.Close()
				}
			}
		}()
		if status, _ := call[VM](t, http.MethodDelete, admin+"/vms/"+name); status != http.StatusOK {
			t.Errorf("DELETE of VM %s, which is powered on meanwhile: %d", name, status)
		}
		stop()
		<-stopped
	}
}

func TestCallsOfTheSOAPAPIAreCountedByKind(t *testing.T) {
	url, admin := serve(t, "--template=other", "--vm=one")
	if _, got := call[map[string]int](t, http.MethodGet, admin+"/calls"); len(got) != 0 {
		t.Errorf("at the start: %v, want none", got)
	}
	finder := find.NewFinder(login(t, url).Client)
	if _, err := finder.VirtualMachine(t.Context(), "/DC0/vm/other"); err != nil {
		t.Error(err)
	}
	_, got := call[map[string]int](t, http.MethodGet, admin+"/calls")
	if got["Login"] != 1 || got["RetrievePropertiesEx: Folder"]+got["RetrieveProperties: Folder"] == 0 {
		t.Errorf("after a login and a search: %v, want Login 1 and reads of folders", got)
	}
	call[any](t, http.MethodDelete, admin+"/calls")
	if _, got := call[map[string]int](t, http.MethodGet, admin+"/calls"); len(got) != 0 {
		t.Errorf("after DELETE: %v, want none", got)
	}
}

func TestTaskOfACloneRunsForATimeAndEndsWithTheVMRunning(t *testing.T) {
	const taking = 300 * time.Millisecond
	url, admin := serve(t, "--clone-task="+taking.String(), "--folder=mine")
	client := login(t, url)
	finder := find.NewFinder(client.Client)
	template, err := finder.VirtualMachine(t.Context(), "/DC0/vm/small")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := finder.Folder(t.Context(), "/DC0/vm/mine")
	if err != nil {
		t.Fatal(err)
	}
	pool, err := finder.ResourcePool(t.Context(), "/DC0/host/DC0_C0/Resources")
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	spec := types.VirtualMachineCloneSpec{PowerOn: true, Location: types.VirtualMachineRelocateSpec{Pool: new(pool.Reference())}}
	task, err := template.Clone(t.Context(), folder, "made", spec)
	if err != nil {
		t.Fatal(err)
	}
	if answered := time.Since(begun); answered >= taking {
		t.Errorf("CloneVM_Task was answered after %s, want it at once", answered)
	}
	info, err := task.WaitForResult(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took < taking {
		t.Errorf("the task ended after %s, want at least %s", took, taking)
	}
	made, _ := info.Result.(types.ManagedObjectReference)
	if state, err := object.NewVirtualMachine(client.Client, made).PowerState(t.Context()); state != types.VirtualMachinePowerStatePoweredOn {
		t.Errorf("the VM is %s %v when the task has ended, want poweredOn", state, err)
	}
	if _, got := call[map[string]int](t, http.MethodGet, admin+"/calls"); got["CloneVM_Task"] != 1 {
		t.Errorf("%d clones were counted, want 1", got["CloneVM_Task"])
	}
}

func TestSessionsEnd(t *testing.T) {
	url, _ := serve(t, "--session=20ms")
	client := login(t, url)
	for deadline := time.Now().Add(10 * time.Second); ; {
		session, err := client.SessionManager.UserSession(t.Context())
		if err == nil && session == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the session did not end: %v %v", session, err)
		}
	}
}

func login(t *testing.T, url string) *govmomi.Client {
	t.Helper()
	parsed, err := soap.ParseURL(strings.Replace(url, "://", "://somebody:secret@", 1))
	if err != nil {
		t.Fatal(err)
	}
	client, err := govmomi.NewClient(t.Context(), parsed, true)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestArgumentsThatCannotBeServedAreErrors(t *testing.T) {
	for name, args := range map[string][]string{
		"argument that is no flag":               {"now"},
		"duration without a unit":                {"--clone-task=5"},
		"address that does not exist":            {"--listen=256.0.0.1:1", "--admin=127.0.0.1:0"},
		"admin address that does not exist":      {"--admin=256.0.0.1:1"},
		"VM on a host that does not exist":       {"--listen=127.0.0.1:0", "--admin=127.0.0.1:0", "--vm=one=nowhere"},
		"graphics of a host that does not exist": {"--listen=127.0.0.1:0", "--admin=127.0.0.1:0", "--gpu-host=nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), args, io.Discard, nil); err == nil {
				t.Error("got no error")
			}
		})
	}
}

func TestFirstLogLineHasTheVersion(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--admin=256.0.0.1:1"}, &out, nil); err == nil {
		t.Error("an address that does not exist: got no error")
	}
	lines := strings.Split(out.String(), "\n")
	if !slices.ContainsFunc(lines[:1], func(line string) bool { return strings.Contains(line, "version="+version) }) {
		t.Errorf("the first line of the log is %q, want the version in it", lines[0])
	}
}
