package cloud

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/clouds"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

// recheck is the time until a Cloud that a person must repair is reconciled again.
const recheck = 10 * time.Second

var defaultSettleTime = metav1.Duration{Duration: 2 * time.Minute}

func settingsOf(c *pcapi.Cloud) inventory.Settings {
	return inventory.Settings{
		PollInterval:      c.Spec.PollInterval.Duration,
		SettleTime:        ptr.Deref(c.Spec.SettleTime, defaultSettleTime).Duration,
		UtilizationStep:   int(c.Spec.UtilizationStep),
		RequestsPerSecond: int(c.Spec.Limits.RequestsPerSecond),
	}
}

// outcomeOf returns the outcome of a reconcile whose call of the cloud failed.
func outcomeOf(c *pcapi.Cloud, err error) error {
	if unusable, ok := errors.AsType[*clouds.UnusableError](err); ok {
		return stall(unusable.Reason, unusable)
	}
	wait := func(reason string) error {
		return reconciler.Wait(max(recheck, cloud.RetryAfter(err)), reason,
			"%v; tried again by itself: if it lasts, look at the cloud and at spec.endpoint, %s", err, c.Spec.Endpoint)
	}
	switch {
	case cloud.Is(err, cloud.Unauthorized):
		return stall(pcapi.AuthenticationFailedReason, err)
	case cloud.Is(err, cloud.Misconfigured):
		return stall(pcapi.InvalidConfigurationReason, err)
	case cloud.Is(err, cloud.Untrusted):
		return stall(pcapi.UntrustedReason, err)
	case cloud.Is(err, cloud.Throttled), cloud.Is(err, cloud.Unavailable) && cloud.RetryAfter(err) > 0:
		return reconciler.Wait(max(recheck, cloud.RetryAfter(err)), pcapi.ThrottledReason,
			"%v; the cloud asks to wait, or spec.limits allow no more requests now; tried again by itself: if it lasts, look at the load, the maintenance and the quota of the cloud, then at spec.limits", err)
	case cloud.Is(err, cloud.Unavailable):
		return wait(pcapi.UnreachableReason)
	case cloud.KindOf(err) != "":
		return wait(pcapi.PollFailedReason)
	default:
		return err
	}
}

// stall is the outcome if a person must act. It is rechecked, because no event
// reports a change of a Secret or of the cloud.
func stall(reason string, cause error) error {
	return &reconciler.StalledError{Reason: reason, Cause: cause, Recheck: recheck}
}

// publicText returns what tenants may read of a failed poll. The details concern
// the platform: the Cloud's own conditions have them.
func publicText(err error) string {
	if unusable, ok := errors.AsType[*clouds.UnusableError](err); ok && unusable.Reason == pcapi.SecretMissingReason {
		return "its credentials are missing: its administrator has to create their Secret"
	} else if ok {
		return "its configuration has to be corrected by its administrator"
	}
	switch {
	case cloud.Is(err, cloud.Misconfigured, cloud.Unauthorized, cloud.Untrusted, cloud.Throttled, cloud.Unavailable, cloud.Unreadable):
		return cloud.PublicMessage(err)
	case cloud.KindOf(err) != "":
		return "the cloud refuses the operator's requests"
	default:
		return "the operator cannot read its configuration now"
	}
}
