package behaviour_test

import (
	"maps"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// without returns an extended cloud that lacks capabilities.
func without(lacking ...mockcloud.Capability) mockcloud.Options {
	options := mockcloud.Options{Capabilities: map[mockcloud.Capability]bool{}}
	for _, name := range lacking {
		options.Capabilities[name] = false
	}
	return options
}

// reportingChanges returns a cloud that has events as well.
func reportingChanges(options mockcloud.Options) mockcloud.Options {
	capabilities := map[mockcloud.Capability]bool{mockcloud.Events: true}
	maps.Copy(capabilities, options.Capabilities)
	options.Capabilities = capabilities
	return options
}

// provingClouds are clouds that can prove which object owns a server.
var provingClouds = map[string]mockcloud.Options{
	"an extended cloud":                              {},
	"a core cloud with unique names":                 {Profile: mockcloud.Core},
	"a cloud that reports changes":                   reportingChanges(mockcloud.Options{}),
	"a cloud with unique names that reports changes": reportingChanges(without(mockcloud.Idempotency, mockcloud.Labels)),
	"a cloud with unique names only":                 without(mockcloud.Idempotency, mockcloud.Labels),
	"a cloud with owner labels only":                 without(mockcloud.Idempotency, mockcloud.UniqueNames),
	"a cloud with idempotency keys and no labels":    without(mockcloud.Labels, mockcloud.UniqueNames),
	"a cloud with owner labels and unique names":     without(mockcloud.Idempotency),
	"a cloud with owner labels and idempotency keys": without(mockcloud.UniqueNames),
}

// unprovingCloud is a cloud that cannot prove which object owns a server.
var unprovingCloud = without(mockcloud.Idempotency, mockcloud.Labels, mockcloud.UniqueNames)

// lostAnswers are faults by which the answer to a create that took effect does not arrive.
var lostAnswers = map[string]mockcloud.Fault{
	"reset":             {Reset: true, Answer: mockcloud.After},
	"a failure":         {Status: 500, Answer: mockcloud.After},
	"too late":          {Hold: true, Answer: mockcloud.After},
	"truncated":         {Truncate: &mockcloud.Truncation{Keep: 10}},
	"empty":             {EmptyBody: true},
	"of another server": {Body: `{"id":"5b7ff4f0-5cf9-4ac6-a1c2-3a3f3a4d2a10","name":"foreign"}`},
	"a login page":      {ContentType: "text/html", Body: "<html>please log in</html>"},
	"a redirect":        {Redirect: "https://elsewhere.example.com/servers", Answer: mockcloud.After},
}

// losing returns a fault for the first create. On a cloud with idempotency keys it
// is for the client's own retries, too.
func losing(fault mockcloud.Fault, on mockcloud.Options) mockcloud.Fault {
	fault.Match = mockcloud.Match{Method: "POST", Path: "/servers", Nth: 1, Count: 1}
	has, set := on.Capabilities[mockcloud.Idempotency]
	if keys := on.Profile != mockcloud.Core && (!set || has); keys && !fault.Hold {
		fault.Match.Count = 3
	}
	return fault
}

// exactlyOnce returns a case of a create that meets a fault: there is one server.
func exactlyOnce(on mockcloud.Options, fault mockcloud.Fault) func(*T) {
	return func(t *T) {
		f := newFixture(t, on)
		f.addFault(losing(fault, on))
		vm := f.readyVM("web")

		t.Expect(f.serversNamed("web")).To(Equal([]string{vm.Status.VMID}))
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate}))
		t.Expect(vm).To(testkit.HaveCondition("Created", metav1.ConditionTrue, ""))
	}
}

// late returns a case of the effects when the first request takes effect after the second one.
func late(on mockcloud.Options, effects ...mockcloud.Op) func(*T) {
	return func(t *T) {
		f := newFixture(t, on)
		held := f.addFault(mockcloud.Fault{Match: mockcloud.Match{Method: "POST", Path: "/servers", Nth: 1}, Hold: true})
		vm := f.readyVM("web")

		t.Expect(f.ReleaseFault(held)).To(Succeed())
		f.waitForPolls(2)
		t.Eventually(func() []string { return f.serversNamed("web") }).Should(Equal([]string{vm.Status.VMID}))
		t.Expect(f.effects()).To(Equal(effects))
		t.Expect(waitReady(t, vm).Status.VMID).To(Equal(vm.Status.VMID))
	}
}

// hidden returns a case of a server that is listed some time after its create:
// no second create is sent meanwhile.
func hidden(on mockcloud.Options) func(*T) {
	return func(t *T) {
		const settleTime = 4 * time.Second
		f := newFixture(t, on, func(c *pcapi.Cloud) {
			c.Spec.PollInterval.Duration, c.Spec.SettleTime.Duration = time.Hour, settleTime
		})
		f.addFault(losing(lostAnswers["reset"], on))
		f.addFault(mockcloud.Fault{
			Match: mockcloud.Match{Method: "GET", Path: "/servers"},
			List:  &mockcloud.ListFault{HideYounger: mockcloud.Duration(settleTime * 3 / 4)},
		})
		vm := f.readyVM("web")
		t.Expect(vm).To(testkit.HaveCondition("Created", metav1.ConditionTrue, "Adopted"))
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate}))
		t.Expect(f.createCalls()).To(Equal(1))
	}
}

