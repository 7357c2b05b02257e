package vm

import (
	"strings"
	"testing"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// chosenNames are names that VMs ask for, and those that clouds give their servers.
var chosenNames = map[string]struct{ asked, given string }{
	"lower case": {"Web-1", "web-1"}, "upper case": {"web-1", "WEB-1"}, "domain": {"web", "web.example.com"}, "prefix": {"web", "tenant-web"},
	"cut": {strings.Repeat("web-", 15) + "w", "web-web-web-web"}, "decomposed": {"caf\u00e9", "cafe\u0301"}, "composed": {"cafe\u0301", "caf\u00e9"},
	"other characters": {"web server", "web-server"},
}

func asking(name string) func(*pcapi.VM) { return func(vm *pcapi.VM) { vm.Spec.VMName = name } }

// give has the cloud give a name to new servers.
func (h *harness) give(name string) { h.cloud.Alter(func(s *cloud.Server) { s.Name = name }) }

func TestNameThatTheCloudChoseIsNoDriftUntilItChanges(t *testing.T) {
	for name, tc := range chosenNames {
		for profile, caps := range map[string]cloud.Capabilities{"labels": everything, "labels alone": profiles["labels alone"], "names": uniqueNamesOnly, "no proofs": withoutProofs} {
			t.Run(name+", "+profile, func(t *testing.T) {
				h := newHarness(t, caps, vmWith(asking(tc.asked)))
				h.give(tc.given)
				for range 3 {
					h.mustReconcile()
					h.later(pollInterval)
				}
				equal(t, "name in the cloud", tc.given, h.vm().Status.NameInCloud)
				h.wantCondition(pcapi.ReadyCondition, "True Running")
				h.start() // the next process
				h.connect()
				h.mustReconcile()
				h.wantCondition(pcapi.ReadyCondition, "True Running")
				h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.Name = "db" })
				h.later(pollInterval)
				h.mustReconcile()
				h.wantCondition(pcapi.ReadyCondition, "False Drift", `"db"`, `"`+tc.given+`"`)
				h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.Name = tc.given })
				h.later(pollInterval)
				h.mustReconcile()
				h.wantCondition(pcapi.ReadyCondition, "True Running")
				h.remove()
				for range 2 {
					h.mustReconcile()
					h.later(settleTime)
				}
				h.wantServers()
				h.wantGone()
				if n := h.cloud.Sent(cloudfake.UpdateServer); n > 0 {
					t.Errorf("%d changes were sent", n)
				}
			})
		}
	}
}

func TestResizeOfServerWhoseNameTheCloudChose(t *testing.T) {
	h := newHarness(t, everything, vmWith())
	h.give("web.example.com")
	h.mustReconcile()
	h.later(time.Second)
	h.edit(func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(4) })
	h.mustReconcile()
	equal(t, "cores", 4, h.cloud.Server("s1").CPU)
	h.later(time.Second)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

// The create was sent with the name before the edit, which no call can change.
func TestNameThatWasEditedAfterTheCreateIsDrift(t *testing.T) {
	for name, tc := range map[string]struct {
		caps  cloud.Capabilities
		given string
	}{
		"labels": {everything, "web"}, "names": {uniqueNamesOnly, "web"}, "labels, and the cloud appends a domain": {everything, "web.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, tc.caps, vmWith())
			h.give(tc.given)
			h.cloud.Fail(cloudfake.CreateServer, errReset, true)
			h.mustReconcile()
			h.edit(asking("db"))
			for range 3 {
				h.later(settleTime)
				h.mustReconcile()
			}
			equal(t, "vmId", "s1", h.vm().Status.VMID)
			h.wantCondition(pcapi.ReadyCondition, "False Drift", `named "`+tc.given+`" in the cloud, not "db"`)
		})
	}
}

func TestServerIsAdoptedUnderTheNameThatTheCloudChose(t *testing.T) {
	for name, tc := range chosenNames {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, everything, vmWith(asking(tc.asked)))
			h.give(tc.given)
			h.cloud.Fail(cloudfake.CreateServer, errReset, true)
			h.mustReconcile()
			h.later(time.Second)
			h.mustReconcile()
			equal(t, "name in the cloud", tc.given, h.vm().Status.NameInCloud)
			h.wantCondition(pcapi.CreatedCondition, "True Adopted")
			h.wantCondition(pcapi.ReadyCondition, "True Running")
			h.remove()
			for range 2 {
				h.mustReconcile()
				h.later(settleTime)
			}
			h.wantServers()
			h.wantGone()
		})
	}
}

