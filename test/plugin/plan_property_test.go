package plugin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/plugin/plan"
	"github.com/privatecloud/operator/internal/plugin/plugintest"
	"github.com/privatecloud/operator/mockcloud"
)

// planSeed makes the edits of a run the same as those of another. PLAN_SEED is another one.
const planSeed = 20261125

// planCases are clouds, each with the number of edits that are planned and made on it with PLAN=full, which "make test-long" sets; a
// quarter of them otherwise.
var planCases = map[string]struct {
	edits int
	// restarts: sizes are changed while a server is off only.
	restarts bool
	lacks    []mockcloud.Capability
}{
	"plan-all":     {edits: 500},
	"plan-stopped": {edits: 250, restarts: true},
	"plan-core":    {edits: 250, lacks: []mockcloud.Capability{mockcloud.Resize, mockcloud.Suspend, mockcloud.Disks, mockcloud.Networks}},
}

// TestPlannedChangesAreThoseInTheCloud makes random edits: for each, the changes in the
// ledger of the cloud are those that the plan had, no more and no fewer.
func TestPlannedChangesAreThoseInTheCloud(t *testing.T) {
	seed := uint64(planSeed)
	if text := os.Getenv("PLAN_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("PLAN_SEED: %v", err)
		}
	}
	t.Logf("PLAN_SEED=%d", seed)
	for name, tc := range planCases {
		if os.Getenv("PLAN") != "full" {
			tc.edits /= 4
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := mockcloud.Options{Capabilities: map[mockcloud.Capability]bool{}, Behaviour: mockcloud.Behaviour{ResizeStopped: tc.restarts}}
			for _, capability := range tc.lacks {
				options.Capabilities[capability] = false
			}
			f := newFixtureOn(t, options, name, nil)
			const objects = 12
			var done sync.WaitGroup
			for i := range objects {
				edits := tc.edits / objects
				if i < tc.edits%objects {
					edits++
				}
				e := &editor{
					fixture: f, random: rand.New(rand.NewPCG(seed, uint64(i))), folder: t.TempDir(), restarts: tc.restarts,
					name: fmt.Sprintf("%s-%02d", name, i), group: i%4 == 3,
				}
				done.Go(func() { e.run(t.Context(), edits) })
			}
			done.Wait()
		})
	}
}

// editor edits one object.
type editor struct {
	*fixture

	random   *rand.Rand
	folder   string
	name     string
	group    bool
	restarts bool

	// spec is that of the object; nil if there is none.
	spec map[string]any
	// seen is how many entries of the ledger were compared.
	seen int
}

func (e *editor) run(ctx context.Context, edits int) {
	for i := range edits {
		if problem := e.edit(ctx); problem != "" {
			e.Errorf("edit %d of %s: %s", i, e.name, problem)
			return
		}
	}
}

