package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/controller/network"
	"github.com/privatecloud/operator/internal/controller/vm"
	"github.com/privatecloud/operator/internal/controller/vmgroup"
	"github.com/privatecloud/operator/internal/controller/vmsnapshot"
	"github.com/privatecloud/operator/internal/external"
)

// Object is what the operator does about one object.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Changes are those in the cloud, in their order.
	Changes []pcapi.PlannedChange `json:"changes,omitempty"`
	// Waits is why the object is not as the spec says after the changes; empty if it is.
	Waits string `json:"waits,omitempty"`
	// Assumed says what the plan could not read, or does not cover.
	Assumed string `json:"assumed,omitempty"`
	// Error is why there is no plan for the object.
	Error string `json:"error,omitempty"`
}

// Plan is what the operator does about all objects.
type Plan struct {
	Objects []Object `json:"objects"`

	failure error
}

// Changes reports whether something is done in the cloud.
func (p *Plan) Changes() bool {
	return slices.ContainsFunc(p.Objects, func(o Object) bool { return len(o.Changes) > 0 })
}

// order is the order in which kinds are planned: objects come after those they refer to.
var order = []string{"Cloud", "VMClass", "Network", "VM", "VMSnapshot", "VmGroup", "GPUInfo"}

type planner struct {
	client    client.Client
	overlay   *overlay
	vms       *vm.Forecaster
	networks  *network.Forecaster
	snapshots *vmsnapshot.Forecaster
	groups    *vmgroup.Forecaster
}

// newPlanner returns a planner. Networks are named after the cluster, whose id few users may read.
func newPlanner(ctx context.Context, c client.Client) *planner {
	system := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
	_ = c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system)
	cluster, seen := string(system.UID), &overlay{Client: c, objects: map[string]client.Object{}}
	return &planner{
		client: c, overlay: seen,
		vms: vm.NewForecaster(seen, cluster, time.Now), networks: network.NewForecaster(seen, cluster, time.Now),
		snapshots: vmsnapshot.NewForecaster(seen, cluster, time.Now), groups: vmgroup.NewForecaster(seen, cluster, time.Now),
	}
}

// plan plans for manifests of the kinds of the operator. Others are left out.
func (p *planner) plan(ctx context.Context, manifests []*resource.Info, opts applyOptions, deletes bool) *Plan {
	manifests = slices.DeleteFunc(manifests, func(i *resource.Info) bool {
		return i.Mapping.GroupVersionKind.Group != pcapi.GroupVersion.Group
	})
	place := func(i *resource.Info) int { return slices.Index(order, i.Mapping.GroupVersionKind.Kind) }
	slices.SortStableFunc(manifests, func(a, b *resource.Info) int { return cmp.Compare(place(a), place(b)) })
	result := &Plan{Objects: []Object{}}
	for _, info := range manifests {
		o := Object{Kind: info.Mapping.GroupVersionKind.Kind, Namespace: info.Namespace, Name: info.Name}
		if err := p.one(ctx, info.Object.(*unstructured.Unstructured), opts, deletes, &o); err != nil {
			o.Error = err.Error()
			result.failure = errors.Join(result.failure, fmt.Errorf("%s %s: %w", o.Kind, o.named(), err))
		}
		result.Objects = append(result.Objects, o)
	}
	return result
}

// one plans for one manifest.
func (p *planner) one(ctx context.Context, manifest *unstructured.Unstructured, opts applyOptions, deletes bool, o *Object) error {
	var live, after *unstructured.Unstructured
	var err error
	if deletes {
		live, after, err = deletion(ctx, p.client, manifest)
	} else {
		live, after, err = dryRun(ctx, p.client, manifest, opts)
	}
	if err != nil || after == nil {
		return err
	}
	if pcapi.Paused(after) {
		o.Waits = "the object is paused: remove its annotation " + pcapi.PausedAnnotation
		return nil
	}
	var forecast external.Forecasted
	switch o.Kind {
	case "VM":
		if forecast, err = p.planVM(ctx, live, after); imports(forecast.Changes) {
			o.Assumed = "only the name of the server is known: its size and power state are changed, too, if the spec has others"
		}
	case "VmGroup":
		forecast, err = p.planGroup(ctx, live, after)
	case "Network":
		forecast, err = p.planNetwork(ctx, after)
	case "VMSnapshot":
		snap, convertErr := typed[pcapi.VMSnapshot](after)
		if convertErr != nil {
			return convertErr
		}
		forecast, err = p.snapshots.Forecast(ctx, snap)
	default:
		o.noteEdit(live, after)
		return p.follow(after)
	}
	o.report(forecast)
	policy, _, _ := unstructured.NestedString(after.Object, "spec", "approval")
	if pcapi.ApprovalPolicy(policy) == pcapi.ApprovalRequired && len(o.Changes) > 0 && o.Waits == "" {
		o.Waits = "spec.approval is Required: the changes wait until the plan in status.plan is approved by the annotation " + pcapi.ApprovedPlanAnnotation
	}
	return err
}

