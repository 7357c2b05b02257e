package approval

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

func TestUnnamed(t *testing.T) {
	got := Unnamed(changes("Create a: cpu 2", "Delete old #1", "Create b: cpu 2", "Create c: cpu 4", "Create x3: cpu 2"))
	want := changes("Create x5: cpu 2", "Create: cpu 4", "Delete")
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
	if diff := cmp.Diff(changes("Update x101"), bounded(many)); diff != "" {
		t.Errorf("many changes (-want +got):\n%s", diff)
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
