package approval

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// change returns a change from its text: the action, the name or id after #, and details after a colon.
func change(text string) pcapi.PlannedChange {
	head, details, _ := strings.Cut(text, ": ")
	fields := strings.Fields(head)
	c := pcapi.PlannedChange{Action: pcapi.PlannedAction(fields[0])}
	for _, field := range fields[1:] {
		switch {
		case strings.HasPrefix(field, "#"):
			c.ID = field
		case strings.HasPrefix(field, "@"): // members
			c.Members = strings.Split(field[1:], ",")
			if len(c.Members) > 1 {
				c.Count = int32(len(c.Members))
			}
		case strings.HasPrefix(field, "x"):
			_, _ = fmt.Sscanf(field, "x%d", &c.Count)
		case field == "restart":
			c.IfStopNeeded = pcapi.StopNeededRestart
		default:
			c.Name = field
		}
	}
	if details != "" {
		c.Details = strings.Split(details, ", ")
	}
	return c
}

func changes(texts ...string) []pcapi.PlannedChange {
	var all []pcapi.PlannedChange
	for _, text := range texts {
		all = append(all, change(text))
	}
	return all
}

func TestCovers(t *testing.T) {
	for name, tc := range map[string]struct {
		approved, left []string
		want           bool
	}{
		"the same":                              {[]string{"Create web: cpu 2", "PowerOff web"}, []string{"Create web: cpu 2", "PowerOff web"}, true},
		"the last ones":                         {[]string{"Create web: cpu 2", "PowerOff web"}, []string{"PowerOff web #1"}, true},
		"nothing":                               {[]string{"Create web"}, nil, true},
		"another one":                           {[]string{"Create web"}, []string{"PowerOn web"}, false},
		"one more":                              {[]string{"Update web: cpu 2 to 4"}, []string{"Update web: cpu 2 to 4", "PowerOn web"}, false},
		"the same one twice":                    {[]string{"PowerOn web"}, []string{"PowerOn web", "PowerOn web"}, false},
		"a part of the details":                 {[]string{"Update web: cpu 2 to 4, memory 1Gi to 2Gi"}, []string{"Update web: memory 1Gi to 2Gi"}, true},
		"another detail":                        {[]string{"Update web: cpu 2 to 4"}, []string{"Update web: cpu 3 to 4"}, false},
		"another name":                          {[]string{"Delete web"}, []string{"Delete db"}, false},
		"another id":                            {[]string{"Delete web #1"}, []string{"Delete web #2"}, false},
		"a start after a stop for a size":       {[]string{"Update web restart: cpu 2 to 4"}, []string{"Update web: cpu 2 to 4", "PowerOn web"}, true},
		"a start of another after such a stop":  {[]string{"Update web restart: cpu 2 to 4"}, []string{"PowerOn db"}, false},
		"a start of a restart":                  {[]string{"Restart web"}, []string{"PowerOn web"}, true},
		"a suspension is no part of a restart":  {[]string{"Restart web"}, []string{"Suspend web"}, false},
		"fewer members":                         {[]string{"Create x3: cpu 2"}, []string{"Create x2: cpu 2"}, true},
		"more members":                          {[]string{"Create x3: cpu 2"}, []string{"Create x4: cpu 2"}, false},
		"more members in two entries":           {[]string{"Create x3: cpu 2"}, []string{"Create x2: cpu 2", "Create x2: cpu 2"}, false},
		"members of two entries":                {[]string{"Create x1: cpu 2", "Create x2: cpu 2"}, []string{"Create x3: cpu 2"}, true},
		"members with other details":            {[]string{"Create x3: cpu 2"}, []string{"Create x2: cpu 4"}, false},
		"without details in place of some":      {[]string{"Create x3"}, []string{"Create x2: cpu 4"}, false},
		"a deletion in place of a create":       {[]string{"Create x3"}, []string{"Delete x1"}, false},
		"a restart includes starts of a member": {[]string{"Update x2 restart: cpu 2 to 4"}, []string{"Update: cpu 2 to 4", "PowerOn"}, true},
		"the same members":                      {[]string{"Delete @a,b"}, []string{"Delete @a,b"}, true},
		"one of the members":                    {[]string{"Delete @a,b"}, []string{"Delete @b"}, true},
		"another member":                        {[]string{"Delete @a"}, []string{"Delete @db"}, false},
		"another member beside one":             {[]string{"Delete @a,b"}, []string{"Delete @a,db"}, false},
		"a member twice":                        {[]string{"PowerOn @a"}, []string{"PowerOn @a", "PowerOn @a"}, false},
		"members that the plan only counts":     {[]string{"Delete @a x3"}, []string{"Delete @a,c,d"}, true},
		"more members than the plan counts":     {[]string{"Delete @a x3"}, []string{"Delete @c,d,e"}, false},
		"a restart of a member, its starts":     {[]string{"Update @a,b restart: cpu 2 to 4"}, []string{"Update @b: cpu 2 to 4", "PowerOn @a", "PowerOn @b"}, true},
		"a restart that waited for a stop":      {[]string{"Update web: cpu 2 to 4"}, []string{"Update web restart: cpu 2 to 4"}, false},
		"a restart of a member, another one":    {[]string{"Update @a restart: cpu 2 to 4"}, []string{"PowerOn @db"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := covers(changes(tc.approved...), changes(tc.left...)); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestStartAfterAStopByHandIsCovered(t *testing.T) {
	approved := changes("Update web: cpu 2 to 4")
	approved[0].IfStopNeeded = pcapi.StopNeededWait
	if left := changes("Update web: cpu 2 to 4", "PowerOn web"); !covers(approved, left) || covers(approved, changes("PowerOff web")) {
		t.Error("a change that waits for a stop includes the start after it, and no stop")
	}
	if !covers(changes("Revert web"), changes("PowerOn web")) {
		t.Error("a revert includes the start after it")
	}
}

func TestChangesOfGroupAreApprovedOnce(t *testing.T) {
	vm := vmWith(&pcapi.PlanStatus{Number: 3, Hash: "h", Phase: pcapi.PlanApproved, Generation: 7, Changes: changes("Create x3")}, "h")
	decide := func(left ...string) Decision { return Decide(vm, Planned{Changes: changes(left...), Once: true}) }
	if d := decide("Create x3"); d.Store != nil || d.Wait != nil {
		t.Errorf("nothing is made: %+v", d)
	}
	d := decide("Create x2")
	if d.Wait != nil || d.Store == nil || d.Store.Hash != "h" || d.Store.Phase != pcapi.PlanApproved {
		t.Fatalf("one is made: %+v", d)
	}
	vm.SetPlan(d.Store)
	if d := decide("Create x3"); d.Wait == nil {
		t.Errorf("one more again: %+v", d)
	}
}

func TestPlanIsOfOneCloud(t *testing.T) {
	for _, phase := range []pcapi.PlanPhase{pcapi.PlanPending, pcapi.PlanApproved} {
		vm := vmWith(&pcapi.PlanStatus{Number: 3, Hash: "h", Phase: phase, Generation: 7, Cloud: "home", Changes: changes("Create web")}, "h")
		if d := Decide(vm, Planned{Cloud: "home", Changes: changes("Create web")}); d.Wait != nil {
			t.Errorf("%s: %v", phase, d.Wait)
		}
		if d := Decide(vm, Planned{Cloud: "other", Changes: changes("Create web")}); d.Wait == nil {
			t.Errorf("%s: the plan holds on another Cloud", phase)
		}
	}
}

func TestChangesOfMembersAreMerged(t *testing.T) {
	var all []pcapi.PlannedChange
	all = append(all, OfMember("", changes("Create new-1: cpu 2", "Create new-2: cpu 2"))...)
	all = append(all, OfMember("web-b", changes("Delete old-b #1", "Create b: cpu 2"))...)
	all = append(all, OfMember("web-a", changes("Delete old-a #2: its snapshots", "Delete old-a #2"))...)
	got := Merged(append(all, changes("Create: cpu 4", "Create x3: cpu 2")...))
	want := changes("Create x6: cpu 2", "Create: cpu 4", "Delete @web-a,web-b", "Delete @web-a: its snapshots")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPlanIsBounded(t *testing.T) {
	var many []pcapi.PlannedChange
	for i := range 100 {
		many = append(many, change(fmt.Sprintf("Update vm-%d: cpu %d to 400", i, i)))
	}
	many = append(many, pcapi.PlannedChange{Action: pcapi.PlannedUpdate, Name: "web", Details: []string{strings.Repeat("ä", 2000)}})
	for i := range many {
		many[i] = OfMember(fmt.Sprintf("m-%03d", i), many[i:i+1])[0]
	}
	got := bounded(many)
	if len(got) != 1 || got[0].Count != 101 || len(got[0].Members) != 101 || len(got[0].Details) != 1 {
		t.Errorf("many changes: %+v", got)
	}
	other := slices.Clone(many)
	other[50].Details = []string{"disk data 1Gi to 64Ti"}
	if slices.Equal(bounded(other)[0].Details, got[0].Details) {
		t.Error("two plans of many changes that differ in a detail are the same")
	}
	wide := make([]pcapi.PlannedChange, 64)
	for i := range wide {
		wide[i] = pcapi.PlannedChange{Action: pcapi.PlannedUpdate, Members: make([]string, 150), Count: 150, Details: slices.Repeat([]string{strings.Repeat("x", maxDetail-1) + fmt.Sprint(i)}, maxDetails)}
		for j := range wide[i].Members {
			wide[i].Members[j] = strings.Repeat("n", 253)
		}
	}
	if text, err := json.Marshal(bounded(wide)); err != nil || len(text) > 1<<20 {
		t.Errorf("a plan of %d bytes: %v", len(text), err)
	}
	huge := []pcapi.PlannedChange{{Action: pcapi.PlannedDelete, Count: 9_000, Members: make([]string, 9_000)}, {Action: pcapi.PlannedPowerOn, Count: 2_000, Members: make([]string, 2_000)}}
	if got := bounded(huge); len(got[0].Members) != 9_000 || len(got[1].Members) != 1_000 || got[1].Count != 2_000 {
		t.Errorf("a plan names %d and %d members", len(got[0].Members), len(got[1].Members))
	}
	if got := bounded(many[100:])[0].Details[0]; len(got) > maxDetail || !strings.HasPrefix(got, "ä") {
		t.Errorf("a detail of %d bytes", len(got))
	}
	if got := len(many[100].Details[0]); got != 4000 {
		t.Errorf("the change that was planned has a detail of %d bytes, want 4000", got)
	}
}

func vmWith(plan *pcapi.PlanStatus, approved string) *pcapi.VM {
	return &pcapi.VM{
		ObjectMeta: metav1.ObjectMeta{UID: "1", Generation: 7, Annotations: map[string]string{pcapi.ApprovedPlanAnnotation: approved}},
		Spec:       pcapi.VMSpec{Approval: pcapi.ApprovalRequired},
		Status:     pcapi.VMStatus{Plan: plan},
	}
}

func TestDecide(t *testing.T) {
	create := changes("Create web")
	in := func(phase pcapi.PlanPhase, generation int64, changes ...pcapi.PlannedChange) *pcapi.PlanStatus {
		return &pcapi.PlanStatus{Number: 3, Hash: "h", Phase: phase, Generation: generation, Changes: changes}
	}
	for name, tc := range map[string]struct {
		plan       *pcapi.PlanStatus
		annotation string
		// number of the plan that waits; 0 if it is approved. stores is whether that is stored now.
		waits  int64
		stores bool
	}{
		"no plan yet":                     {nil, "", 1, false},
		"a plan that nobody approved":     {in(pcapi.PlanPending, 7, create...), "", 3, false},
		"another plan is approved":        {in(pcapi.PlanPending, 7, create...), "x", 3, false},
		"it is approved":                  {in(pcapi.PlanPending, 7, create...), "h", 0, true},
		"it is approved, the spec edited": {in(pcapi.PlanPending, 6, create...), "h", 4, false},
		"the plan has changed":            {in(pcapi.PlanPending, 7, changes("Create db")...), "h", 4, false},
		"it is being applied":             {in(pcapi.PlanApproved, 7, create...), "", 0, false},
		"it is applied, the spec edited":  {in(pcapi.PlanApproved, 6, create...), "h", 4, false},
		"a larger plan is being applied":  {in(pcapi.PlanApproved, 7, changes("Create web", "PowerOff web")...), "h", 0, false},
		"another plan is being applied":   {in(pcapi.PlanApproved, 7, changes("PowerOff web")...), "h", 4, false},
		"the same plan was applied":       {in(pcapi.PlanApplied, 7, create...), "h", 4, false},
		"the same plan was obsolete":      {in(pcapi.PlanObsolete, 7, create...), "h", 4, false},
	} {
		t.Run(name, func(t *testing.T) {
			vm := vmWith(tc.plan, tc.annotation)
			decision := Decide(vm, Planned{Changes: create})
			approved, outcome := decision.Store, decision.Wait
			if (approved != nil) != tc.stores {
				t.Errorf("to be stored: %+v, want %v", approved, tc.stores)
			}
			if approved != nil && (approved.Phase != pcapi.PlanApproved || approved.Generation != 7 || approved.Hash != "h") {
				t.Errorf("to be stored: %+v", approved)
			}
			if (outcome != nil) != (tc.waits > 0) {
				t.Fatalf("outcome %v", outcome)
			}
			if outcome == nil {
				return
			}
			Report(vm, outcome)
			plan := vm.Status.Plan
			if plan.Number != tc.waits || plan.Phase != pcapi.PlanPending || plan.Generation != 7 || !cmp.Equal(plan.Changes, create) {
				t.Errorf("reported %+v", plan)
			}
			if reconciler.Reason(outcome) != pcapi.ApprovalRequiredReason || !strings.Contains(outcome.Error(), plan.Hash) {
				t.Errorf("outcome %v", outcome)
			}
		})
	}
}

func TestHashIsOfOnePlanOfOneObject(t *testing.T) {
	seen := map[string]bool{}
	for _, uid := range []types.UID{"1", "2"} {
		for number := range int64(3) {
			for _, text := range []string{"Create web", "Create web: cpu 2", "Delete web"} {
				vm := vmWith(&pcapi.PlanStatus{Number: number, Phase: pcapi.PlanApplied}, "")
				vm.UID = uid
				Report(vm, Decide(vm, Planned{Changes: changes(text)}).Wait)
				seen[vm.Status.Plan.Hash] = true
			}
		}
	}
	if len(seen) != 18 {
		t.Errorf("%d hashes of 18 plans", len(seen))
	}
}

func TestReport(t *testing.T) {
	failed := errors.New("failed")
	for name, tc := range map[string]struct {
		phase, want pcapi.PlanPhase
		policy      pcapi.ApprovalPolicy
		outcome     error
	}{
		"in sync":                             {pcapi.PlanApproved, pcapi.PlanApplied, pcapi.ApprovalRequired, nil},
		"in sync without the approval":        {pcapi.PlanPending, pcapi.PlanObsolete, pcapi.ApprovalRequired, nil},
		"a failure":                           {pcapi.PlanApproved, pcapi.PlanApproved, pcapi.ApprovalRequired, failed},
		"a failure before the approval":       {pcapi.PlanPending, pcapi.PlanPending, pcapi.ApprovalRequired, failed},
		"no approval is required any more":    {pcapi.PlanPending, pcapi.PlanObsolete, "", failed},
		"an applied plan":                     {pcapi.PlanApplied, pcapi.PlanApplied, pcapi.ApprovalRequired, nil},
		"an obsolete plan":                    {pcapi.PlanObsolete, pcapi.PlanObsolete, pcapi.ApprovalRequired, nil},
		"an applied one of another policy":    {pcapi.PlanApplied, pcapi.PlanApplied, "", failed},
		"no approval required while applying": {pcapi.PlanApproved, pcapi.PlanObsolete, "", failed},
	} {
		t.Run(name, func(t *testing.T) {
			vm := vmWith(&pcapi.PlanStatus{Phase: tc.phase}, "")
			vm.Spec.Approval = tc.policy
			Report(vm, tc.outcome)
			if got := vm.Status.Plan.Phase; got != tc.want {
				t.Errorf("phase %s, want %s", got, tc.want)
			}
		})
	}
}

// TestWhatIsCutCounts: two plans that differ in what they cannot show are two plans.
func TestWhatIsCutCounts(t *testing.T) {
	long := strings.Repeat("x", 5000)
	details := make([]string, 200)
	for i := range details {
		details[i] = fmt.Sprint("detail ", i)
	}
	first, second := slices.Clone(details), slices.Clone(details)
	first[0], second[199] = long+"a", "another"
	for _, other := range [][]string{details, append([]string{long + "b"}, details[1:]...), second} {
		a, b := boundedDetails(first), boundedDetails(other)
		if len(a) != maxDetails || len(b) != maxDetails || slices.Equal(a, b) {
			t.Errorf("%d and %d details, the same: %v", len(a), len(b), slices.Equal(a, b))
		}
		for _, detail := range slices.Concat(a, b) {
			if len(detail) > maxDetail {
				t.Errorf("a detail of %d bytes", len(detail))
			}
		}
	}
}

func TestApproverIsRecorded(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for annotation, want := range map[string]string{
		"h": "", "h alice": "alice", "h system:serviceaccount:ns:bot": "system:serviceaccount:ns:bot", "h VmGroup/web (alice)": "VmGroup/web (alice)",
		"h \x1b[2Jeve\nx": "?[2Jeve?x", "h " + strings.Repeat("ä", 400): strings.Repeat("ä", maxApprover/2),
	} {
		vm := vmWith(&pcapi.PlanStatus{Number: 3, Hash: "h", Phase: pcapi.PlanPending, Generation: 7, Changes: changes("Create web")}, annotation)
		d := Decide(vm, Planned{Changes: changes("Create web"), Now: now})
		if d.Store == nil || d.Store.ApprovedBy != want || !d.Store.ApprovedTime.Time.Equal(now) || !Approved(vm) {
			t.Errorf("%q: %+v", annotation, d.Store)
		}
	}
	vm := vmWith(&pcapi.PlanStatus{Number: 3, Hash: "h", Phase: pcapi.PlanApproved, Generation: 6, Changes: changes("Create web"), ApprovedBy: "alice", ApprovedTime: new(metav1.NewTime(now))}, "h alice")
	wait := Decide(vm, Planned{Changes: changes("Create web"), Now: now}).Wait
	Report(vm, wait)
	if plan := vm.Status.Plan; plan.Number != 4 || plan.ApprovedBy != "" || plan.ApprovedTime != nil {
		t.Errorf("the next plan has the approver of the one before: %+v", plan)
	}
}

func TestQuoted(t *testing.T) {
	for text, want := range map[string]string{
		"debian-12": "debian-12", "a/b:c@d.e_f+g=h": "a/b:c@d.e_f+g=h", "": `""`, "Debian 12": `"Debian 12"`,
		"debian), Delete prod-db (ok": `"debian), Delete prod-db (ok"`, "a\x1b[2J": `"a\x1b[2J"`, "a,b": `"a,b"`, `a"b`: `"a\"b"`, "ä": `"ä"`,
	} {
		if got := Quoted(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestDescriptionFitsIntoAnEvent(t *testing.T) {
	if got := Describe([]pcapi.PlannedChange{{Action: pcapi.PlannedCreate, Details: []string{strings.Repeat("ä", 3000)}}}); len(got) > maxText || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"Delete @a": "Delete a", "Delete @a,b": "Delete a and b", "Delete @a,b,c": "Delete a, b and c", "Delete @a,b,c,d": "Delete a, b, c and 1 more member",
		"Delete @a x4": "Delete a and 3 more members", "Create x2: cpu 2": "Create 2 members (cpu 2)", "Create": "Create 1 member", "PowerOn web": "PowerOn web", "PowerOn web), (x": `PowerOn "(x"`,
	} {
		if got := Text(change(text)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestNoteOfTheEventIsBounded(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := pcapi.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	vm := vmWith(nil, "")
	vm.Namespace, vm.Name = "ns", "web"
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(vm).WithStatusSubresource(vm).Build()
	recorder := events.NewFakeRecorder(1)
	plan := &pcapi.PlanStatus{Number: 3, Hash: "h", Phase: pcapi.PlanApproved, ApprovedBy: strings.Repeat("ä", maxApprover/2), Changes: []pcapi.PlannedChange{{Action: pcapi.PlannedCreate, Details: slices.Repeat([]string{strings.Repeat("x", 900)}, 9)}}}
	if err := Store(t.Context(), c, recorder, vm, plan); err != nil {
		t.Fatal(err)
	}
	const start = "Normal PlanApproved "
	if got := <-recorder.Events; !strings.HasPrefix(got, start) || len(got)-len(start) > 1024 || !strings.Contains(got, "approved plan 3: Create") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
