package vm

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller/vm/field"
)

// forecastWith returns what a VM leads to as text, on a Cloud that can do all but what a
// change takes from it. Live is nil where the status of the VM shows all.
func forecastWith(t *testing.T, live, vm *pcapi.VM, change ...func(*pcapi.Cloud)) decision {
	t.Helper()
	c := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	c.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue, Reason: pcapi.ConnectedReason}}
	lacking()(c)
	for _, apply := range change {
		apply(c)
	}
	snap := &pcapi.VMSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "before"}, Spec: pcapi.VMSnapshotSpec{VMName: "a"}}
	snap.Status.SnapshotID, snap.Status.VMID, snap.Status.Cloud = "snap1", "s1", "default"
	snap.Status.Conditions = []metav1.Condition{{Type: pcapi.CreatedCondition, Status: metav1.ConditionTrue, Reason: pcapi.CreatedReason}}
	objects := []client.Object{snap, aClass("large", 8, 4), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}}
	if c.Name != "" {
		objects = append(objects, c)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{pcapi.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	forecast, err := NewForecaster(reader, "cluster", func() time.Time { return startTime }).Forecast(t.Context(), live, vm)
	if err != nil {
		t.Fatal(err)
	}
	d := decision{Outcome: describe(forecast.Outcome)}
	for i := range forecast.Changes {
		c := forecast.Changes[i]
		d.Steps = append(d.Steps, fmt.Sprintf("{%s %s %s %v %s}", c.Action, c.Name, c.ID, c.Details, c.IfStopNeeded))
	}
	return d
}

// lacking takes capabilities from a Cloud.
func lacking(missing ...cloud.Capability) func(*pcapi.Cloud) {
	return func(c *pcapi.Cloud) {
		c.Status.Capabilities = nil
		for _, capability := range Assumed {
			if !slices.Contains(missing, capability) {
				c.Status.Capabilities = append(c.Status.Capabilities, string(capability))
			}
		}
	}
}

func noCloud(c *pcapi.Cloud)    { c.Name = "" }
func wasListed(c *pcapi.Cloud)  { c.Status.Servers = &pcapi.CloudServers{} }
func braked(c *pcapi.Cloud)     { c.Status.BrakedSnapshot = "snapshot" }
func anyImports(c *pcapi.Cloud) { c.Spec.Imports = pcapi.ImportPolicyAny }
func elsewhere(c *pcapi.Cloud) {
	c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}}
}
func away(c *pcapi.Cloud) {
	c.Status.Conditions[0].Status, c.Status.Conditions[0].Message = metav1.ConditionFalse, "connection refused"
}

// running is a VM whose status shows a server that runs, with 2 cores and 2 GiB.
func running(change ...func(*pcapi.VM)) *pcapi.VM {
	return vmWith(append(mods(recorded, shows(pcapi.VMStateRunning), func(vm *pcapi.VM) {
		vm.Status.Hardware = &pcapi.VMHardwareStatus{CPU: 2, Memory: new(resource.MustParse("2Gi"))}
	}), change...)...)
}

func hasTiny(vm *pcapi.VM)   { vm.Status.Hardware.Flavor = "tiny" }
func fourCores(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(4) }
func shows(state pcapi.VMState) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Status.State = state }
}
func revertedTo(name string) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Spec.CurrentSnapshotName = name }
}

