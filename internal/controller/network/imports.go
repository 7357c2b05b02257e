package network

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

// imported reports whether a Network refers to a network that exists, which the
// operator neither creates, changes nor deletes.
func imported(net *pcapi.Network) bool { return net.Spec.Import != nil }

// errOwned is why a network cannot be imported that another object may have made.
var errOwned = errors.New("a network of this name may belong to another object: import another, or ask the administrator of the Cloud to set networkImports to Listed and add it to importableNetworks")

// importable returns why a namespace may not import the network of a name; nil if it
// may. It does not depend on whether there is such a network, and says of no network
// but the one that the user named. A name that an operator gave is that of another
// object, possibly of another tenant: only the list allows it.
func importable(spec *pcapi.CloudSpec, namespace, name string) error {
	if tenancy.NetworkImports(spec) == pcapi.ImportPolicyAny && hashed.MatchString(name) {
		return errOwned
	}
	return tenancy.MayImportNetwork(spec, namespace, name)
}

// refused reports whether the import of a network that is not on record is not allowed.
func refused(net *pcapi.Network, obs *observation) bool {
	if obs.byName = imported(net) && net.Status.NetworkID == ""; !obs.byName {
		return false
	}
	obs.importErr = importable(obs.Spec, net.Namespace, net.Spec.Import.Name)
	return obs.importErr != nil
}

// lookImported finds the network that a Network imports: by its id once that is on
// record, whatever its name is then.
func lookImported(net *pcapi.Network, obs *observation, found []cloud.Network) {
	for _, n := range found {
		if obs.byName && n.Name == net.Spec.Import.Name || n.ID == net.Status.NetworkID {
			obs.named++
			obs.Resource, obs.How = &n, pcapi.ImportedReason
		}
	}
	if obs.named > 1 {
		obs.Resource = nil
	}
}

// refuseOwned refuses the import of a network that another Network of the Cloud has made, which the name may not show: the
// cloud may have chosen it.
func (k *kind) refuseOwned(ctx context.Context, obs *observation) error {
	if !obs.byName || obs.Resource == nil || tenancy.NetworkImports(obs.Spec) != pcapi.ImportPolicyAny {
		return nil
	}
	owned, err := k.madeByANetwork(ctx, obs.Cloud, obs.Resource.ID)
	if owned {
		obs.Resource, obs.importErr = nil, errOwned
	}
	return err
}

// madeByANetwork reports whether a Network that is not imported has a network of a Cloud on record.
func (k *kind) madeByANetwork(ctx context.Context, on, id string) (bool, error) {
	var all pcapi.NetworkList
	if err := k.Client.List(ctx, &all, client.MatchingFields{tenancy.CloudIndex: on}, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list the Networks on Cloud %q: %w", on, err)
	}
	return slices.ContainsFunc(all.Items, func(o pcapi.Network) bool { return !imported(&o) && o.Status.NetworkID == id }), nil
}

// PlanImport records the network that has the name. What the cloud lacks may appear
// later: it is looked for every minute.
func (k *kind) PlanImport(net *pcapi.Network, obs *observation) plan {
	name := net.Spec.Import.Name
	switch {
	case obs.Moved:
		return k.Do(k.Steps.Unclaim).Then(reconciler.Wait(time.Second, pcapi.ProgressingReason,
			"the network was not imported from the Cloud that spec.cloudRef named before"))
	case obs.importErr != nil:
		return k.End(reconciler.Stalled(pcapi.RejectedReason, controller.RecheckRefused, obs.importErr))
	case obs.named > 1:
		return k.End(reconciler.Stalled(pcapi.AmbiguousReason, external.RecheckSoon, fmt.Errorf(
			"the cloud has %d networks named %q: rename all but one in the cloud, or delete this Network and import another", obs.named, name)))
	case obs.Gone:
		return k.End(reconciler.Stalled(pcapi.RejectedReason, external.RecheckSoon, fmt.Errorf(
			"the cloud has no network named %q: create it there, or delete this Network and create another with the right name in spec.import", name)))
	case obs.Absent:
		return k.End(k.Unproved(&obs.Observation, strconv.Quote(name)))
	case obs.Resource == nil:
		return k.Do(k.Steps.Look)
	}
	return k.Do(k.Steps.Claim, k.Steps.Adopt)
}
