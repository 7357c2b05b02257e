package network

import (
	"fmt"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/names"
	"github.com/privatecloud/operator/internal/reconciler"
)

// Report writes the Network's own status fields.
func (k *kind) Report(net *pcapi.Network, obs *observation, _ error) reconciler.Summary {
	if obs.Resource != nil && net.Status.NetworkID == "" && (!imported(net) || obs.Claimed != "") {
		net.Status.NetworkID, net.Status.Cloud = obs.Resource.ID, obs.Cloud
		net.Status.CreatedTime = new(reconciler.StatusTime(obs.Now))
		net.Status.NameInCloud = ""
	}
	if n := obs.Resource; n != nil && n.ID == net.Status.NetworkID {
		describeInStatus(net, obs, *n)
	}
	if obs.counted {
		net.Status.AttachedVMs = int32(len(obs.attached)) //nolint:gosec // fewer than etcd holds
	}
	message := fmt.Sprintf("network %s is as the spec says", net.Status.NetworkID)
	if imported(net) {
		message = fmt.Sprintf("network %s exists; it is imported, and not changed", net.Status.NetworkID)
	}
	return reconciler.Summary{Reason: pcapi.InSyncReason, Message: message, RequeueAfter: obs.View.Settings.PollInterval}
}

// maxText bounds the texts of the cloud in the status, in bytes.
const maxText = 253

// maxNameservers bounds the DNS servers in the status.
const maxNameservers = 16

// describeInStatus writes what the cloud says of the network. A later name of a network that was created
// is drift. That of an imported one may contain that of another tenant's object.
func describeInStatus(net *pcapi.Network, obs *observation, n cloud.Network) {
	if net.Status.NameInCloud == "" || imported(net) && (n.Name == obs.name || !hashed.MatchString(n.Name)) {
		net.Status.NameInCloud = names.Bounded(maxText, n.Name)
	}
	net.Status.CIDR, net.Status.IPv6CIDR, net.Status.Gateway = names.Bounded(maxText, n.CIDR), names.Bounded(maxText, n.IPv6CIDR), names.Bounded(maxText, n.Gateway)
	net.Status.Router = routerInStatus(net, obs, n.Router)
	net.Status.DNSNameservers = nil
	for _, server := range n.DNSNameservers[:min(maxNameservers, len(n.DNSNameservers))] {
		net.Status.DNSNameservers = append(net.Status.DNSNameservers, names.Bounded(maxText, server))
	}
}
