package vm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/testkit/golden"
)

// requestCase is a VM, and the server that it has or is to get. Its golden file has the forecast, and of
// each reconcile what was sent to the cloud and the outcome.
type requestCase struct {
	caps cloud.Capabilities
	vm   *pcapi.VM
	// server is that of the VM; nil if it is to be created.
	server *cloud.Server
	// before changes the harness before the first reconcile; nil for none.
	before func(*harness)
	// pause is the time between two reconciles; a minute if it is 0.
	pause time.Duration
}

// maxReconciles bounds the reconciles of a case. It ends once two reconciles in a row had the same outcome
// and sent nothing.
const maxReconciles = 10

// record returns the content of the golden file of a case.
func (c requestCase) record(t *testing.T) string {
	t.Helper()
	h := newHarness(t, c.caps, append(requestObjects(), c.vm)...)
	h.cloud.AddNetworks(cloud.Network{ID: "a"}, cloud.Network{ID: "b"})
	if c.server != nil {
		h.cloud.AddServers(*c.server)
	}
	var text strings.Builder
	sent := &sentRequests{Cloud: h.cloud}
	h.inv.Connect(sent, h.cloud.Can())
	h.poll()
	var outcome error
	h.reconciler.Kind = outcomes{h.reconciler.Kind, &outcome}
	if c.before != nil {
		c.before(h)
	}
	fmt.Fprintf(&text, "capabilities: %s\n", joined(c.caps))
	obs, err := h.kind.Observe(t.Context(), h.vm())
	if err != nil {
		t.Fatalf("Observe: %v", err)
	}
	changes, end := external.Forecast(h.kind.lifecycle, h.kind, h.vm(), obs)
	fmt.Fprint(&text, "\nforecast:\n")
	for i := range changes {
		fmt.Fprintf(&text, "%s id %q", approval.Text(changes[i]), changes[i].ID)
		if changes[i].IfStopNeeded != "" {
			fmt.Fprintf(&text, " if a stop is needed: %s", changes[i].IfStopNeeded)
		}
		text.WriteByte('\n')
	}
	text.WriteString(outcomeText(end))
	last := ""
	for n := range maxReconciles {
		_, err := h.reconcile()
		now := outcomeText(outcome)
		if err != nil {
			now += "error: " + err.Error() + "\n"
		}
		fmt.Fprintf(&text, "\nreconcile %d:\n%s%s", n+1, sent.text.String(), now)
		if _, exists := h.find(); !exists || sent.text.Len() == 0 && now == last {
			break
		}
		last = now
		sent.text.Reset()
		h.cloud.FinishOperations()
		h.later(cmp.Or(c.pause, time.Minute))
	}
	return text.String()
}

func joined(caps cloud.Capabilities) string {
	names := make([]string, 0, len(caps))
	for _, name := range caps {
		names = append(names, string(name))
	}
	return strings.Join(names, " ")
}

// outcomeText returns an outcome with its message.
func outcomeText(outcome error) string {
	if outcome == nil {
		return describe(nil) + "\n"
	}
	return describe(outcome) + ": " + outcome.Error() + "\n"
}

// outcomes stores the outcome of each reconcile.
type outcomes struct {
	reconciler.Kind[*pcapi.VM, *observation]

	last *error
}

func (o outcomes) Report(vm *pcapi.VM, obs *observation, outcome error) reconciler.Summary {
	*o.last = outcome
	return o.Kind.Report(vm, obs, outcome)
}

// sentRequests is a client of a cloud that notes the changes of servers that it is asked for.
type sentRequests struct {
	*cloudfake.Cloud

	text strings.Builder
}

func (s *sentRequests) CreateServer(ctx context.Context, req cloud.CreateServer) (cloud.Result, error) {
	fmt.Fprintf(&s.text, "create %s\n", createText(req))
	return s.Cloud.CreateServer(ctx, req)
}

func (s *sentRequests) UpdateServer(ctx context.Context, id string, update cloud.Update) (cloud.Result, error) {
	fmt.Fprintf(&s.text, "update %s: %s\n", id, updateText(update))
	return s.Cloud.UpdateServer(ctx, id, update)
}

func (s *sentRequests) DeleteServer(ctx context.Context, id string) (cloud.Result, error) {
	fmt.Fprintf(&s.text, "delete %s\n", id)
	return s.Cloud.DeleteServer(ctx, id)
}

// createText returns a create as JSON, with the fields that are no part of the JSON of cloud.CreateServer.
func createText(req cloud.CreateServer) string {
	text, err := json.MarshalIndent(struct {
		cloud.CreateServer

		UserData string
		First    bool
	}{req, string(req.UserData), req.First}, "", "  ")
	if err != nil {
		panic(err)
	}
	return string(text)
}

