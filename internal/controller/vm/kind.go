package vm

import (
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/probe"
	"github.com/privatecloud/operator/internal/reconciler"
)

type (
	plan      = reconciler.Plan[*pcapi.VM, *observation]
	lifecycle = external.Lifecycle[*pcapi.VM, cloud.Server, *observation]
)

// kind implements external.Kind for VMs. It plans, creates, deletes and reports. Its parts observe servers and other
// objects, check names, and change and revert servers.
type kind struct {
	external.Defaults[*pcapi.VM, cloud.Server, *observation]
	*lifecycle

	refusals refusals
	probes   *probe.Prober
	recorder events.EventRecorder

	servers  *servers
	observer *observer
	names    *nameChecker
	changer  *changer
	reverter *reverter
	vmSteps  steps
}

var _ external.Kind[*pcapi.VM, cloud.Server, *observation] = (*kind)(nil)

func newKind(c client.Client, opts controller.Options, recorder events.EventRecorder) *kind {
	k := &kind{refusals: newRefusals(opts.Clock), probes: opts.Probes, recorder: recorder}
	if k.probes == nil {
		k.probes = probe.New(probe.Options{})
	}
	k.assemble(opts.Cluster, external.New(k, func() *pcapi.VM { return &pcapi.VM{} }, func() *observation { return &observation{} }, external.Options{
		Client: c, Live: opts.Live, Leading: opts.Leading, Tracer: opts.Tracer, History: opts.History, Queues: opts.Queues, Alone: opts.Alone, Scope: opts.Scope, Directory: opts.Directory, Clock: opts.Clock,
		Kind: "VM", Noun: "VM", Finalizer: pcapi.VMFinalizer, EventConditions: reconciler.EventConditions(pcapi.GuestReadyCondition), LostAdvice: "delete this object and create another",
	}))
	return k
}

// assemble makes the parts of the kind, which use its lifecycle.
func (k *kind) assemble(cluster string, l *lifecycle) {
	k.lifecycle = l
	k.servers = &servers{cluster: cluster, tracker: k.Tracker, clock: k.Clock}
	k.observer = &observer{lifecycle: k.lifecycle, servers: k.servers, refusals: k.refusals, probes: k.probes}
	k.names = &nameChecker{lifecycle: k.lifecycle, observer: k.observer, refusals: k.refusals}
	k.changer = &changer{lifecycle: k.lifecycle, servers: k.servers, refusals: k.refusals}
	k.reverter = &reverter{lifecycle: k.lifecycle, servers: k.servers, changer: k.changer, recorder: k.recorder}
	k.vmSteps = newSteps(k)
}

// forgetVM drops all that is remembered of a VM that is gone.
func (k *kind) forgetVM(o client.Object) {
	k.refusals.forget(o.GetUID())
	k.ForgetDeleted(o)
}
