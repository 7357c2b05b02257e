package network

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/external"
)

// newID stands for the id of a network that does not exist yet.
const newID = "new"

// Forecaster says what the operator is going to do about Networks, from what the API server has.
type Forecaster struct{ kind *kind }

// NewForecaster returns a Forecaster that reads objects with c. Cluster is the UID of the
// namespace kube-system, empty if it is not known.
func NewForecaster(c client.Client, cluster string, clock func() time.Time) *Forecaster {
	return &Forecaster{kind: newKind(c, controller.ForecastOptions(c, cluster, clock))}
}

// Forecast returns what net leads to, as it is after a create, an edit or a deletion. The
// network is taken to be as the status shows it, and not changed in the cloud since.
func (f *Forecaster) Forecast(ctx context.Context, net *pcapi.Network) (forecast external.Forecasted, err error) {
	k, obs := f.kind, &observation{name: f.kind.nameInCloud(net)}
	if forecast.Unreadable, err = k.ObserveCloud(ctx, net, obs, cloud.NewCapabilities(cloud.Networks, cloud.NetworkDNS, cloud.Routers, cloud.DualStack)); err != nil {
		return forecast, err
	}
	obs.Looked = true
	switch {
	case net.Status.NetworkID != "":
		obs.Resource = new(inStatus(net, obs.name))
		obs.Owned, obs.Claimed = true, obs.name
	case imported(net) && obs.Spec != nil:
		if obs.importErr = importable(obs.Spec, net.Namespace, net.Spec.Import.Name); obs.importErr == nil {
			obs.Resource, obs.How = &cloud.Network{ID: net.Spec.Import.Name, Name: net.Spec.Import.Name, CIDR: net.Spec.CIDR, Gateway: net.Spec.Gateway}, pcapi.ImportedReason
		}
	}
	if !net.DeletionTimestamp.IsZero() {
		if obs.attached, err = f.attached(ctx, net); err != nil {
			return forecast, err
		}
	}
	forecast.Cloud = obs.Cloud
	forecast.Changes, forecast.Outcome = external.Forecast(k.lifecycle, k, net, obs)
	return forecast, nil
}

// inStatus returns the network of a name as the status shows it.
func inStatus(net *pcapi.Network, name string) cloud.Network {
	status := &net.Status
	n := cloud.Network{
		ID: status.NetworkID, Name: name, CIDR: status.CIDR, IPv6CIDR: status.IPv6CIDR, Gateway: status.Gateway, DNSNameservers: status.DNSNameservers,
	}
	if status.Router != nil {
		n.Router = cloud.Router{ID: status.Router.ID, ExternalNetwork: status.Router.ExternalNetwork, ExternalID: status.Router.ExternalNetworkID}
	}
	return n
}

// attached is attachedTo without the index of the cache.
func (f *Forecaster) attached(ctx context.Context, net *pcapi.Network) ([]string, error) {
	var vms pcapi.VMList
	if err := f.kind.Client.List(ctx, &vms, client.InNamespace(net.Namespace)); err != nil {
		return nil, fmt.Errorf("list the VMs of Network %q: %w", net.Name, err)
	}
	var names []string
	for i := range vms.Items {
		for _, interfaced := range controller.InterfacesOf(&vms.Items[i]) {
			if interfaced.NetworkRef.Name == net.Name && attached(&vms.Items[i]) {
				names = append(names, vms.Items[i].Name)
				break
			}
		}
	}
	return names, nil
}

// Copy returns a copy that Foresee may change.
func (k *kind) Copy(obs *observation) *observation {
	c := *obs
	return &c
}

// Foresee says what the steps of a Network do.
func (k *kind) Foresee(step string, net *pcapi.Network, obs *observation) ([]pcapi.PlannedChange, bool) {
	change := pcapi.PlannedChange{Name: net.Name}
	switch step {
	case external.StepAdopt:
		net.Status.NetworkID, net.Status.Cloud = obs.Resource.ID, obs.Cloud
		return nil, true
	case external.StepCreate, stepComplete:
		change.Action, change.Details = pcapi.PlannedCreate, []string{"cidr " + net.Spec.CIDR}
		if net.Spec.IPv6CIDR != "" {
			change.Details = append(change.Details, "ipv6CIDR "+net.Spec.IPv6CIDR)
		}
		if net.Spec.Gateway != "" {
			change.Details = append(change.Details, "gateway "+net.Spec.Gateway)
		}
		if servers := nameservers(net); len(servers) > 0 {
			change.Details = append(change.Details, "dnsNameservers "+strings.Join(servers, ","))
		}
		if to := externalNetwork(net); to != "" {
			change.Details = append(change.Details, "router to "+to)
		}
		obs.Resource, obs.Owned = &cloud.Network{
			ID: newID, Name: obs.name, CIDR: net.Spec.CIDR, IPv6CIDR: net.Spec.IPv6CIDR, Gateway: net.Spec.Gateway, DNSNameservers: nameservers(net), Router: cloud.Router{ExternalNetwork: externalNetwork(net)},
		}, true
		net.Status.NetworkID, net.Status.Cloud = newID, obs.Cloud
	case stepUpdate:
		change.Action, change.ID = pcapi.PlannedUpdate, obs.Resource.ID
		for _, s := range asked(difference(net, *obs.Resource), *obs.Resource) {
			change.Details = append(change.Details, fmt.Sprintf("%s %s to %s", s.field, cmp.Or(s.from, "none"), s.to))
		}
		updated := *obs.Resource
		updated.Gateway, updated.IPv6CIDR = net.Spec.Gateway, cmp.Or(updated.IPv6CIDR, net.Spec.IPv6CIDR)
		if servers := nameservers(net); len(servers) > 0 {
			updated.DNSNameservers = servers
		}
		obs.Resource = &updated
	case stepConnect:
		change.Action, change.ID, change.Details = pcapi.PlannedUpdate, obs.Resource.ID, []string{"router to " + externalNetwork(net)}
		connected := *obs.Resource
		connected.Router = cloud.Router{ID: connected.Router.ID, ExternalNetwork: externalNetwork(net), ExternalID: requestedID(net)}
		obs.Resource = &connected
	case stepDeleteRouter: // with the network
		return nil, true
	default:
		return nil, false
	}
	return []pcapi.PlannedChange{change}, true
}