// guarantees returns a case of what Cloud and VM report of the guarantees of a cloud.
func guarantees(on mockcloud.Options, onCloud, onVM string) func(*T) {
	return func(t *T) {
		f := newFixture(t, on)
		t.Expect(get(t, f.object)).To(testkit.HaveCondition("Ready", metav1.ConditionTrue, "Connected", onCloud))
		t.Expect(f.readyVM("web")).To(testkit.HaveCondition("Created", metav1.ConditionTrue, "Created", onVM))
	}
}

func TestCreateVMExactlyOnce(t *testing.T) { createOnceCases.run(t) }

var createOnceCases = func() cases {
	all := cases{}
	for on, options := range provingClouds {
		for answer, fault := range lostAnswers {
			all[on+": the answer is "+answer] = exactlyOnce(options, fault)
		}
		all[on+": the request is lost"] = exactlyOnce(options, mockcloud.Fault{Reset: true})
	}
	return all
}()

func TestUncertainCreate(t *testing.T) { uncertainCreateCases.run(t) }

var uncertainCreateCases = cases{
	"the cloud proves nothing: the VM stalls until a user names the server": func(t *T) {
		f := newFixture(t, unprovingCloud)
		f.addFault(losing(lostAnswers["reset"], unprovingCloud))
		vm := f.createVM("web")

		t.Eventually(latest(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Created", metav1.ConditionFalse, "Ambiguous", "only a person can attribute", "set spec.import.vmId"),
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Ambiguous"),
		))
		f.waitForPolls(3)
		t.Expect(f.createCalls()).To(Equal(1), "a second create was sent while the first one's server may be there")

		edit(t, vm, importServer(f.serversNamed("web")[0]))
		waitReady(t, vm)
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate}))
	},

	"the poll interval is long: the server is looked for at once": func(t *T) {
		f := newFixture(t, mockcloud.Options{Profile: mockcloud.Core}, func(c *pcapi.Cloud) { c.Spec.PollInterval.Duration = time.Hour })
		f.addFault(losing(lostAnswers["reset"], mockcloud.Options{Profile: mockcloud.Core}))
		vm := f.readyVM("web")
		t.Expect(f.serversNamed("web")).To(Equal([]string{vm.Status.VMID}))
		t.Expect(f.createCalls()).To(Equal(1))
	},

	"the server is listed late: it is adopted by its labels within the settle time":               hidden(without(mockcloud.Idempotency, mockcloud.UniqueNames)),
	"the server is listed late on a core cloud: it is adopted by its name within the settle time": hidden(mockcloud.Options{Profile: mockcloud.Core}),

	"the cloud proves nothing and no server appears within the settle time: the create is sent again": exactlyOnce(unprovingCloud, mockcloud.Fault{Reset: true}),

	"the first request takes effect after the second: its key keeps one server":                  late(mockcloud.Options{}, mockcloud.OpCreate),
	"the first request takes effect after the second on a core cloud: its name keeps one server": late(mockcloud.Options{Profile: mockcloud.Core}, mockcloud.OpCreate),
	"the first request takes effect after the second with labels only: the second of two servers is removed": late(
		without(mockcloud.Idempotency, mockcloud.UniqueNames), mockcloud.OpCreate, mockcloud.OpCreate, mockcloud.OpDelete),

	"the cloud honours idempotency keys: the Cloud reports exactly once": guarantees(mockcloud.Options{}, "exactly once: the cloud honours idempotency keys", ""),
	"the cloud keeps names unique: the Cloud reports exactly once": guarantees(
		mockcloud.Options{Profile: mockcloud.Core}, "exactly once: the cloud keeps names unique", ""),
	"the cloud has labels only: Cloud and VM report that two servers may exist for a while": guarantees(
		without(mockcloud.Idempotency, mockcloud.UniqueNames), "two VMs may exist for a while", "two VMs may exist for a while"),
	"the cloud proves nothing: Cloud and VM report that a user has to decide": guarantees(unprovingCloud, "only a person can attribute", "only a person can attribute"),

	"the spec was edited meanwhile: the server follows the edit": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		f.addFault(losing(lostAnswers["a failure"], mockcloud.Options{}))
		vm := f.createVM("web")
		t.Eventually(f.createCalls).Should(BeNumerically(">", 0))
		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(8) })

		vm = waitReady(t, vm)
		t.Eventually(f.serverOf(vm)).Should(HaveField("CPU", 8))
		t.Expect(f.serversNamed("web")).To(HaveLen(1))
	},
}
