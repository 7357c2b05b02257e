package cloud

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/api/meta"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

func TestReportInsecure(t *testing.T) {
	unverified := func(c *pcapi.Cloud) { c.Spec.InsecureSkipTLSVerify = true }
	allowHTTP := func(c *pcapi.Cloud) { c.Spec.InsecureAllowHTTP = true }
	http := func(c *pcapi.Cloud) { c.Spec.Endpoint = "http://cloud.test/api" }
	of := func(kind pcapi.CloudType) func(*pcapi.Cloud) { return func(c *pcapi.Cloud) { c.Spec.Type = kind } }
	const (
		certificate = "Insecure=True CertificateNotVerified: spec.insecureSkipTLSVerify is true: any certificate is accepted, so that whoever can redirect the traffic gets " +
			"what is sent to the cloud, with credentials and user data; give the cloud's CA in ca.crt of the Secret, and remove the field"
		plain = "Insecure=True NotEncrypted: spec.endpoint begins with http://: whoever can read the traffic gets " +
			"what is sent to the cloud, with credentials and user data; give an endpoint that begins with https://"
		services = "Insecure=True NotEncrypted: spec.insecureAllowHTTP is true: tokens and user data are also sent to http endpoints that the catalog of services has; remove the field"
	)
	for name, tc := range map[string]struct {
		cloud *pcapi.Cloud
		want  string
	}{
		"https, and the certificate is verified":                       {home(), ""},
		"https with a Secret":                                          {home(withSecret), ""},
		"any certificate, REST":                                        {home(withSecret, unverified), certificate},
		"any certificate, vSphere":                                     {home(withSecret, unverified, of(pcapi.CloudTypeVSphere)), certificate},
		"any certificate, OpenStack":                                   {home(withSecret, unverified, of(pcapi.CloudTypeOpenStack)), certificate},
		"http with a Secret, REST":                                     {home(withSecret, http, allowHTTP), plain},
		"http with a Secret, vSphere":                                  {home(withSecret, http, allowHTTP, of(pcapi.CloudTypeVSphere)), plain},
		"http with a Secret, OpenStack":                                {home(withSecret, http, allowHTTP, of(pcapi.CloudTypeOpenStack)), plain},
		"http without a Secret: user data is sent, too":                {home(http), plain},
		"http, and any certificate":                                    {home(http, unverified), plain},
		"https, and http is allowed, which has no effect":              {home(withSecret, allowHTTP), ""},
		"https, and http is allowed, OpenStack: also for its services": {home(withSecret, allowHTTP, of(pcapi.CloudTypeOpenStack)), services},
	} {
		t.Run(name, func(t *testing.T) {
			reportInsecure(tc.cloud)
			if reason, _ := insecure(tc.cloud); reason != "" && !slices.ContainsFunc((&kind{}).EventConditions(), func(condition reconciler.EventCondition) bool {
				return condition.Type == pcapi.InsecureCondition && slices.Contains(condition.Warnings, reason)
			}) {
				t.Errorf("the reason %s is no event", reason)
			}
			var want []string
			if tc.want != "" {
				want = []string{tc.want}
			}
			equal(t, "conditions", want, sum(tc.cloud.Status).Conditions)
		})
	}
}

func TestInsecureCloudIsReportedOnce(t *testing.T) {
	w := newWorld(t, home(claimed, func(c *pcapi.Cloud) { c.Spec.InsecureSkipTLSVerify = true }), newCloud(nil, server("a")))
	w.reconcile()
	for range 3 {
		w.later()
	}
	w.wantCondition(pcapi.InsecureCondition, "True CertificateNotVerified")
	w.wantCondition(pcapi.ReadyCondition, "True Connected")
	var insecure, ready int
	for _, event := range w.events {
		switch event {
		case "Warning CertificateNotVerified Insecure":
			insecure++
		case "Normal Connected Ready":
			ready++
		}
	}
	equal(t, "events of Insecure", 1, insecure)
	equal(t, "events of Ready", 1, ready)
	equal(t, "metric", 1.0, testutil.ToFloat64(w.kind.gauge.insecure.WithLabelValues("home")))

	w.edit(func(c *pcapi.Cloud) { c.Spec.InsecureSkipTLSVerify = false })
	w.later()
	if condition := meta.FindStatusCondition(w.stored().Status.Conditions, pcapi.InsecureCondition); condition != nil {
		t.Errorf("the condition is %s %s although the spec is secure", condition.Status, condition.Reason)
	}
	equal(t, "metric", 0.0, testutil.ToFloat64(w.kind.gauge.insecure.WithLabelValues("home")))
	w.kind.gauge.forget("home")
	equal(t, "series of a Cloud that is gone", 0, testutil.CollectAndCount(w.kind.gauge.insecure))
}