// The server of another VM may have a name that is made of that of this VM.
func TestServerOfAnotherVMUnderALongerNameIsNoRival(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{"unique names": without(cloud.Idempotency, cloud.Labels, cloud.ExclusiveNames), "a key and names": without(cloud.Labels)} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, vmWith(), other("b", asking("tenant-web"), func(vm *pcapi.VM) { vm.Status.VMID, vm.Status.NameInCloud = "x1", "tenant-web" }))
			h.cloud.AddServers(cloud.Server{ID: "x1", Name: "tenant-web", State: cloud.StateActive, CPU: 2, CreatedAt: startTime.Add(time.Hour)})
			h.cloud.Fail(cloudfake.CreateServer, errReset, false)
			for range 3 {
				h.mustReconcile()
				h.later(settleTime + time.Second)
			}
			h.wantServers("s1", "x1")
			h.wantCondition(pcapi.CreatedCondition, "True Created")
		})
	}
}

// Where neither a key nor labels lead to the server, the name that the cloud chose may.
func TestLostCreateUnderANameThatTheCloudChoseIsNotRepeated(t *testing.T) {
	for name, tc := range chosenNames {
		for profile, want := range map[string]struct {
			caps  cloud.Capabilities
			alike bool // names that are alike prove the owner
		}{
			"unique names of the operator": {uniqueNamesOnly, true},
			"unique names":                 {without(cloud.Idempotency, cloud.Labels, cloud.ExclusiveNames), false},
			"no proofs":                    {withoutProofs, false},
		} {
			created, blocked := "False Ambiguous", true
			if want.alike && cloud.AlikeNames(tc.asked, tc.given) {
				created, blocked = "True Adopted", false
			}
			t.Run(name+", "+profile, func(t *testing.T) {
				h := newHarness(t, want.caps, vmWith(asking(tc.asked)))
				h.give(tc.given)
				h.cloud.Fail(cloudfake.CreateServer, errReset, true)
				for range 5 {
					h.mustReconcile()
					h.later(settleTime + time.Second)
				}
				h.mustReconcile()
				h.wantServers("s1")
				h.wantCondition(pcapi.CreatedCondition, created)

				h.remove()
				for range 3 {
					h.later(settleTime + time.Second)
					h.mustReconcileIfExists()
				}
				if blocked {
					h.wantServers("s1")
					h.wantCondition(pcapi.DeletingCondition, "True Blocked")
					return
				}
				h.wantServers()
				h.wantGone()
			})
		}
	}
}

// TestServerWithAChosenNameIsImportedAfterALostAnswer takes the way out of Ambiguous that the documentation names.
func TestServerWithAChosenNameIsImportedAfterALostAnswer(t *testing.T) {
	for name, tc := range chosenNames {
		for profile, caps := range map[string]cloud.Capabilities{"unique names of the operator": uniqueNamesOnly, "no proofs": withoutProofs} {
			t.Run(name+", "+profile, func(t *testing.T) {
				h := newHarness(t, caps, vmWith(asking(tc.asked)))
				h.give(tc.given)
				h.cloud.Fail(cloudfake.CreateServer, errReset, true)
				for range 5 {
					h.mustReconcile()
					h.later(settleTime + time.Second)
				}
				if h.vm().Status.VMID == "s1" {
					return
				}
				h.edit(func(vm *pcapi.VM) {
					vm.Spec.VMName, vm.Spec.Import = tc.given, &pcapi.VMImport{VMID: "s1"}
				})
				for range 3 {
					h.mustReconcile()
					h.later(settleTime)
				}
				equal(t, "vmId", "s1", h.vm().Status.VMID)
			})
		}
	}
}

func TestServersOfOtherNamesOrThatAreOlderDoNotPreventASecondCreate(t *testing.T) {
	for _, s := range []cloud.Server{
		{ID: "x1", Name: "web.example.com", State: cloud.StateActive, CreatedAt: startTime.Add(-time.Hour)},
		{ID: "x1", Name: "prodweb", State: cloud.StateActive, CreatedAt: startTime.Add(time.Hour)},
		{ID: "x1", Name: "web2", State: cloud.StateActive, CreatedAt: startTime.Add(time.Hour)},
		{ID: "x1", Name: "we", State: cloud.StateActive, CreatedAt: startTime.Add(time.Hour)},
	} {
		t.Run(s.Name, func(t *testing.T) {
			h := newHarness(t, withoutProofs, vmWith())
			h.cloud.AddServers(s)
			h.cloud.Fail(cloudfake.CreateServer, errReset, false)
			for range 3 {
				h.mustReconcile()
				h.later(settleTime + time.Second)
			}
			h.wantCondition(pcapi.CreatedCondition, "True Created")
		})
	}
}