func TestForecastOfACreate(t *testing.T) {
	type world = []func(*pcapi.Cloud)
	for name, tc := range map[string]struct {
		vm      *pcapi.VM
		cloud   world
		changes []string
		outcome string
	}{
		"on": {vmWith(), nil, []string{"{Create web  [cpu 2] }"}, "in sync"},
		"all that a create may have": {
			vmWith(withDisks(pcapi.VMDisk{Name: "data", Size: "2Gi"}), withTags("env", "prod"), func(vm *pcapi.VM) {
				vm.Spec.Memory, vm.Spec.Template, vm.Spec.Folder, vm.Spec.Zone = pcapi.GiB(4), "debian", "team", "z1"
			}), nil, []string{"{Create web  [cpu 2 memory 4Gi template debian folder team zone z1 disk data 2Gi tag env=prod] }"}, "in sync",
		},
		"off, where a create can leave it off":    {vmWith(poweredOff), nil, []string{"{Create web  [cpu 2 powered off] }"}, "in sync"},
		"off, where each create starts it":        {vmWith(poweredOff), world{lacking(cloud.PowerAtCreate)}, []string{"{Create web  [cpu 2] }", "{PowerOff web  [] }"}, "in sync"},
		"suspended":                               {vmWith(suspended), nil, []string{"{Create web  [cpu 2] }", "{Suspend web  [] }"}, "in sync"},
		"a class":                                 {vmWith(ofClass("large")), nil, []string{"{Create web  [cpu 8 memory 4Gi] }"}, "in sync"},
		"a flavor":                                {vmWith(ofFlavor("m1.large")), world{allowing("m1.*")}, []string{"{Create web  [flavor m1.large] }"}, "in sync"},
		"a flavor that the Cloud does not allow":  {vmWith(ofFlavor("m1.large")), nil, nil, "stalled: Rejected, again in 10m0s"},
		"a flavor that the cloud lacks":           {vmWith(ofFlavor("m1.large")), world{lacking(cloud.Flavors)}, nil, "stalled: Unsupported, again in 10m0s"},
		"a class that does not exist":             {vmWith(ofClass("missing")), nil, nil, "blocked: ClassUnavailable by VMClass/missing"},
		"a field that the cloud lacks":            {vmWith(suspended), world{lacking(cloud.Suspend)}, nil, "stalled: Unsupported, again in 10m0s"},
		"the Cloud does not exist":                {vmWith(), world{noCloud}, nil, "blocked: CloudUnavailable by Cloud/default"},
		"the Cloud does not answer":               {vmWith(), world{away}, nil, "blocked: CloudUnavailable by Cloud/default"},
		"the brake is on":                         {vmWith(), world{braked}, nil, "blocked: Braked by Cloud/default"},
		"the Cloud is for other namespaces":       {vmWith(), world{elsewhere}, nil, "blocked: CloudUnavailable by Cloud/default"},
		"an import that the Cloud does not allow": {vmWith(importing), nil, nil, "stalled: Rejected, again in 10m0s"},
		"an import that it allows":                {vmWith(importing), world{anyImports}, []string{"{Import web s1 [] }"}, "in sync"},
		"an import without labels":                {vmWith(importing), world{anyImports, lacking(cloud.Labels)}, nil, "in sync"},
		"an import that is only observed":         {vmWith(importing, observing), world{anyImports}, nil, "in sync"},
	} {
		t.Run(name, func(t *testing.T) {
			equalForecast(t, decision{tc.changes, tc.outcome}, forecastWith(t, nil, tc.vm, tc.cloud...))
		})
	}
}

