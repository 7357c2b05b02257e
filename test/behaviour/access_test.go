package behaviour_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// Secrets, which must not be readable outside a Secret, and the part that all have in common.
const (
	token      = "token-not-to-be-shown"
	password   = "password-not-to-be-shown"
	secretPart = "not-to-be-shown"
)

// unusable returns a case of a Cloud that cannot be used: endpoint returns its
// endpoint and the data of its Secret, and Ready has a reason and a message with a sentence.
func unusable(reason, sentence string, endpoint func(*T) (string, map[string]string)) func(*T) {
	return func(t *T) {
		url, secret := endpoint(t)
		cloud := createCloud(t, url, withSecret(t, secret))
		t.Eventually(latest(cloud)).Should(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionFalse, reason, sentence),
			Not(testkit.HaveCondition("Authenticated", metav1.ConditionTrue, "")),
		))
	}
}

// onCloud is a new cloud with options and the data of the Secret to use it with.
func onCloud(options mockcloud.Options, secret map[string]string) func(*T) (string, map[string]string) {
	return func(t *T) (string, map[string]string) { return serveCloud(t, options).URL, secret }
}

// onTLSCloud is a new cloud with a certificate for a host, and the CA to trust
// it with: the one that signed it, another one, or none.
func onTLSCloud(host string, validFor time.Duration, trusted func(*T, *authority) map[string]string) func(*T) (string, map[string]string) {
	return func(t *T) (string, map[string]string) {
		ca := newAuthority(t)
		cloud, _ := serveTLS(t, ca.certify(t, host, time.Now().Add(validFor)))
		return cloud.URL, trusted(t, ca)
	}
}

func itsCA(_ *T, ca *authority) map[string]string { return map[string]string{"ca.crt": ca.pem} }
func anotherCA(t *T, _ *authority) map[string]string {
	return map[string]string{"ca.crt": newAuthority(t).pem}
}
func noCA(*T, *authority) map[string]string { return nil }

var (
	wrongToken   = map[string]string{"token": token + "-wrong"}
	passwordOnly = map[string]string{"username": "operator", "password": password}
)

func TestUnusableCloud(t *testing.T) { unusableClouds.run(t) }

