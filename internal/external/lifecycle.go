package external

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/fairqueue"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

const (
	// deadline bounds one reconcile: a check, a create and their retries.
	deadline = 90 * time.Second
	// keyLifetime is how long after an object was created a cloud certainly knows the
	// idempotency key of its create. Clouds keep keys for a day.
	keyLifetime = time.Hour
)

// Options configure a lifecycle.
type Options struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live, Leading and Tracer are those of reconciler.Reconciler.
	Live    client.Reader
	Leading func() bool
	Tracer  trace.Tracer
	// History and Queues are those of controller.Options.
	History *reconciler.History
	Queues  *fairqueue.Queues
	// Scope is the part of all Clouds that is reconciled, with the objects that use them.
	Scope tenancy.Scope
	// Directory holds the clouds.
	Directory *inventory.Directory
	// Clock returns the time.
	Clock func() time.Time

	// Kind and Noun name the object and its resource in messages, such as
	// Network and network.
	Kind, Noun string
	// Finalizer is on an object as long as its resource may exist.
	Finalizer string
	// Ref is the kind by which the inventory refers to objects; empty for VMs.
	Ref string
	// Needs are the capabilities of which a cloud with such resources has one; empty
	// if every cloud has them.
	Needs []cloud.Capability
	// OnDemand: Look calls the cloud, rather than read the listing that is
	// polled for all. Then no event reports a change, failed looks are tolerated
	// for a while, and they do not request a poll of the servers.
	OnDemand bool
	// Identified: the owner of a resource is known on every cloud, even without labels.
	Identified bool
	// Elsewhere says what users can do if the Cloud is of no use to them. Empty for
	// tenancy.Elsewhere.
	Elsewhere string
	// EventConditions lists conditions of the kind alone whose changes are recorded as
	// events, beside that of Ready.
	EventConditions []reconciler.EventCondition
	// LostAdvice says what users can do when the resource is lost.
	LostAdvice string
	// CloudFor returns the name of the Cloud of an object that has no resource or claim
	// on one. Nil for the one that the Ref of its Record names.
	CloudFor func(ctx context.Context, o client.Object) (string, error)
	// Alone reports whether no other manager reconciles objects at the moment. Nil
	// means that another one may.
	Alone func() bool
}

// wanted returns the name of the Cloud that an object is to use, whose spec names ref.
func (opts *Options) wanted(ctx context.Context, obj client.Object, ref *pcapi.CloudReference) (string, error) {
	if opts.CloudFor != nil {
		return opts.CloudFor(ctx, obj)
	}
	return tenancy.CloudFor(ctx, opts.Client, obj.GetNamespace(), ref)
}