// updateText returns an update of a server, part by part.
func updateText(update cloud.Update) string {
	var parts []string
	soft := 0
	add := func(name string, value any) { parts = append(parts, fmt.Sprintf("%s %v", name, value)) }
	for _, cpu := range cloud.Changes[cloud.SetCPU](update) {
		add("cpu", int(cpu))
	}
	for _, memory := range cloud.Changes[cloud.SetMemory](update) {
		add("memory", int(memory))
	}
	for _, flavor := range cloud.Changes[cloud.SetFlavor](update) {
		add("flavor", string(flavor))
	}
	for _, size := range cloud.Changes[cloud.SetRootDisk](update) {
		add("root disk", int(size))
	}
	var disks []string
	for _, disk := range cloud.Changes[cloud.SetDisk](update) {
		text := fmt.Sprintf("%s=%d", disk.Name, disk.SizeMiB)
		if disk.Type != "" {
			text += fmt.Sprintf("=%q", disk.Type)
		}
		if disk.Keep {
			text += " kept"
		}
		disks = append(disks, text)
	}
	if len(disks) > 0 {
		add("disks", strings.Join(disks, " "))
	}
	labels := map[string]*string{}
	for _, label := range cloud.Changes[cloud.SetLabel](update) {
		labels[label.Key] = &label.Value
	}
	for _, key := range cloud.Changes[cloud.RemoveLabel](update) {
		labels[string(key)] = nil
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if value := labels[key]; value != nil {
			add("label", fmt.Sprintf("%s=%q", key, *value))
		} else {
			add("without label", key)
		}
	}
	for _, change := range update.Of(cloud.KeepPart, cloud.GroupPart, cloud.AllowedPart, cloud.AddressPart) {
		parts = append(parts, change.String())
	}
	if power, ok := update.Power(); ok {
		add("power", power.State)
		if power.Soft {
			add("soft", true)
			soft = 1
		}
	}
	if printed := len(parts) + max(0, len(disks)-1) - soft; printed != len(update) {
		panic(fmt.Sprintf("%d of %d changes are recorded: %v", printed, len(update), update))
	}
	return strings.Join(parts, ", ")
}

// requestObjects are what the VMs of the cases refer to.
func requestObjects() []client.Object {
	return []client.Object{
		aClass("c1", 2, 4, mapsTo("small")), aClass("c2", 4, 8, mapsTo("large")), aClass("c3", 2, 4, mapsTo("gone")), aClass("plain", 4, 8),
		bootSecret(), rangedNet("a", "10.0.0.0/24", "10.0.0.1"), rangedNet("b", "10.0.1.0/24", ""),
	}
}

// allOf are the capabilities that the fields of a VM need, without those missing.
func allOf(missing ...cloud.Capability) cloud.Capabilities {
	all := append(slices.Clone(withSuspend), cloud.Networks, cloud.WithInterfaces, cloud.StaticAddresses, cloud.Zones, cloud.WithAntiAffinity, cloud.Flavors, cloud.GuestHeartbeat,
		cloud.WithSecurityGroups, cloud.PublicAddresses, cloud.WithAllowedAddresses, cloud.WithRootDisk, cloud.DiskTypes, cloud.KeepDisks)
	return cloud.NewCapabilities(slices.DeleteFunc(all, func(c cloud.Capability) bool { return slices.Contains(missing, c) })...)
}

// complete has each field of the spec that a create depends on.
func complete(change ...func(*pcapi.VM)) *pcapi.VM {
	return vmWith(append(mods(
		twoDisks(), withTags("env", "prod", "team", "a"), apart(pcapi.AntiAffinityRequired), on("a", "10.0.0.5"), on("b"), poweredOff, mode(pcapi.PowerOffModeSoft), heartbeatProbed,
		func(vm *pcapi.VM) {
			vm.Spec.Memory, vm.Spec.Template, vm.Spec.Folder, vm.Spec.Zone = pcapi.GiB(4), "debian", "team/a", "z1"
			vm.Spec.SecurityGroups = []pcapi.SecurityGroupName{"web", "ssh"}
			vm.Spec.RootDisk = &pcapi.VMRootDisk{Size: "20Gi", Type: "fast"}
			vm.Spec.Disks[0].DeletionPolicy = pcapi.VMDiskKeep
			vm.Spec.Bootstrap = &pcapi.VMBootstrap{CloudInit: pcapi.VMCloudInit{
				UserDataSecretRef: &pcapi.SecretKeyReference{Name: "boot", Key: "user-data"}, SSHAuthorizedKeys: []pcapi.SSHAuthorizedKey{"ssh-ed25519 AAAA ann", "ssh-ed25519 BBBB bob"},
			}}
		},
	), change...)...)
}