var unusableClouds = cases{
	"the token is refused: AuthenticationFailed": unusable("AuthenticationFailed", "check the key token of the Secret",
		onCloud(mockcloud.Options{Token: token}, wrongToken)),
	"the password is refused: AuthenticationFailed": unusable("AuthenticationFailed", "check username and password in the Secret",
		onCloud(mockcloud.Options{Username: "operator", Password: password}, map[string]string{"username": "operator", "password": password + "-wrong"})),
	"credentials are required and there are none: AuthenticationFailed": unusable("AuthenticationFailed", "name a Secret in spec.credentialsSecretRef",
		onCloud(mockcloud.Options{Token: token}, nil)),
	"the cloud repeats the token in its refusal: the token is not shown": unusable("AuthenticationFailed", "is not welcome",
		func(t *T) (string, map[string]string) {
			cloud := serveCloud(t, mockcloud.Options{})
			_, err := cloud.AddFault(mockcloud.Fault{Status: 401, Body: `{"code":"unauthorized","detail":"your ` + token + `-wrong is not welcome"}`})
			t.Expect(err).NotTo(HaveOccurred())
			return cloud.URL, wrongToken
		}),
	"a password is given to a cloud without sessions: AuthenticationFailed": unusable("AuthenticationFailed", "put a token in the Secret instead",
		onCloud(mockcloud.Options{Profile: mockcloud.Core}, passwordOnly)),
	"the Secret has a token and a password: InvalidConfiguration": unusable("InvalidConfiguration", "not both",
		onCloud(mockcloud.Options{}, map[string]string{"token": token, "password": password})),
	"the Secret has a username only: InvalidConfiguration": unusable("InvalidConfiguration", "username and password go together",
		onCloud(mockcloud.Options{}, map[string]string{"username": "operator"})),
	"the Secret has none of the keys: InvalidConfiguration": unusable("InvalidConfiguration", "none of token, username and password, ca.crt",
		onCloud(mockcloud.Options{}, map[string]string{"other": "x"})),
	"the Secret is not labelled with the Cloud: InvalidConfiguration": unlabelled(nil),
	"the Secret is labelled with another Cloud: InvalidConfiguration": unlabelled(map[string]string{pcapi.CredentialsForLabel: "another"}),
	"ca.crt is no certificate: InvalidConfiguration": unusable("InvalidConfiguration", "holds no PEM certificate",
		onCloud(mockcloud.Options{}, map[string]string{"ca.crt": "not a certificate"})),
	"ca.crt is another CA: Untrusted": unusable("Untrusted", "put the cloud's CA under ca.crt in the Secret",
		onTLSCloud("127.0.0.1", time.Hour, anotherCA)),
	"there is no ca.crt: Untrusted": unusable("Untrusted", "put the cloud's CA under ca.crt in the Secret",
		onTLSCloud("127.0.0.1", time.Hour, noCA)),
	"the certificate is for another host: Untrusted": unusable("Untrusted", "the certificate is not for 127.0.0.1 but for cloud.example.com",
		onTLSCloud("cloud.example.com", time.Hour, itsCA)),
	"the certificate has expired: Untrusted": unusable("Untrusted", "have the cloud renew it",
		onTLSCloud("127.0.0.1", -time.Hour, itsCA)),
	"nothing listens at the endpoint: Unreachable": unusable("Unreachable", "connection refused",
		func(t *T) (string, map[string]string) { return "http://" + freeAddress(t), nil }),
	"the endpoint is HTTPS and the cloud serves HTTP: Unreachable": unusable("Unreachable", "does not speak TLS",
		func(t *T) (string, map[string]string) {
			return strings.Replace(serveCloud(t, mockcloud.Options{}).URL, "http:", "https:", 1), nil
		}),
	"the endpoint has a wrong path: PollFailed": unusable("PollFailed", "there is no /nowhere/servers",
		func(t *T) (string, map[string]string) {
			return serveCloud(t, mockcloud.Options{}).URL + "/nowhere", nil
		}),
	"the endpoint is a website: PollFailed": unusable("PollFailed", "check the path of the Cloud's endpoint",
		func(t *T) (string, map[string]string) {
			website := httptest.NewServer(http.NotFoundHandler())
			t.Cleanup(website.Close)
			return website.URL, nil
		}),
	"the Secret does not exist: SecretMissing": func(t *T) {
		cloud := createCloud(t, serveCloud(t, mockcloud.Options{}).URL, func(c *pcapi.Cloud) {
			c.Spec.CredentialsSecretRef, c.Spec.InsecureAllowHTTP = &pcapi.SecretReference{Name: "nowhere"}, true
		})
		t.Eventually(latest(cloud)).Should(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "SecretMissing",
				`Secret "nowhere" does not exist in namespace "`+operatorNamespace+`": create it with token, or with username and password, and with the label `+pcapi.CredentialsForLabel+"="+cloud.Name),
			testkit.HaveCondition("Authenticated", metav1.ConditionFalse, "SecretMissing"),
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "SecretMissing"),
		))
	},
}

func TestCloudCredentials(t *testing.T) { credentialCases.run(t) }