// edit plans and makes an edit, and returns how the changes differ from the plan.
func (e *editor) edit(ctx context.Context) string {
	deletes := e.spec != nil && e.random.IntN(10) == 0
	next := e.next()
	manifest := e.manifest(next)
	text, err := yaml.Marshal(manifest)
	if err != nil {
		return err.Error()
	}
	file := filepath.Join(e.folder, "object.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err.Error()
	}
	args := []string{"plan", "-o", "json", "--server-side", "-f", file, "--cache-dir", e.folder}
	if deletes {
		args = append(args, "--delete")
	}
	planned := plugintest.Setup{Kubeconfig: env.Kubeconfig()}.Run(ctx, args...)
	var p plan.Plan
	if err := json.Unmarshal([]byte(planned.Out), &p); err != nil || len(p.Objects) != 1 {
		return fmt.Sprintf("plan of\n%s: %v %s %s", text, err, planned.Err, planned.Out)
	}
	if deletes {
		err = env.Client.Delete(ctx, manifest)
	} else {
		err = env.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(manifest.DeepCopy()), client.FieldOwner("kubectl"))
	}
	if refused := p.Objects[0].Error != ""; refused != (err != nil) {
		return fmt.Sprintf("the plan has the error %q, the API server answers %v to\n%s", p.Objects[0].Error, err, text)
	} else if refused {
		return ""
	}
	before := e.spec
	if e.spec = next; deletes {
		e.spec = nil
	}
	if problem := e.waitUntilDone(ctx); problem != "" {
		return fmt.Sprintf("%s\n%s, planned %s", problem, text, planned.Out)
	}
	if diff := cmp.Diff(e.expected(p.Objects[0]), e.effects()); diff != "" {
		return fmt.Sprintf("changes in the cloud (-planned +made):\n%s\nbefore: %v\ndeleted: %v, manifest:\n%s\nplan: %s", diff, before, deletes, text, planned.Out)
	}
	for _, server := range e.cloud.Servers() {
		if deletes && server.Name == e.name { // it was released, and its name is taken until somebody deletes it
			if err := e.cloud.DeleteServer(server.ID); err != nil {
				return err.Error()
			}
		}
	}
	return ""
}

func (e *editor) pick(values ...any) any { return values[e.random.IntN(len(values))] }

// next returns the spec after a random edit.
func (e *editor) next() map[string]any {
	spec := map[string]any{}
	maps.Copy(spec, e.spec)
	if e.group {
		if e.spec == nil {
			spec["replicas"] = 2
		}
		return e.nextGroup(spec)
	}
	if e.spec == nil {
		spec["vmname"], spec["cpu"], spec["memory"], spec["powerOffMode"] = e.name, 2, "2Gi", "Hard"
	}
	if e.restarts {
		spec["updatePolicy"] = "RestartAllowed"
	}
	for range 1 + e.random.IntN(3) {
		switch e.random.IntN(8) {
		case 0:
			spec["cpu"] = e.pick(1, 2, 4, 8)
		case 1:
			spec["memory"] = e.pick("1Gi", "2Gi", "4Gi")
		case 2:
			spec["powerState"] = e.pick("On", "Off", "Suspended", "On")
		case 3:
			spec["disks"] = e.pick([]any{}, []any{disk("data", 1)}, []any{disk("data", 2)}, []any{disk("data", 2), disk("logs", 1)})
		case 4:
			spec["tags"] = e.pick(map[string]any{}, map[string]any{"team": "a"}, map[string]any{"team": "b", "stage": "dev"})
		case 5:
			spec["deletionPolicy"] = e.pick("Delete", "Orphan", "Delete")
		case 6:
			spec["template"] = e.pick("ubuntu-24.04", "debian-12")
		case 7:
			spec["powerOffMode"] = e.pick("Hard", "TrySoft")
		}
	}
	return spec
}

func (e *editor) nextGroup(spec map[string]any) map[string]any {
	for range 1 + e.random.IntN(2) {
		switch e.random.IntN(4) {
		case 0:
			spec["replicas"] = e.random.IntN(4)
		case 1:
			spec["cpu"] = e.pick(1, 2, 4)
		case 2:
			spec["template"] = e.pick("ubuntu-24.04", "debian-12")
		case 3:
			spec["tags"] = e.pick(map[string]any{}, map[string]any{"team": "a"})
		}
	}
	return spec
}

func disk(name string, gib int) map[string]any {
	return map[string]any{"name": name, "size": fmt.Sprintf("%dGi", gib)}
}

func (e *editor) manifest(spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	text, _ := json.Marshal(spec)
	var plain map[string]any
	_ = yaml.Unmarshal(text, &plain)
	u.Object["spec"] = plain
	kind := "VM"
	if e.group {
		kind = "VmGroup"
	}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: pcapi.GroupVersion.Group, Version: pcapi.GroupVersion.Version, Kind: kind})
	u.SetNamespace(e.namespace)
	u.SetName(e.name)
	return u
}