// imports reports whether a server is imported.
func imports(changes []pcapi.PlannedChange) bool {
	return len(changes) > 0 && changes[0].Action == pcapi.PlannedImport
}

func (o *Object) report(forecast external.Forecasted) {
	o.Changes = append(o.Changes, forecast.Changes...)
	if forecast.Outcome != nil {
		o.Waits = forecast.Outcome.Error()
	}
	if forecast.Unreadable != nil {
		o.Assumed = fmt.Sprintf("the plan assumes that the Cloud is available and can do what the spec asks for: %v", forecast.Unreadable)
	}
}

// noteEdit notes an edit of an object that is nothing in the cloud itself.
func (o *Object) noteEdit(live, after *unstructured.Unstructured) {
	if live != nil && !equality.Semantic.DeepEqual(live.Object["spec"], after.Object["spec"]) {
		o.Assumed = "the spec changes, and what follows for other objects, and for orphans of a Cloud, is not planned"
	}
}

func (o *Object) named() string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// follow has others read a Cloud or VMClass as it will be.
func (p *planner) follow(after *unstructured.Unstructured) error {
	switch after.GetKind() {
	case "Cloud":
		c, err := typed[pcapi.Cloud](after)
		if err == nil {
			p.overlay.set(c)
		}
		return err
	case "VMClass":
		class, err := typed[pcapi.VMClass](after)
		if err == nil {
			p.overlay.set(class)
		}
		return err
	}
	return nil
}

func (p *planner) planVM(ctx context.Context, live, after *unstructured.Unstructured) (external.Forecasted, error) {
	now, err := typed[pcapi.VM](after)
	if err != nil {
		return external.Forecasted{}, err
	}
	before, err := typed[pcapi.VM](live)
	if err != nil {
		return external.Forecasted{}, err
	}
	forecast, err := p.vms.Forecast(ctx, before, now)
	if len(forecast.Changes) > 0 && now.Status.VMID == "" && forecast.Outcome == nil {
		now.Status.VMID, now.Status.State = "new", pcapi.VMStateRunning
	}
	p.overlay.set(now)
	return forecast, err
}

func (p *planner) planNetwork(ctx context.Context, after *unstructured.Unstructured) (external.Forecasted, error) {
	net, err := typed[pcapi.Network](after)
	if err != nil {
		return external.Forecasted{}, err
	}
	forecast, err := p.networks.Forecast(ctx, net)
	if err == nil && forecast.Outcome == nil && net.DeletionTimestamp.IsZero() {
		net.Status.NetworkID, net.Status.Cloud = cmp.Or(net.Status.NetworkID, "new"), cmp.Or(net.Status.Cloud, forecast.Cloud)
		net.Status.IPv6CIDR = cmp.Or(net.Status.IPv6CIDR, net.Spec.IPv6CIDR)
		net.Status.CIDR, net.Status.Gateway = cmp.Or(net.Status.CIDR, net.Spec.CIDR), cmp.Or(net.Status.Gateway, net.Spec.Gateway)
		meta.SetStatusCondition(&net.Status.Conditions, metav1.Condition{Type: pcapi.CreatedCondition, Status: metav1.ConditionTrue, Reason: pcapi.CreatedReason})
	}
	p.overlay.set(net)
	return forecast, err
}

func (p *planner) planGroup(ctx context.Context, live, after *unstructured.Unstructured) (external.Forecasted, error) {
	g, err := typed[pcapi.VmGroup](after)
	if err != nil {
		return external.Forecasted{}, err
	}
	forecast, err := p.groups.Forecast(ctx, g)
	if live == nil { // the names of its members follow from the UID that it gets
		for i := range forecast.Changes {
			forecast.Changes[i].Name = g.Name + "-replica-*"
		}
	}
	return forecast, err
}

// typed converts an object, nil for nil.
func typed[T any](u *unstructured.Unstructured) (*T, error) {
	if u == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		return nil, fmt.Errorf("this plugin cannot read the object, which an operator of another version may have written: %w", err)
	}
	return into, nil
}
