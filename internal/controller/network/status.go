package network

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// Report writes the Network's own status fields.
func (k *kind) Report(net *pcapi.Network, obs *observation, _ error) reconciler.Summary {
	if obs.Resource != nil && net.Status.NetworkID == "" {
		net.Status.NetworkID, net.Status.Cloud = obs.Resource.ID, obs.Cloud
		net.Status.CreatedTime = new(metav1.NewTime(obs.Now))
	}
	if obs.counted {
		net.Status.AttachedVMs = int32(len(obs.attached)) //nolint:gosec // fewer than etcd holds
	}
	return reconciler.Summary{
		Reason: pcapi.InSyncReason, Message: fmt.Sprintf("network %s is as the spec says", net.Status.NetworkID), RequeueAfter: obs.View.Settings.PollInterval,
	}
}