var credentialCases = cases{
	"the session expires: it is renewed and the Cloud stays connected": func(t *T) {
		f := newFixture(t, mockcloud.Options{Username: "operator", Password: password},
			withSecret(t, map[string]string{"username": "operator", "password": password}))
		f.readyVM("before")
		f.ExpireSessions()
		f.readyVM("after")

		t.Expect(f.CountCalls("POST", "/sessions")).To(Equal(2))
		t.Eventually(eventReasons(f.object)).Should(Equal([]string{"Connected", "NotEncrypted"}))
	},

	"the token is rotated: the new token is used": func(t *T) {
		var secret *corev1.Secret
		f := newFixture(t, mockcloud.Options{Token: token}, withNewSecret(t, map[string]string{"token": token}, &secret))
		t.Expect(get(t, f.object)).To(testkit.HaveCondition("Authenticated", metav1.ConditionTrue, "Accepted"))
		vm := f.readyVM("web")

		f.SetToken(token + "-2")
		t.Eventually(latest(f.object)).Should(testkit.HaveCondition("Authenticated", metav1.ConditionFalse, "AuthenticationFailed"))
		t.Expect(get(t, vm)).To(testkit.BeReady())
		edit(t, secret, func(secret *corev1.Secret) { secret.Data["token"] = []byte(token + "-2") })
		touch(t, f.object)
		t.Eventually(latest(f.object)).Should(SatisfyAll(testkit.BeReady(), testkit.HaveCondition("Authenticated", metav1.ConditionTrue, "Accepted")))
		f.readyVM("web-2")
	},

	"the token is replaced by a wrong one: it is reported, and VMs keep the old one until it is corrected": func(t *T) {
		var secret *corev1.Secret
		f := newFixture(t, mockcloud.Options{Token: token}, withNewSecret(t, map[string]string{"token": token}, &secret))
		edit(t, secret, func(secret *corev1.Secret) { secret.Data["token"] = []byte(token + "-wrong") })
		touch(t, f.object)
		t.Eventually(latest(f.object)).Should(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "AuthenticationFailed"),
			testkit.HaveCondition("Authenticated", metav1.ConditionFalse, "AuthenticationFailed"),
		))
		f.readyVM("meanwhile")
		t.Expect(get(t, f.object)).To(testkit.HaveCondition("Ready", metav1.ConditionFalse, "AuthenticationFailed"))

		edit(t, secret, func(secret *corev1.Secret) { secret.Data["token"] = []byte(token) })
		touch(t, f.object)
		t.Eventually(latest(f.object)).Should(testkit.BeReady())
		f.readyVM("after")
	},

	"the CA is rotated: the new CA is used": func(t *T) {
		before, after := newAuthority(t), newAuthority(t)
		server, present := serveTLS(t, before.certify(t, "127.0.0.1", time.Now().Add(time.Hour)))
		var secret *corev1.Secret
		cloud := createCloud(t, server.URL, withNewSecret(t, map[string]string{"ca.crt": before.pem}, &secret))
		t.Eventually(latest(cloud)).Should(testkit.BeReady())

		present(after.certify(t, "127.0.0.1", time.Now().Add(time.Hour)))
		server.CloseClientConnections()
		t.Eventually(latest(cloud)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Untrusted"))
		edit(t, secret, func(secret *corev1.Secret) { secret.Data["ca.crt"] = []byte(after.pem) })
		touch(t, cloud)
		t.Eventually(latest(cloud)).Should(testkit.BeReady())
	},

	"the Secret is created and the endpoint corrected: the Cloud becomes ready": func(t *T) {
		endpoint := serveCloud(t, mockcloud.Options{Token: token}).URL
		cloud := createCloud(t, "http://"+freeAddress(t), func(c *pcapi.Cloud) {
			c.Spec.CredentialsSecretRef, c.Spec.InsecureAllowHTTP = &pcapi.SecretReference{Name: "appears"}, true
		})
		t.Eventually(latest(cloud)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "SecretMissing"))
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: operatorNamespace, Name: "appears", Labels: map[string]string{pcapi.CredentialsForLabel: cloud.Name},
		}, StringData: map[string]string{"token": token}}
		t.Expect(env.Client.Create(t.Context(), secret)).To(Succeed())
		touch(t, cloud)
		t.Eventually(latest(cloud)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unreachable"))
		edit(t, cloud, func(c *pcapi.Cloud) { c.Spec.Endpoint = endpoint })
		t.Eventually(latest(cloud)).Should(testkit.BeReady())
	},
}

// newSecret creates a Secret with labels.
func newSecret(t *T, data, labels map[string]string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, GenerateName: "cloud-", Labels: labels}, StringData: data}
	t.Expect(env.Client.Create(t.Context(), secret)).To(Succeed())
	return secret
}

// withSecret makes a Cloud use a new Secret with this data, or none if data is nil.
func withSecret(t *T, data map[string]string) func(*pcapi.Cloud) {
	if data == nil {
		return func(*pcapi.Cloud) {}
	}
	return withNewSecret(t, data, new(*corev1.Secret))
}

// withNewSecret is withSecret that stores the Secret in made.
func withNewSecret(t *T, data map[string]string, made **corev1.Secret) func(*pcapi.Cloud) {
	return func(c *pcapi.Cloud) {
		*made = newSecret(t, data, map[string]string{pcapi.CredentialsForLabel: c.Name})
		c.Spec.CredentialsSecretRef, c.Spec.InsecureAllowHTTP = &pcapi.SecretReference{Name: (*made).Name}, true
	}
}

// unlabelled returns a case of a Cloud whose Secret has other labels than the
// Cloud's name: no request has the token.
func unlabelled(labels map[string]string) func(*T) {
	return func(t *T) {
		var tokens atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				tokens.Add(1)
			}
		}))
		t.Cleanup(server.Close)
		secret := newSecret(t, map[string]string{"token": token}, labels)
		cloud := createCloud(t, server.URL, func(c *pcapi.Cloud) {
			c.Spec.CredentialsSecretRef, c.Spec.InsecureAllowHTTP = &pcapi.SecretReference{Name: secret.Name}, true
		})
		t.Eventually(latest(cloud)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "InvalidConfiguration",
			"give it the label "+pcapi.CredentialsForLabel+"="+cloud.Name))
		t.Expect(tokens.Load()).To(BeZero(), "requests with the token")
	}
}

// freeAddress is an address at which nothing listens.
func freeAddress(t *T) string {
	t.Helper()
	address, err := testkit.FreeAddress()
	t.Expect(err).NotTo(HaveOccurred())
	return address.String()
}
