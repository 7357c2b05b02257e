package cloud

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// The texts of the condition Insecure.
const (
	notVerified = "spec.insecureSkipTLSVerify is true: any certificate is accepted, so that whoever can redirect the traffic gets " +
		"what is sent to the cloud, with credentials and user data; give the cloud's CA in ca.crt of the Secret, and remove the field"
	notEncrypted = "spec.endpoint begins with http://: whoever can read the traffic gets " +
		"what is sent to the cloud, with credentials and user data; give an endpoint that begins with https://"
	servicesNotEncrypted = "spec.insecureAllowHTTP is true: tokens and user data are also sent to http endpoints that the catalog of services has; remove the field"
)

// reportInsecure reports whether others can read what is sent to the cloud, as far as the
// spec says.
func reportInsecure(c *pcapi.Cloud) {
	reason, message := insecure(c)
	if reason == "" {
		meta.RemoveStatusCondition(&c.Status.Conditions, pcapi.InsecureCondition)
		return
	}
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: pcapi.InsecureCondition, Status: metav1.ConditionTrue, Reason: reason, Message: message})
}

// insecure returns why others can read what is sent to the cloud; empty if they cannot.
// insecureAllowHTTP has no effect on an https endpoint, except that the services of an
// OpenStack may have others.
func insecure(c *pcapi.Cloud) (reason, message string) {
	switch {
	case strings.HasPrefix(strings.ToLower(c.Spec.Endpoint), "http://"):
		return pcapi.NotEncryptedReason, notEncrypted
	case c.Spec.InsecureSkipTLSVerify:
		return pcapi.CertificateNotVerifiedReason, notVerified
	case c.Spec.InsecureAllowHTTP && c.Spec.Type == pcapi.CloudTypeOpenStack:
		return pcapi.NotEncryptedReason, servicesNotEncrypted
	}
	return "", ""
}