// waitUntilDone waits until the operator has nothing more to do for the object.
func (e *editor) waitUntilDone(ctx context.Context) string {
	var state string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline) && ctx.Err() == nil; <-time.After(10 * time.Millisecond) {
		var done bool
		if done, state = e.isDone(ctx); done {
			return ""
		}
	}
	return "the object is not done: " + state
}

func (e *editor) isDone(ctx context.Context) (done bool, state string) {
	u := e.manifest(nil)
	err := env.Client.Get(ctx, client.ObjectKeyFromObject(u), u)
	if e.spec == nil {
		return apierrors.IsNotFound(err) && !e.anyMember(ctx), fmt.Sprint(err)
	}
	if err != nil {
		return false, err.Error()
	}
	var object struct {
		Status struct {
			ObservedGeneration int64 `json:"observedGeneration"`
			pcapi.VMStatus     `json:",inline"`
		} `json:"status"`
	}
	text, _ := json.Marshal(u.Object)
	if err := json.Unmarshal(text, &object); err != nil {
		return false, err.Error()
	}
	conditions := object.Status.Conditions
	ended := meta.IsStatusConditionTrue(conditions, pcapi.ReadyCondition) || meta.IsStatusConditionTrue(conditions, pcapi.StalledCondition)
	return ended && object.Status.ObservedGeneration == u.GetGeneration(), string(text)
}

// anyMember reports whether a VM of a deleted group is left.
func (e *editor) anyMember(ctx context.Context) bool {
	var vms pcapi.VMList
	err := env.Client.List(ctx, &vms, client.InNamespace(e.namespace), client.MatchingLabels{pcapi.GroupLabel: e.name})
	return err != nil || len(vms.Items) > 0
}

// expected returns the changes of a plan, as the ledger names them.
func (e *editor) expected(o plan.Object) []string {
	made := []string{}
	for _, change := range o.Changes {
		switch change.Action {
		case pcapi.PlannedCreate, pcapi.PlannedDelete:
			made = append(made, strings.ToLower(string(change.Action)))
		case pcapi.PlannedUpdate:
			fields := map[string]bool{}
			for _, detail := range change.Details {
				fields[fieldOf(detail)] = true
			}
			size := fields["cpu"] || fields["memory"] || fields["disks"]
			if e.restarts && size && change.IfStopNeeded == pcapi.StopNeededRestart {
				made = append(made, "powerState", "powerState")
			}
			for field := range fields {
				made = append(made, field)
			}
		case pcapi.PlannedRelease:
			made = append(made, "labels")
		default:
			made = append(made, "powerState")
		}
	}
	slices.Sort(made)
	return made
}

// fieldOf returns the field of the cloud that a detail is about.
func fieldOf(part string) string {
	switch {
	case strings.HasPrefix(part, "disk "), strings.HasPrefix(part, "new disk "):
		return "disks"
	case strings.HasPrefix(part, "tag "), strings.HasPrefix(part, "without tag "):
		return "labels"
	}
	field, _, _ := strings.Cut(part, " ")
	return field
}

// effects returns the changes of the object's servers since it was last called.
func (e *editor) effects() []string {
	made, count := []string{}, 0
	for _, entry := range e.cloud.Ledger() {
		if entry.Name != e.name && !strings.HasPrefix(entry.Name, e.name+"-replica-") {
			continue
		}
		count++
		if count <= e.seen || entry.By != mockcloud.ByClient {
			continue
		}
		switch entry.Op {
		case mockcloud.OpCreate, mockcloud.OpDelete:
			made = append(made, string(entry.Op))
		case mockcloud.OpUpdate:
			for _, field := range entry.Fields {
				if field == "powerOffMode" { // the guest was asked to shut down
					field = "powerState"
				}
				made = append(made, field)
			}
		default:
		}
	}
	e.seen = count
	slices.Sort(made)
	return made
}
