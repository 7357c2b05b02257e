package cloud

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

func TestIgnoredFieldsAreReportedOnce(t *testing.T) {
	w := newWorld(t, home(), newCloud(nil, server("a")))
	w.ignored = []string{"createdAt: not a time", "labels: not an object"}
	w.reconcile()
	w.wantCondition(pcapi.ReadyCondition, "True Connected")
	w.wantCondition(pcapi.ConformantCondition, "False FieldsIgnored", "createdAt: not a time; labels: not an object")
	writes := len(w.writes)
	for range 5 {
		w.later()
	}
	equal(t, "writes at rest", 0, len(w.writes)-writes)

	w.ignored = nil
	w.later()
	w.wantCondition(pcapi.ConformantCondition, "False FieldsIgnored")
	w.later()
	w.later()
	w.wantCondition(pcapi.ConformantCondition, "True Readable")
	equal(t, "writes", 1, len(w.writes)-writes)
}

// TestFieldsThatAreIgnoredNowAndThenDoNotMakeTheConditionFlap ignores a field of
// an answer that is not read between each two listings.
func TestFieldsThatAreIgnoredNowAndThenDoNotMakeTheConditionFlap(t *testing.T) {
	w := newWorld(t, home(), newCloud(nil, server("a")))
	w.ignored = []string{"cpuUtilization: not a number"}
	w.reconcile()
	writes := len(w.writes)
	for i := range 10 {
		w.ignored = nil
		if i%2 == 1 {
			w.ignored = []string{"cpuUtilization: not a number"}
		}
		w.later()
		w.wantCondition(pcapi.ConformantCondition, "False FieldsIgnored")
	}
	w.start()
	w.ignored = nil
	w.reconcile()
	w.wantCondition(pcapi.ConformantCondition, "False FieldsIgnored")
	equal(t, "writes", 0, len(w.writes)-writes)
	for range 3 {
		w.later()
	}
	w.wantCondition(pcapi.ConformantCondition, "True Readable")
}

func TestIgnoredFieldsAreBounded(t *testing.T) {
	w := newWorld(t, home(), newCloud(nil, server("a")))
	for i := range 1000 {
		w.ignored = append(w.ignored, fmt.Sprintf("field%03d: %s", i, strings.Repeat("ü", 200)))
	}
	w.reconcile()
	if message := conditionMessage(w, pcapi.ConformantCondition); len(message) > 2*maxIgnoredText || !strings.Contains(message, "field000") {
		t.Errorf("the message has %d bytes", len(message))
	}
	equal(t, "remembered", maxIgnored, len(w.kind.memoryOf(home()).ignored))
}

func TestUnreadableUtilizationIsReportedOnTheCloud(t *testing.T) {
	f := newCloud(nil, server("a"))
	w := newWorld(t, home(), f)
	w.reconcile()
	w.wantCondition(pcapi.ConformantCondition, "True Readable")
	f.FailAlways(cloudfake.ServerStatus, &cloud.Error{Kind: cloud.Unreadable, Op: "read status of server a", Detail: "cpuUtilization is 12%"}, false)
	if _, err := w.inv.Utilization.Read(t.Context(), "a"); !cloud.Is(err, cloud.Unreadable) {
		t.Fatalf("Utilization failed with %v, want Unreadable", err)
	}
	w.later()
	w.wantCondition(pcapi.ConformantCondition, "False FieldsIgnored", "utilization: read status of server a: cpuUtilization is 12%")
	w.wantCondition(pcapi.ReadyCondition, "True Connected")
	f.Heal()
	if _, err := w.inv.Utilization.Read(t.Context(), "a"); err != nil {
		t.Fatalf("Utilization: %v", err)
	}
	w.later()
	w.wantCondition(pcapi.ConformantCondition, "True Readable")
}

