package behaviour_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// without is an extended cloud that lacks capabilities.
func without(lacking ...mockcloud.Capability) mockcloud.Options {
	options := mockcloud.Options{Capabilities: map[mockcloud.Capability]bool{}}
	for _, name := range lacking {
		options.Capabilities[name] = false
	}
	return options
}

// surely are the clouds on which a lost answer costs nothing, by what they prove things with.
var surely = map[string]mockcloud.Options{
	"an extended cloud":                 {},
	"a core cloud with unique names":    {Profile: mockcloud.Core},
	"a cloud with unique names alone":   without(mockcloud.Idempotency, mockcloud.Labels),
	"a cloud with owner labels alone":   without(mockcloud.Idempotency, mockcloud.UniqueNames),
	"a cloud with keys but no labels":   without(mockcloud.Labels, mockcloud.UniqueNames),
	"a cloud with labels and names":     without(mockcloud.Idempotency),
	"a cloud with labels and with keys": without(mockcloud.UniqueNames),
}

// nothing is a cloud that proves nothing.
var nothing = without(mockcloud.Idempotency, mockcloud.Labels, mockcloud.UniqueNames)

// lost are the ways in which the answer to a create that took effect does not arrive.
var lost = map[string]mockcloud.Fault{
	"reset":                     {Reset: true, Answer: mockcloud.After},
	"turned into a failure":     {Status: 500, Answer: mockcloud.After},
	"held for too long":         {Hold: true, Answer: mockcloud.After},
	"cut short":                 {Truncate: &mockcloud.Truncation{Keep: 10}},
	"emptied":                   {EmptyBody: true},
	"replaced by another's":     {Body: `{"id":"5b7ff4f0-5cf9-4ac6-a1c2-3a3f3a4d2a10","name":"somebody-elses"}`},
	"wrapped in a portal":       {ContentType: "text/html", Body: "<html>please log in</html>"},
	"redirected somewhere else": {Redirect: "https://elsewhere.example.com/servers", Answer: mockcloud.After},
}

// losing returns a fault that loses the answer to a create, and on a cloud with
// keys those to the client's own retries too.
func losing(fault mockcloud.Fault, on mockcloud.Options) mockcloud.Fault {
	fault.Match = mockcloud.Match{Method: "POST", Path: "/servers", Nth: 1, Count: 1}
	has, set := on.Capabilities[mockcloud.Idempotency]
	if keys := on.Profile != mockcloud.Core && (!set || has); keys && !fault.Hold {
		fault.Match.Count = 3
	}
	return fault
}

// exactlyOnce shows that a create whose answer is lost leads to one server.
func exactlyOnce(on mockcloud.Options, fault mockcloud.Fault) func(SpecContext) {
	return func(ctx SpecContext) {
		s := newSite(ctx, on)
		s.fault(losing(fault, on))
		vm := s.ready(ctx, "web")

		Expect(s.named("web")).To(Equal([]string{vm.Status.VMID}))
		Expect(s.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate}))
		Expect(vm).To(testkit.HaveCondition("Created", metav1.ConditionTrue, ""))
	}
}

// late shows what comes of a request that takes effect after the second one.
func late(on mockcloud.Options, effects ...mockcloud.Op) func(SpecContext) {
	return func(ctx SpecContext) {
		s := newSite(ctx, on)
		held := s.fault(mockcloud.Fault{Match: mockcloud.Match{Method: "POST", Path: "/servers", Nth: 1}, Hold: true})
		vm := s.ready(ctx, "web")

		Expect(s.ReleaseFault(held)).To(Succeed())
		s.polls(ctx, 2)
		Eventually(ctx, func() []string { return s.named("web") }).Should(Equal([]string{vm.Status.VMID}))
		Expect(s.effects()).To(Equal(effects))
		Expect(untilReady(ctx, vm).Status.VMID).To(Equal(vm.Status.VMID))
	}
}

// hidden shows that a server which is listed only a while after its create is
// waited for, where nothing makes a second create safe.
func hidden(on mockcloud.Options) func(SpecContext) {
	return func(ctx SpecContext) {
		const settle = 4 * time.Second
		s := newSite(ctx, on, func(c *v1alpha1.Cloud) {
			c.Spec.PollInterval.Duration, c.Spec.SettleTime.Duration = time.Hour, settle
		})
		s.fault(losing(lost["reset"], on))
		s.fault(mockcloud.Fault{
			Match: mockcloud.Match{Method: "GET", Path: "/servers"},
			List:  &mockcloud.ListFault{HideYounger: mockcloud.Duration(settle * 3 / 4)},
		})
		vm := s.ready(ctx, "web")
		Expect(vm).To(testkit.HaveCondition("Created", metav1.ConditionTrue, "Adopted"))
		Expect(s.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate}))
		Expect(s.posts()).To(Equal(1))
	}
}