func memory(quantity string) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Spec.Memory = new(pcapi.VMMemory(intstr.FromString(quantity))) }
}

func nothing(vm *pcapi.VM) { vm.Spec.CPU = nil }

func TestRequestsOfCreates(t *testing.T) {
	core, allows := cloud.NewCapabilities(), func(h *harness) { h.allowFlavors("*") }
	tests := map[string]requestCase{
		"minimal on a core cloud":                {caps: core, vm: vmWith(nothing)},
		"minimal on a cloud with all":            {caps: allOf(), vm: vmWith(nothing)},
		"cpu on a core cloud":                    {caps: core, vm: vmWith()},
		"all fields":                             {caps: allOf(), vm: complete()},
		"all fields on a core cloud":             {caps: core, vm: complete()},
		"cpu":                                    {caps: everything, vm: vmWith()},
		"memory of part of a GiB":                {caps: everything, vm: vmWith(nothing, memory("512Mi"))},
		"class":                                  {caps: everything, vm: vmWith(ofClass("plain"))},
		"class without flavor":                   {caps: allOf(), vm: vmWith(ofClass("plain"))},
		"class with flavor":                      {caps: allOf(), vm: vmWith(ofClass("c1"))},
		"class with flavor on one without":       {caps: everything, vm: vmWith(ofClass("c1"))},
		"class with a flavor that is gone":       {caps: allOf(), vm: vmWith(ofClass("c3"))},
		"flavor":                                 {caps: allOf(), vm: vmWith(ofFlavor("small")), before: allows},
		"flavor and the other fields":            {caps: allOf(), vm: complete(ofFlavor("small")), before: allows},
		"flavor on one without":                  {caps: everything, vm: vmWith(ofFlavor("small")), before: allows},
		"flavor that is gone":                    {caps: allOf(), vm: vmWith(ofFlavor("gone")), before: allows},
		"flavor that is not allowed":             {caps: allOf(), vm: vmWith(ofFlavor("small"))},
		"class on a core cloud":                  {caps: core, vm: vmWith(ofClass("plain"))},
		"class that is missing":                  {caps: everything, vm: vmWith(ofClass("missing"))},
		"template and folder":                    {caps: everything, vm: vmWith(func(vm *pcapi.VM) { vm.Spec.Template, vm.Spec.Folder = "debian", "team" })},
		"network":                                {caps: allOf(), vm: vmWith(func(vm *pcapi.VM) { vm.Spec.NetworkRef = &pcapi.NetworkReference{Name: "a"} })},
		"network on a cloud that attaches":       {caps: cloud.NewCapabilities(append(without(), cloud.NetworkAttach)...), vm: vmWith(func(vm *pcapi.VM) { vm.Spec.NetworkRef = &pcapi.NetworkReference{Name: "a"} })},
		"one interface":                          {caps: oneInterface, vm: vmWith(on("a"))},
		"one interface with an address":          {caps: allOf(), vm: vmWith(on("a", "10.0.0.5"))},
		"two interfaces":                         {caps: allOf(), vm: vmWith(on("b"), on("a"))},
		"disks":                                  {caps: everything, vm: vmWith(twoDisks())},
		"tags":                                   {caps: everything, vm: vmWith(withTags("env", "prod", "team", "a"))},
		"zone":                                   {caps: allOf(), vm: vmWith(func(vm *pcapi.VM) { vm.Spec.Zone = "z1" })},
		"anti-affinity required":                 {caps: allOf(), vm: vmWith(apart(pcapi.AntiAffinityRequired))},
		"anti-affinity preferred":                {caps: allOf(), vm: vmWith(apart(pcapi.AntiAffinityPreferred))},
		"security groups":                        {caps: allOf(), vm: vmWith(guarded("web", "ssh"))},
		"security groups on a cloud without":     {caps: allOf(cloud.WithSecurityGroups), vm: vmWith(guarded("web"))},
		"allowed addresses":                      {caps: allOf(), vm: vmWith(allowed("10.0.0.9", "10.0.0.16/28"))},
		"allowed addresses on a cloud without":   {caps: allOf(cloud.WithAllowedAddresses), vm: vmWith(allowed("10.0.0.9"))},
		"public address":                         {caps: allOf(), vm: vmWith(public)},
		"public address on a cloud without":      {caps: allOf(cloud.PublicAddresses), vm: vmWith(public)},
		"user data":                              {caps: everything, vm: vmWith(withUserData)},
		"ssh keys":                               {caps: everything, vm: vmWith(withKey)},
		"off":                                    {caps: withGuests, vm: vmWith(poweredOff)},
		"off hard":                               {caps: withGuests, vm: vmWith(poweredOff, mode(pcapi.PowerOffModeHard))},
		"off soft":                               {caps: withGuests, vm: vmWith(poweredOff, mode(pcapi.PowerOffModeSoft))},
		"off without power at create":            {caps: without(cloud.PowerAtCreate), vm: vmWith(poweredOff)},
		"off without power":                      {caps: without(cloud.Power, cloud.PowerAtCreate), vm: vmWith(poweredOff)},
		"suspended":                              {caps: withSuspend, vm: vmWith(suspended)},
		"unmanaged":                              {caps: withSuspend, vm: vmWith(unmanaged)},
		"without idempotency":                    {caps: withoutKeys, vm: vmWith(withTags("env", "prod"))},
		"without labels":                         {caps: without(cloud.Labels), vm: vmWith()},
		"without any proof":                      {caps: withoutProofs, vm: vmWith()},
		"by an operation":                        {caps: operating, vm: vmWith(poweredOff), before: func(h *harness) { h.cloud.SetOperating(true) }},
		"refused and sent again":                 {caps: everything, vm: vmWith(), before: func(h *harness) { h.cloud.Fail(cloudfake.CreateServer, errThrottled, false) }},
		"lost answer and sent again":             {caps: everything, vm: vmWith(withTags("env", "prod")), before: func(h *harness) { h.cloud.Fail(cloudfake.CreateServer, errReset, false) }},
		"kept disks":                             {caps: allOf(), vm: vmWith(keptDisks)},
		"kept disks without keepDisks":           {caps: allOf(cloud.KeepDisks), vm: vmWith(keptDisks)},
		"import":                                 {caps: everything, vm: vmWith(importing, fourCores, withTags("env", "prod")), server: new(serverWith(unlabelled))},
		"import without labels":                  {caps: without(cloud.Labels), vm: vmWith(importing, fourCores), server: new(serverWith(unlabelled))},
		"all fields with an approval":            {caps: allOf(), vm: complete(needsApproval)},
		"all fields without power at create":     {caps: allOf(cloud.PowerAtCreate), vm: complete()},
		"all fields without idempotency":         {caps: allOf(cloud.Idempotency), vm: complete()},
		"all fields without unique names":        {caps: allOf(cloud.UniqueNames), vm: complete()},
		"class with flavor and the other fields": {caps: allOf(), vm: complete(ofClass("c1"))},
	}
	for _, missing := range []cloud.Capability{
		cloud.Flavors, cloud.Sizing, cloud.Folders, cloud.Networks, cloud.WithInterfaces, cloud.StaticAddresses, cloud.Power, cloud.SoftPowerOff, cloud.WithDisks,
		cloud.Labels, cloud.Zones, cloud.WithAntiAffinity, cloud.GuestHeartbeat, cloud.WithUserData,
		cloud.WithRootDisk, cloud.DiskTypes, cloud.KeepDisks,
	} {
		tests["all fields without "+string(missing)] = requestCase{caps: allOf(missing), vm: complete()}
	}
	runRequests(t, "create", tests)
}