// ref returns how the inventory refers to an object.
func (opts *Options) ref(obj client.Object) inventory.Ref {
	return inventory.Ref{Kind: opts.Ref, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// alone reports whether no other manager can have acted on a claim of this one.
func (opts *Options) alone() bool { return opts.Alone != nil && opts.Alone() }

// claimInStatus reports whether the claim is stored in the status, too, on a cloud with these capabilities:
// only names prove there which object owns a resource, and users can write metadata.
func (opts *Options) claimInStatus(capabilities cloud.Capabilities) bool {
	return !opts.Identified && !capabilities.Has(cloud.Labels)
}

// Lifecycle reconciles the objects of one kind with their external resources. It
// implements reconciler.Kind.
type Lifecycle[T reconciler.Object, R any, S Observed[R]] struct {
	*Outcomes[R]
	Plans[T, S]

	kind Kind[T, R, S]
	// reconciler runs the lifecycle; nil before Reconciler was called.
	reconciler *reconciler.Reconciler[T, S]
	// object returns an empty one.
	object func() T

	observer *observer[T, R, S]
	planner  *planner[T, R, S]
	executor *executor[T, R, S]
}

// New returns the lifecycle of a kind, whose empty objects and observations
// object and observation return.
func New[T reconciler.Object, R any, S Observed[R]](kind Kind[T, R, S], object func() T, observation func() S, opts Options) *Lifecycle[T, R, S] {
	outcomes := newOutcomes[R](opts)
	observer := &observer[T, R, S]{Outcomes: outcomes, kind: kind, observation: observation}
	executor := &executor[T, R, S]{Outcomes: outcomes, kind: kind, observer: observer}
	plans := Plans[T, S]{Steps: executor.steps()}
	planner := &planner[T, R, S]{Outcomes: outcomes, Plans: plans, kind: kind}
	return &Lifecycle[T, R, S]{
		Outcomes: outcomes, Plans: plans, kind: kind, object: object,
		observer: observer, planner: planner, executor: executor,
	}
}

// Reconciler returns the reconciler that runs the lifecycle.
func (l *Lifecycle[T, R, S]) Reconciler(recorder events.EventRecorder) *reconciler.Reconciler[T, S] {
	// A create is forgotten once its id is stored. The client has to read its own
	// writes, so that the next reconcile observes the id.
	l.reconciler = &reconciler.Reconciler[T, S]{
		Client: l.Client, Kind: l, Recorder: recorder, Deadline: deadline, Permit: l.permit,
		Live: l.Live, Leading: l.Leading, Tracer: l.Tracer, History: l.History, External: true, ClaimOf: l.claimOf,
		Owns:     controller.Owns(l.Scope, l.Client, l.Live, l.CloudOf),
		Disowned: func(obj T) { l.ForgetDeleted(obj) },
		Released: l.kind.ReportReleased,
		Paused:   func(obj T) { l.kind.ForgetReported(obj.GetUID()) },
		Reported: func(obj T, obs S, _ error) {
			if l.kind.Record(obj).ID != "" {
				l.Tracker.Recorded(obj.GetUID())
			}
			l.kind.Reported(obj, obs)
		},
	}
	return l.reconciler
}

// permit returns the outcome of a step whose needs the cloud does not meet now.
func (l *Lifecycle[T, R, S]) permit(obj T, obs S, needs reconciler.Needs) error {
	o := obs.External()
	if !needs.Has(reconciler.NeedsCloud) {
		return nil
	}
	err := controller.AwaitListing(o.View, o.Inventory.StartedAt(), o.Now)
	if err == nil {
		err = unmet(o, needs)
	}
	if err != nil {
		o.Inventory.EnqueueWhenAvailable(l.ref(obj), o.View)
	}
	return err
}

// Abandoned returns the objects that Kubernetes removed although their claim was
// stored, and that are not released yet. They are shared.
func (l *Lifecycle[T, R, S]) Abandoned() []T {
	if l.reconciler == nil {
		return nil
	}
	return l.reconciler.Abandoned()
}

var _ reconciler.Kind[*pcapi.Network, *Observation[cloud.Network]] = (*Lifecycle[*pcapi.Network, cloud.Network, *Observation[cloud.Network]])(nil)

// New returns an empty object.
func (l *Lifecycle[T, R, S]) New() T { return l.object() }

// Finalizer returns the finalizer of the kind.
func (l *Lifecycle[T, R, S]) Finalizer() string { return l.Options.Finalizer }

// EventConditions lists the conditions of the lifecycle and those of the kind.
func (l *Lifecycle[T, R, S]) EventConditions() []reconciler.EventCondition {
	return append(reconciler.EventConditions(pcapi.CreatedCondition, pcapi.DeletingCondition, pcapi.ReadyCondition), l.Options.EventConditions...)
}

// Observe reads what the reconcile knows of an object.
func (l *Lifecycle[T, R, S]) Observe(ctx context.Context, obj T) (S, error) {
	return l.observer.observe(ctx, obj)
}

// CloudOf returns the name of the Cloud that an object uses: the one that it has a
// resource or a claim on, else the one that its spec names.
func (l *Lifecycle[T, R, S]) CloudOf(ctx context.Context, obj T) (string, error) {
	record := l.kind.Record(obj)
	if recorded := RecordedCloud(obj, record.ID, record.Cloud, l.Options.Finalizer); recorded != "" {
		return recorded, nil
	}
	return l.wanted(ctx, obj, record.Ref)
}

// ForgetDeleted drops all that is remembered of an object that is deleted, or another
// manager's. One without a claim is deleted without a reconcile.
func (l *Lifecycle[T, R, S]) ForgetDeleted(o client.Object) {
	l.forget(o.GetUID())
	l.kind.ForgetReported(o.GetUID())
	l.Directory.Forget(l.ref(o))
}

// RecordedCloud returns the name of the Cloud that an object uses already: that of
// its recorded resource or, as long as a create may have been sent, that of its
// claim, which the status holds if cloudName is not empty. It is empty if there is none.
func RecordedCloud(obj client.Object, id, cloudName, finalizer string) string {
	switch {
	case id != "":
		return cloudName
	case cloudName != "" && (controllerutil.ContainsFinalizer(obj, finalizer) || !deleted(obj)):
		return cloudName
	case controllerutil.ContainsFinalizer(obj, finalizer) && !reconciler.ClaimOfAnother(obj):
		return obj.GetAnnotations()[pcapi.ClaimedCloudAnnotation]
	}
	return ""
}

func deleted(obj client.Object) bool { return !obj.GetDeletionTimestamp().IsZero() }