// stated shows what a cloud cannot guarantee, on the Cloud and on the VM.
func stated(on mockcloud.Options, onCloud, onVM string) func(SpecContext) {
	return func(ctx SpecContext) {
		s := newSite(ctx, on)
		Expect(read(ctx, s.object)).To(testkit.HaveCondition("Ready", metav1.ConditionTrue, "Connected", onCloud))
		Expect(s.ready(ctx, "web")).To(testkit.HaveCondition("Created", metav1.ConditionTrue, "Created", onVM))
	}
}

var lostAnswers = theme{"a create whose answer is lost leads to exactly one server wherever something proves whose it is", func() cases {
	all := cases{}
	for on, options := range surely {
		for answer, fault := range lost {
			all["on "+on+", the answer "+answer] = exactlyOnce(options, fault)
		}
		all["on "+on+", where the request was lost too"] = exactlyOnce(options, mockcloud.Fault{Reset: true})
	}
	return all
}()}

var uncertainCreates = theme{"a create whose answer is lost", cases{
	"stalls where nothing proves whose a server is, says so, and follows what a person says": func(ctx SpecContext) {
		s := newSite(ctx, nothing)
		s.fault(losing(lost["reset"], nothing))
		vm := s.create(ctx, "web")

		Eventually(ctx, now(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Created", metav1.ConditionFalse, "Ambiguous", "only a person can attribute", "set spec.import.vmId"),
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Ambiguous"),
		))
		s.polls(ctx, 3)
		Expect(s.posts()).To(Equal(1), "a second create was sent while the first one's server may be there")

		edit(ctx, vm, importing(s.named("web")[0]))
		untilReady(ctx, vm)
		Expect(s.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate}))
	},

	"is looked for at once, and not at the next poll": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Profile: mockcloud.Core}, func(c *v1alpha1.Cloud) { c.Spec.PollInterval.Duration = time.Hour })
		s.fault(losing(lost["reset"], mockcloud.Options{Profile: mockcloud.Core}))
		vm := s.ready(ctx, "web")
		Expect(s.named("web")).To(Equal([]string{vm.Status.VMID}))
		Expect(s.posts()).To(Equal(1))
	},

	"is waited for by its labels as long as the settle time says": hidden(without(mockcloud.Idempotency, mockcloud.UniqueNames)),
	"is waited for by its name as long as the settle time says":   hidden(mockcloud.Options{Profile: mockcloud.Core}),

	"is sent again where nothing proves whose a server is, once there was none for the settle time": exactlyOnce(nothing, mockcloud.Fault{Reset: true}),

	"comes to one server by its key even if it takes effect after the second":  late(mockcloud.Options{}, mockcloud.OpCreate),
	"comes to one server by its name even if it takes effect after the second": late(mockcloud.Options{Profile: mockcloud.Core}, mockcloud.OpCreate),
	"comes to one server by its labels, after two for a while, if it takes effect after the second": late(
		without(mockcloud.Idempotency, mockcloud.UniqueNames), mockcloud.OpCreate, mockcloud.OpCreate, mockcloud.OpDelete),

	"costs nothing where there are keys, and the Cloud says so": stated(mockcloud.Options{}, "exactly once: the cloud honours idempotency keys", ""),
	"costs nothing where names are unique, and the Cloud says so": stated(
		mockcloud.Options{Profile: mockcloud.Core}, "exactly once: the cloud keeps names unique", ""),
	"may cost a second server for a while where there are labels alone, and Cloud and VM say so": stated(
		without(mockcloud.Idempotency, mockcloud.UniqueNames), "two servers may exist for a while", "two servers may exist for a while"),
	"may cost a server where there is nothing, and Cloud and VM say so": stated(nothing, "only a person can attribute", "only a person can attribute"),

	"is followed by what was edited meanwhile": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		s.fault(losing(lost["turned into a failure"], mockcloud.Options{}))
		vm := s.create(ctx, "web")
		Eventually(ctx, s.posts).Should(BeNumerically(">", 0))
		cores := int32(8)
		edit(ctx, vm, func(vm *v1alpha1.VM) { vm.Spec.CPU = &cores })

		vm = untilReady(ctx, vm)
		Eventually(ctx, s.serverOf(vm)).Should(HaveField("CPU", 8))
		Expect(s.named("web")).To(HaveLen(1))
	},
}}
