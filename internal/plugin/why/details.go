package why

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// claim is what is recorded of a create that may have been sent.
type claim struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Claimed is whether the finalizer is on the object: something of it may be in the cloud.
	Claimed bool `json:"claimed"`
	// ClaimedName and Cloud are the name in the cloud and the Cloud of the create.
	ClaimedName string `json:"claimedName,omitempty"`
	Cloud       string `json:"cloud,omitempty"`
	// ID is what the cloud calls the resource, once that is known.
	ID string `json:"id,omitempty"`
}

// finalizers are those of the kinds that are backed by a resource in the cloud.
var finalizers = map[string]string{"VM": pcapi.VMFinalizer, "Network": pcapi.NetworkFinalizer, "VMSnapshot": pcapi.VMSnapshotFinalizer}

func claimOf(at key, o client.Object) *claim {
	finalizer, backed := finalizers[at.kind]
	if !backed {
		return nil
	}
	c := &claim{
		Kind: at.kind, Namespace: at.namespace, Name: at.name, Claimed: controllerutil.ContainsFinalizer(o, finalizer),
		ClaimedName: o.GetAnnotations()[pcapi.ClaimedNameAnnotation], Cloud: o.GetAnnotations()[pcapi.ClaimedCloudAnnotation],
	}
	recorded := ""
	switch of := o.(type) {
	case *pcapi.VM:
		c.ID, recorded = of.Status.VMID, of.Status.Cloud
	case *pcapi.Network:
		c.ID, recorded = of.Status.NetworkID, of.Status.Cloud
	case *pcapi.VMSnapshot:
		c.ID, recorded = of.Status.SnapshotID, of.Status.Cloud
	}
	if c.Cloud == "" {
		c.Cloud = recorded
	}
	return c
}

// addDetails adds the Cloud of the cause, what waits for it, the claim and the last steps.
func (c *chain) addDetails(ctx context.Context, cause key, o client.Object) {
	if cause.kind != cloudKind {
		c.report.Claim = claimOf(cause, o)
	}
	name := c.cloudOf(ctx, cause, o)
	if name == "" {
		return
	}
	at := key{kind: cloudKind, name: name}
	if !c.seen[at] {
		if of, err := c.read(ctx, at); err != nil {
			c.end(at, err)
		} else {
			c.report.Chain = append(c.report.Chain, entryOf(at, of))
		}
	}
	if slices.ContainsFunc(c.report.Chain, func(l entry) bool { return l.Kind == cloudKind && l.State == stateMissing }) {
		return
	}
	known, err := c.operator.Cloud(ctx, name)
	if err != nil {
		c.note("What waits for the Cloud and the last step are not shown: %v", err)
		return
	}
	c.report.Cloud = &known
	if c.report.Steps, err = c.operator.Steps(ctx, name, cause.kind, cause.namespace, cause.name); err != nil {
		c.note("The last step is not shown: %v", err)
	}
}