// runRequests compares what all cases of a group record with one golden file.
func runRequests(t *testing.T, group string, tests map[string]requestCase) {
	t.Helper()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		t.Run(name, func(t *testing.T) {
			fmt.Fprintf(&text, "=== %s\n%s\n", name, tests[name].record(t))
		})
	}
	if !t.Failed() {
		golden.Compare(t, "requests "+group, text.String())
	}
}

// TestRequestsHaveEachField fails if a field of a create is in no request of the cases.
func TestRequestsHaveEachField(t *testing.T) {
	found := map[string]bool{}
	for _, vm := range []*pcapi.VM{complete(), complete(ofFlavor("small"))} {
		for _, attachments := range [][]cloud.Attachment{{{NetworkID: "a"}}, {{NetworkID: "a", Addresses: []string{"10.0.0.5"}}, {NetworkID: "b"}}} {
			fields(found, pureKind.request(vm, obsWith(allOf(), func(obs *observation) {
				obs.First, obs.userData, obs.interfaces = true, cloud.UserData(bootData), attachments
			})))
		}
	}
	of := reflect.TypeFor[cloud.CreateServer]()
	for field := range of.Fields() {
		if name := field.Name; !found[name] {
			t.Errorf("no case has the field %s of a create", name)
		}
	}
}

// fields adds the names of the fields of a create that are not zero.
func fields(names map[string]bool, req cloud.CreateServer) {
	v := reflect.ValueOf(req)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			names[v.Type().Field(i).Name] = true
		}
	}
}