func TestReportConformant(t *testing.T) {
	was := func(reason, message string) func(*pcapi.Cloud) {
		return func(c *pcapi.Cloud) {
			c.Status.Conditions = []metav1.Condition{{Type: pcapi.ConformantCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
		}
	}
	ignoring := func(fields ...string) func(*observation) { return func(s *observation) { s.ignored = fields } }
	lacking := func(ids ...string) func(*observation) { return func(s *observation) { s.incomplete = ids } }
	early := func(s *observation) { s.early = true }
	const (
		ignored    = "Conformant=False FieldsIgnored: parts of the cloud's answers cannot be read and are ignored: "
		incomplete = "Conformant=False ListingIncomplete: the listing lacks servers that the cloud returns by id, such as s1: " +
			"VMs of such servers are read one by one; check whether the cloud caps its listing. " +
			"A server that was deleted no longer counts once reads of it have answered 404 for settleTime while the cloud returned a server that it lists: if it lists none, create one"
	)
	tests := []struct {
		name  string
		cloud *pcapi.Cloud
		obs   *observation
		want  []string
	}{
		{name: "no listing, and none before", cloud: home(), obs: observed(unlisted)},
		{name: "no listing: it stays", cloud: home(was(pcapi.FieldsIgnoredReason, "x")), obs: observed(unlisted), want: []string{"Conformant=False FieldsIgnored: x"}},
		{name: "all is read", cloud: home(), obs: observed(), want: []string{readable}},
		{name: "all is read again", cloud: home(was(pcapi.FieldsIgnoredReason, "x")), obs: observed(), want: []string{readable}},
		{name: "all that was listed is read, soon after a start: it stays", cloud: home(was(pcapi.FieldsIgnoredReason, "x")), obs: observed(early), want: []string{"Conformant=False FieldsIgnored: x"}},
		{name: "fields are ignored", cloud: home(), obs: observed(ignoring("a: 1", "b: 2")), want: []string{ignored + "a: 1; b: 2"}},
		{name: "other fields are ignored", cloud: home(was(pcapi.FieldsIgnoredReason, "x")), obs: observed(ignoring("a: 1"), early), want: []string{ignored + "a: 1"}},
		{name: "the listing is incomplete", cloud: home(), obs: observed(lacking("s1", "s2")), want: []string{incomplete}},
		{name: "the listing is complete soon after a start", cloud: home(was(pcapi.ListingIncompleteReason, "x")), obs: observed(early), want: []string{readable}},
		{name: "both", cloud: home(), obs: observed(lacking("s1"), ignoring("a: 1")), want: []string{incomplete + ". parts of the cloud's answers cannot be read and are ignored: a: 1"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			reportConformant(tc.cloud, tc.obs)
			equal(t, "conditions", tc.want, sum(tc.cloud.Status).Conditions)
		})
	}
}

func TestConformantIsNotReportedForAFailedListing(t *testing.T) {
	f := newCloud(nil, server("a"))
	f.FailAlways(cloudfake.ListServers, errGarbage, false)
	w := newWorld(t, home(), f)
	w.ignored = []string{"createdAt: not a time"}
	w.reconcile()
	w.wantCondition(pcapi.ReadyCondition, "False PollFailed")
	w.wantCondition(pcapi.ConformantCondition, "")
	f.Heal()
	w.now = w.now.Add(time.Minute)
	w.reconcile()
	w.wantCondition(pcapi.ConformantCondition, "False FieldsIgnored")
}

func TestServersWithoutTheOwnerLabelsOfTheirCreatesAreReported(t *testing.T) {
	labels := cloud.NewCapabilities(cloud.Labels)
	own := server("v00", ownedBy("v00", "here"))
	tests := []struct {
		name   string
		caps   cloud.Capabilities
		server cloud.Server
		change func(*pcapi.VM)
		want   string
	}{
		{name: "with their labels", caps: labels, server: own, want: "True Readable"},
		{name: "dropped", caps: labels, server: server("v00"), want: "False LabelsNotKept"},
		{name: "in upper case", caps: labels, server: server("v00", func(s *cloud.Server) { s.Labels = map[string]string{inventory.UIDLabel: "UID-V00"} }), want: "False LabelsNotKept"},
		{name: "of another owner", caps: labels, server: server("v00", ownedBy("other", "here")), want: "True Readable"},
		{name: "being built", caps: labels, server: server("v00", func(s *cloud.Server) { s.State = cloud.StateBuilding }), want: "True Readable"},
		{name: "imported", caps: labels, server: server("v00"), change: func(vm *pcapi.VM) { vm.Spec.Import = &pcapi.VMImport{VMID: "v00"} }, want: "True Readable"},
		{name: "on a cloud without labels", caps: nil, server: server("v00"), want: "True Readable"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			changes := []func(*pcapi.VM){}
			if tc.change != nil {
				changes = append(changes, tc.change)
			}
			w := newWorld(t, home(), newCloud(tc.caps, tc.server), vm("v00", changes...))
			w.reconcile()
			w.wantCondition(pcapi.ConformantCondition, tc.want)
			writes := len(w.writes)
			for range 3 {
				w.later()
			}
			w.wantCondition(pcapi.ConformantCondition, tc.want)
			equal(t, "writes at rest", 0, len(w.writes)-writes)
		})
	}
}