func TestForecastOfAChange(t *testing.T) {
	type world = []func(*pcapi.Cloud)
	for name, tc := range map[string]struct {
		vm      *pcapi.VM
		cloud   world
		changes []string
		outcome string
	}{
		"nothing":                           {running(), nil, nil, "in sync"},
		"a size":                            {running(fourCores), nil, []string{"{Update web s1 [cpu 2 to 4] Wait}"}, "in sync"},
		"a size, a restart is allowed":      {running(fourCores, restartAllowed), nil, []string{"{Update web s1 [cpu 2 to 4] Restart}"}, "in sync"},
		"a size, it is off":                 {running(fourCores, poweredOff, shows(pcapi.VMStateStopped)), nil, []string{"{Update web s1 [cpu 2 to 4] }"}, "in sync"},
		"a size, it is started":             {running(fourCores, shows(pcapi.VMStateStopped)), nil, []string{"{Update web s1 [cpu 2 to 4] }", "{PowerOn web s1 [] }"}, "in sync"},
		"a size, it stays suspended":        {running(fourCores, suspended, shows(pcapi.VMStateSuspended)), nil, nil, "stalled: NeedsRestart, again in 10m0s"},
		"a size, it is resumed for it":      {running(fourCores, suspended, restartAllowed, shows(pcapi.VMStateSuspended)), nil, []string{"{Resume web s1 [] }", "{Update web s1 [cpu 2 to 4] Restart}", "{Suspend web s1 [] }"}, "in sync"},
		"a size, the cloud cannot":          {running(fourCores), world{lacking(cloud.Resize)}, nil, "stalled: Unsupported, again in 10m0s"},
		"tags, the cloud has no capability": {running(withTags("env", "prod")), world{lacking(Assumed...), wasListed}, nil, "stalled: Unsupported, again in 10m0s"},
		"memory":                            {running(func(vm *pcapi.VM) { vm.Spec.Memory = pcapi.GiB(4) }), nil, []string{"{Update web s1 [memory 2Gi to 4Gi] Wait}"}, "in sync"},
		"a class":                           {running(ofClass("large")), nil, []string{"{Update web s1 [cpu 2 to 8 memory 2Gi to 4Gi] Wait}"}, "in sync"},
		"a flavor":                          {running(hasTiny, ofFlavor("large")), world{allowing("large")}, []string{"{Update web s1 [flavor tiny to large] Wait}"}, "in sync"},
		"the flavor that it has":            {running(hasTiny, ofFlavor("tiny")), nil, nil, "in sync"},
		"a flavor that is not allowed":      {running(hasTiny, ofFlavor("large"), restartAllowed), nil, nil, "stalled: Rejected, again in 10m0s"},
		"off, the guest is asked":           {running(poweredOff), nil, []string{"{PowerOff web s1 [] }"}, "in sync"},
		"off, hard":                         {running(poweredOff, mode(pcapi.PowerOffModeHard)), nil, []string{"{PowerOff web s1 [] }"}, "in sync"},
		"off, soft, and the cloud cannot":   {running(poweredOff, mode(pcapi.PowerOffModeSoft)), world{lacking(cloud.SoftPowerOff)}, nil, "stalled: Unsupported, again in 10m0s"},
		"off with a size, hard: one call":   {running(fourCores, poweredOff, mode(pcapi.PowerOffModeHard)), nil, []string{"{Update web s1 [cpu 2 to 4] }", "{PowerOff web s1 [] }"}, "in sync"},
		"off with a size, asked: two calls": {running(fourCores, poweredOff), nil, []string{"{PowerOff web s1 [] }", "{Update web s1 [cpu 2 to 4] }"}, "in sync"},
		"suspended":                         {running(suspended), nil, []string{"{Suspend web s1 [] }"}, "in sync"},
		"off, it is suspended":              {running(poweredOff, shows(pcapi.VMStateSuspended)), nil, []string{"{Resume web s1 [] }", "{PowerOff web s1 [] }"}, "in sync"},
		"on, it is suspended":               {running(shows(pcapi.VMStateSuspended)), nil, []string{"{Resume web s1 [] }"}, "in sync"},
		"disks":                             {running(hadDisks(pcapi.VMDiskStatus{Name: "data", Size: "1Gi"}), twoDisks()), nil, []string{"{Update web s1 [disk data 1Gi to 2Gi new disk logs 1Gi] Wait}"}, "in sync"},
		"a disk that is larger":             {running(hadDisks(pcapi.VMDiskStatus{Name: "data", Size: "9Gi"}), withDisks(pcapi.VMDisk{Name: "data", Size: "2Gi"})), nil, nil, "stalled: Unsupported, again in 10m0s"},
		"a disk that was removed":           {running(hadDisks(pcapi.VMDiskStatus{Name: "data", Lost: true}), withDisks(pcapi.VMDisk{Name: "data", Size: "2Gi"})), nil, nil, "stalled: Drift, again in 10m0s"},
		"a restart":                         {running(createdBefore, restartAt(startTime)), nil, []string{"{Restart web s1 [] }", "{PowerOn web s1 [] }"}, "in sync"},
		"a restart later":                   {running(createdBefore, restartAt(startTime.Add(time.Hour))), nil, nil, "in sync"},
		"a restart that was missed":         {running(createdBefore, restartAt(startTime.Add(-2*time.Hour))), nil, nil, "in sync"},
		"a revert":                          {running(revertedTo("before")), nil, []string{"{Revert web s1 [VMSnapshot before (snap1)] }"}, "in sync"},
		"a revert, it is suspended":         {running(revertedTo("before"), shows(pcapi.VMStateSuspended)), nil, []string{"{Resume web s1 [] }", "{Revert web s1 [VMSnapshot before (snap1)] }"}, "in sync"},
		"a revert to none":                  {running(revertedTo("missing")), nil, nil, "blocked: SnapshotUnavailable by VMSnapshot/missing"},
		"only observed":                     {running(fourCores, poweredOff, observing), nil, nil, "in sync"},
		"the Cloud does not answer":         {running(fourCores), world{away}, nil, "blocked: CloudUnavailable by Cloud/default"},
		"the brake is on":                   {running(fourCores), world{braked}, []string{"{Update web s1 [cpu 2 to 4] Wait}"}, "in sync"},
		"lost":                              {running(fourCores, shows(pcapi.VMStateLost)), nil, nil, "stalled: Lost"},
		"deleted":                           {running(deleted), nil, []string{"{Delete web s1 [] }"}, "in sync"},
		"deleted, kept":                     {running(deleted, orphaning), nil, []string{"{Release web s1 [] }"}, "in sync"},
		"deleted, kept, without labels":     {running(deleted, orphaning), world{lacking(cloud.Labels)}, nil, "in sync"},
		"deleted, kept, Cloud of others":    {running(deleted, orphaning), world{elsewhere}, []string{"{Release web s1 [] }"}, "in sync"},
		"deleted, Cloud of others":          {running(deleted), world{elsewhere}, []string{"{Delete web s1 [] }"}, "in sync"},
		"deleted, kept, the Cloud is gone":  {running(deleted, orphaning), world{noCloud}, nil, "in sync"},
		"deleted, only observed":            {running(deleted, observing), nil, []string{"{Release web s1 [] }"}, "in sync"},
		"deleted, lost":                     {running(deleted, shows(pcapi.VMStateLost)), nil, nil, "in sync"},
		"deleted, the brake is on":          {running(deleted), world{braked}, nil, "blocked: Braked by Cloud/default"},
		"deleted, the Cloud is gone":        {running(deleted), world{noCloud}, nil, "blocked: CloudUnavailable by Cloud/default"},
	} {
		t.Run(name, func(t *testing.T) {
			equalForecast(t, decision{tc.changes, tc.outcome}, forecastWith(t, nil, tc.vm, tc.cloud...))
		})
	}
}

