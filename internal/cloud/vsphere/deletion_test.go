package vsphere_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/vsphere"
)

// attach attaches a disk to the VM of withDisk as an administrator does, and returns its file.
func (v *vcenter) attach(t *testing.T, file string) string {
	t.Helper()
	path, err := v.AttachDisk(t.Context(), v.VM("db"), file)
	if err != nil {
		t.Fatalf("attach %q: %v", file, err)
	}
	return path
}

// withDisk returns a VM with a disk of its own.
func withDisk(t *testing.T, c *vsphere.Client) cloud.Server {
	t.Helper()
	return create(t, c, cloud.CreateServer{Name: "db", Folder: "team-a", IdempotencyKey: someKey, Labels: map[string]string{"owner": "me"}, Disks: "data=1024"})
}

func TestDisksThatOthersAttachedOutliveTheVM(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := withDisk(t, c)
	own := v.DiskFiles("db")
	theirs := []string{v.attach(t, "volumes/a.vmdk"), v.attach(t, "backup/b.vmdk"), v.attach(t, "")}
	result, err := c.DeleteServer(t.Context(), created.ID)
	if err != nil {
		t.Fatalf("DeleteServer: %v", err)
	}
	if _, err := follow(t.Context(), c, result.Operation); !cloud.Is(err, cloud.NotFound) {
		t.Fatalf("the VM after its deletion: %v, want NotFound", err)
	}
	for _, file := range theirs {
		if !v.HasFile(file) {
			t.Errorf("%s was destroyed with the VM", file)
		}
	}
	for _, file := range own {
		if v.HasFile(file) {
			t.Errorf("%s, the VM's own, was left behind", file)
		}
	}
	var want []string
	for _, file := range theirs {
		want = append(want, `"`+file+`"`)
	}
	if diff := cmp.Diff(want, result.Detached); diff != "" {
		t.Errorf("the disks that the deletion says it kept (-want +got):\n%s", diff)
	}
	if sent := v.Front.Sent("ReconfigVM_Task"); sent != 1 {
		t.Errorf("%d changes were sent, want one for all disks", sent)
	}
}

func TestDisksAreNamedAfterADetachThatTakesLongOrWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		prevent func(v *vcenter) (end func())
		want    cloud.Kind
	}{
		"its task takes longer than the call": {func(v *vcenter) func() { return v.HoldChanges() }, cloud.Busy},
		"its answer is lost":                  {func(v *vcenter) func() { return v.Front.Lose("ReconfigVM_Task") }, cloud.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVCenter(t)
			c := v.client(t)
			created := withDisk(t, c)
			file := v.attach(t, "volumes/a.vmdk")
			end := tc.prevent(v)
			result, err := c.DeleteServer(t.Context(), created.ID)
			wantError(t, err, tc.want)
			if len(result.Detached) > 0 {
				t.Errorf("the deletion that fails names %v", result.Detached)
			}
			end()
			v.untilDetached(t, file)
			result, err = v.client(t).DeleteServer(t.Context(), created.ID) // as after a restart
			if err != nil {
				t.Fatalf("DeleteServer: %v", err)
			}
			if diff := cmp.Diff([]string{`"` + file + `"`}, result.Detached); diff != "" {
				t.Errorf("the disks that the deletion says it kept (-want +got):\n%s", diff)
			}
		})
	}
}

// untilDetached waits until the VM of withDisk has no disk with this file.
func (v *vcenter) untilDetached(t *testing.T, file string) {
	t.Helper()
	pause := time.NewTicker(10 * time.Millisecond)
	defer pause.Stop()
	for slices.Contains(v.DiskFiles("db"), file) {
		select {
		case <-pause.C:
		case <-t.Context().Done():
			t.Fatal("the disk is still attached")
		}
	}
}

func TestReadsOfDisksBeforeDeletionsAreShared(t *testing.T) {
	const n = 20
	v := newVCenter(t)
	v.Front.LeaveStopped()
	c := v.client(t)
	ids := make([]string, n)
	for i := range ids {
		ids[i] = create(t, c, cloud.CreateServer{Name: fmt.Sprintf("vm-%d", i), IdempotencyKey: uuid.NewString()}).ID
	}
	v.Front.ForgetCalls()
	reads := v.Front.Sent("RetrievePropertiesEx")
	var deletions sync.WaitGroup
	for _, id := range ids {
		deletions.Go(func() {
			if _, err := c.DeleteServer(t.Context(), id); err != nil {
				t.Errorf("DeleteServer(%s): %v", id, err)
			}
		})
	}
	deletions.Wait()
	if calls := v.Front.Sent("RetrievePropertiesEx") - reads; calls > n {
		t.Errorf("%d reads for %d deletions, want at most %d: %v", calls, n, n, v.Front.Calls())
	}
	if sent := v.Front.Sent("Destroy_Task"); sent != n {
		t.Errorf("%d deletions were sent, want %d", sent, n)
	}
}

func TestDiskThatIsAttachedWhileOthersAreDetachedOutlivesTheVM(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := withDisk(t, c)
	first, second := v.attach(t, "volumes/a.vmdk"), ""
	var changes atomic.Int32
	v.Front.Rewrite(func(method, body string) string {
		if method == "ReconfigVM_Task" && changes.Add(1) == 1 {
			second = v.attach(t, "volumes/b.vmdk")
		}
		return body
	})
	_, err := c.DeleteServer(t.Context(), created.ID)
	wantError(t, err, cloud.Busy)
	remove(t, c, created.ID)
	if !v.HasFile(first) || !v.HasFile(second) {
		t.Errorf("%s exists: %t, %s exists: %t, want both", first, v.HasFile(first), second, v.HasFile(second))
	}
}

func TestVMOfWhichASnapshotHasADiskOfOthersIsNotDestroyed(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := withDisk(t, c)
	file := v.attach(t, "volumes/a.vmdk")
	snapshot, err := c.CreateSnapshot(t.Context(), cloud.CreateSnapshot{ServerID: created.ID, Name: "before"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.DeleteServer(t.Context(), created.ID)
	wantError(t, err, cloud.Rejected, "a snapshot of the VM has", file)
	if v.VM("db") == nil || !v.HasFile(file) || v.Front.Sent("Destroy_Task") > 0 || v.Front.Sent("ReconfigVM_Task") > 0 {
		t.Errorf("the VM was changed: %d deletions, %d changes", v.Front.Sent("Destroy_Task"), v.Front.Sent("ReconfigVM_Task"))
	}
	if err := c.DeleteSnapshot(t.Context(), created.ID, snapshot.ID); err != nil {
		t.Fatal(err)
	}
	remove(t, c, created.ID)
	if !v.HasFile(file) {
		t.Errorf("%s was destroyed with the VM", file)
	}
}

func TestVMWhoseDisksCannotBeReadIsNotDestroyed(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := withDisk(t, c)
	restore := v.Front.Rewrite(func(method, body string) string {
		if method == "RetrievePropertiesEx" {
			return strings.ReplaceAll(body, "config.hardware.device<", "config.hardware.memoryMB<")
		}
		return body
	})
	_, err := c.DeleteServer(t.Context(), created.ID)
	wantError(t, err, cloud.Unavailable, "disks of the VM cannot be read")
	restore()
	remove(t, c, created.ID)
}
