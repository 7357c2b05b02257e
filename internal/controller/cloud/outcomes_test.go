package cloud

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/clouds"
	"github.com/privatecloud/operator/internal/inventory"
)

func TestSettingsOfSpec(t *testing.T) {
	equal(t, "settings", inventory.Settings{PollInterval: pollInterval, SettleTime: settleTime, UtilizationStep: 1}, settingsOf(home()))
	unset := home(func(c *pcapi.Cloud) { c.Spec.SettleTime = nil })
	equal(t, "settle time if the spec has none", 2*time.Minute, settingsOf(unset).SettleTime)
	none := home(func(c *pcapi.Cloud) { c.Spec.SettleTime = &metav1.Duration{} })
	equal(t, "settle time 0 in the spec", time.Duration(0), settingsOf(none).SettleTime)
}

func TestOutcomeOfFailedPoll(t *testing.T) {
	throttled := &cloud.Error{Kind: cloud.Throttled, Op: "list servers", RetryAfter: time.Minute}
	patient := &cloud.Error{Kind: cloud.Unavailable, Op: "list servers", Detail: "maintenance", RetryAfter: 5 * time.Minute}
	misconfigured := &cloud.Error{Kind: cloud.Misconfigured, Op: "get capabilities", Detail: "there is no datastore d1"}
	unusable := &clouds.UnusableError{Reason: pcapi.SecretMissingReason, Err: errors.New("create the Secret")}
	tests := []struct {
		err     error
		outcome string
		says    string
	}{
		{errLogin, "stalled: AuthenticationFailed, again in 10s", "wrong token"},
		{errUntrusted, "stalled: Untrusted, again in 10s", "unknown authority"},
		{misconfigured, "stalled: InvalidConfiguration, again in 10s", "there is no datastore d1"},
		{errRefused, "waiting: Unreachable, again in 10s", "spec.endpoint, https://cloud.test/api"},
		{patient, "waiting: Throttled, again in 5m0s", "maintenance"},
		{throttled, "waiting: Throttled, again in 1m0s", "spec.limits allow no more requests"},
		{errGarbage, "waiting: PollFailed, again in 10s", "not JSON"},
		{unusable, "stalled: SecretMissing, again in 10s", "create the Secret"},
		{errAPIAway, "error: the API server is away", "the API server is away"},
	}
	for _, tc := range tests {
		t.Run(tc.outcome, func(t *testing.T) {
			got := outcomeOf(home(), tc.err)
			equal(t, "outcome", tc.outcome, outcomeText(got))
			if !strings.Contains(got.Error(), tc.says) {
				t.Errorf("message %q, want %q in it", got, tc.says)
			}
		})
	}
}

func TestTenantsReadNothingOfThePlatform(t *testing.T) {
	const secret = "https://10.1.2.3/tenant-x operator/login"
	of := func(kind cloud.Kind) error { return &cloud.Error{Kind: kind, Op: "list servers", Detail: secret} }
	tests := []struct {
		err  error
		want string
	}{
		{&clouds.UnusableError{Reason: pcapi.SecretMissingReason, Err: errors.New(secret)}, "its credentials are missing: its administrator has to create their Secret"},
		{&clouds.UnusableError{Reason: pcapi.InvalidConfigurationReason, Err: of(cloud.Rejected)}, "its configuration has to be corrected by its administrator"},
		{of(cloud.Unavailable), "list servers: the cloud does not answer or cannot serve requests"},
		{of(cloud.Throttled), "list servers: the cloud or its limits allow no more requests now"},
		{of(cloud.Unauthorized), "list servers: the cloud refuses the operator's credentials"},
		{of(cloud.Untrusted), "list servers: the certificate of the cloud cannot be verified"},
		{of(cloud.Unreadable), "list servers: the answer of the cloud cannot be understood"},
		{of(cloud.Rejected), "the cloud refuses the operator's requests"},
		{of(cloud.NotFound), "the cloud refuses the operator's requests"},
		{errors.New("read Secret " + secret), "the operator cannot read its configuration now"},
	}
	for _, tc := range tests {
		t.Run(tc.want, func(t *testing.T) { equal(t, "text", tc.want, publicText(tc.err)) })
	}
}

func TestCloudWhoseListingsAreThrottledForMinutesIsThrottledAndThenConnected(t *testing.T) {
	f := newCloud(nil)
	f.FailAlways(cloudfake.ListServers, &cloud.Error{Kind: cloud.Throttled, Op: "list servers", RetryAfter: time.Minute}, false)
	w := newWorld(t, home(), f)
	for range 5 {
		w.reconcile()
		w.wantCondition(pcapi.ReadyCondition, "False Throttled", "list servers", "quota")
		w.advance(time.Minute)
	}
	f.Heal()
	w.reconcile()
	w.wantCondition(pcapi.ReadyCondition, "True Connected")
}

func TestUnavailableCloudNamesNoEndpoint(t *testing.T) {
	f := newCloud(nil)
	f.FailAlways(cloudfake.ListServers, errRefused, false)
	w := newWorld(t, home(), f)
	w.reconcile()
	w.wantCondition(pcapi.ReadyCondition, "False Unreachable", "https://cloud.test/api", "connection refused")
	equal(t, "what tenants read", "list servers: the cloud does not answer or cannot serve requests", w.inv.View().Unavailable)
}