// TestForecastOfTags compares with the object as it was, because no status shows tags.
func TestForecastOfTags(t *testing.T) {
	live := running(withTags("env", "dev", "team", "a"))
	edited := running(withTags("env", "prod", "new", "yes"), fourCores)
	edited.Annotations = live.Annotations
	equalForecast(t, decision{[]string{"{Update web s1 [tag env=prod tag new=yes without tag team] }", "{Update web s1 [cpu 2 to 4] Wait}"}, "in sync"}, forecastWith(t, live, edited))
	equalForecast(t, decision{nil, "in sync"}, forecastWith(t, live, live.DeepCopy()))
}

func equalForecast(t *testing.T, want, got decision) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("forecast (-want +got):\n%s", diff)
	}
}

func TestAssumedCloudCanHaveEachFieldOfTheSpec(t *testing.T) {
	if err := field.Unsupported(complete(), Assumed); err != nil {
		t.Error(err)
	}
}

func TestForeseenServerHasEachFieldOfTheCreate(t *testing.T) {
	attached := func(obs *observation) { obs.interfaces = []cloud.Attachment{{NetworkID: "a"}} }
	obs, vm := obsWith(allOf(), attached), complete()
	pureKind.foreseeCreate(vm, obs)
	req, server := reflect.ValueOf(pureKind.request(vm, obsWith(allOf(), attached))), reflect.ValueOf(*obs.Resource)
	var differ []string
	for asked, value := range req.Fields() {
		shown, ok := server.Type().FieldByName(asked.Name)
		if !ok || shown.Type != asked.Type {
			differ = append(differ, asked.Name)
			continue
		}
		if diff := cmp.Diff(value.Interface(), server.FieldByIndex(shown.Index).Interface()); diff != "" {
			t.Errorf("%s (-create +server):\n%s", asked.Name, diff)
		}
	}
	equal(t, "fields of a create that a server does not have in the same form", []string{
		"Template", "PowerState", "Interfaces", "AntiAffinity", "UserData", "IdempotencyKey", "First",
	}, differ)
}
