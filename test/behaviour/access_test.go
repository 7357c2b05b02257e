package behaviour_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// What must never be seen outside a Secret.
const (
	token    = "token-that-nobody-may-see"
	password = "password-that-nobody-may-see"
	never    = "that-nobody-may-see"
)

var _ = It("a way to a cloud that is wrong is told on the Cloud, with what to do about it", func(ctx SpecContext) {
	ours, theirs := newAuthority(), newAuthority()
	secured := func(host string, until time.Time) *httptest.Server {
		server, _ := serveTLS(newCloud(mockcloud.Options{}), ours.certify(host, until))
		return server
	}
	valid := secured("127.0.0.1", time.Now().Add(time.Hour))
	other := secured("cloud.example.com", time.Now().Add(time.Hour))
	expired := secured("127.0.0.1", time.Now().Add(-time.Hour))
	_, open := serveCloud(mockcloud.Options{})
	_, locked := serveCloud(mockcloud.Options{Token: token})
	_, login := serveCloud(mockcloud.Options{Username: "operator", Password: password})
	chatty, repeats := serveCloud(mockcloud.Options{})
	_, err := chatty.AddFault(mockcloud.Fault{Status: 401, Body: `{"code":"unauthorized","detail":"your ` + token + `-wrong is not welcome"}`})
	Expect(err).NotTo(HaveOccurred())
	website := httptest.NewServer(http.NotFoundHandler())
	DeferCleanup(website.Close)

	all := cases{}
	wrong := func(name, endpoint string, secret map[string]string, reason, sentence string) {
		all[name] = func(ctx SpecContext) {
			cloud := openCloud(ctx, endpoint, withSecret(ctx, secret))
			Eventually(ctx, now(cloud)).Should(SatisfyAll(
				testkit.HaveCondition("Ready", metav1.ConditionFalse, reason, sentence),
				Not(testkit.HaveCondition("Authenticated", metav1.ConditionTrue, "")),
			), name)
		}
	}
	wrong("a token that is refused", locked, map[string]string{"token": token + "-wrong"}, "AuthenticationFailed", "check the key token of the Secret")
	wrong("a password that is refused", login, map[string]string{"username": "operator", "password": password + "-wrong"},
		"AuthenticationFailed", "check username and password in the Secret")
	wrong("no credentials where some are wanted", locked, nil, "AuthenticationFailed", "name a Secret in spec.credentialsSecretRef")
	wrong("a cloud that repeats what it was sent", repeats, map[string]string{"token": token + "-wrong"}, "AuthenticationFailed", "is not welcome")
	wrong("a login at a cloud without one", newCore().URL, map[string]string{"username": "operator", "password": password},
		"AuthenticationFailed", "put a token in the Secret instead")
	wrong("a Secret with a token and a password", open, map[string]string{"token": token, "password": password}, "InvalidConfiguration", "not both")
	wrong("a Secret with half a login", open, map[string]string{"username": "operator"}, "InvalidConfiguration", "username and password go together")
	wrong("a Secret with nothing in it", open, map[string]string{"other": "x"}, "InvalidConfiguration", "none of token, username and password, ca.crt")
	wrong("a CA that is none", open, map[string]string{"ca.crt": "not a certificate"}, "InvalidConfiguration", "holds no PEM certificate")
	wrong("another CA", valid.URL, map[string]string{"ca.crt": theirs.pem}, "Untrusted", "put the cloud's CA under ca.crt in the Secret")
	wrong("no CA", valid.URL, nil, "Untrusted", "put the cloud's CA under ca.crt in the Secret")
	wrong("a certificate for another host", other.URL, map[string]string{"ca.crt": ours.pem}, "Untrusted", "the certificate is not for 127.0.0.1 but for cloud.example.com")
	wrong("a certificate that has expired", expired.URL, map[string]string{"ca.crt": ours.pem}, "Untrusted", "have the cloud renew it")
	wrong("nobody at the address", "http://"+freeAddress(), nil, "Unreachable", "connection refused")
	wrong("HTTPS where HTTP is spoken", strings.Replace(open, "http:", "https:", 1), nil, "Unreachable", "does not speak TLS")
	wrong("a path where there is no API", open+"/nowhere", nil, "PollFailed", "there is no /nowhere/servers")
	wrong("a website that is no cloud", website.URL, nil, "PollFailed", "check the path of the Cloud's endpoint")
	all["a Secret that is missing"] = func(ctx SpecContext) {
		cloud := openCloud(ctx, open, func(c *v1alpha1.Cloud) {
			c.Spec.CredentialsSecretRef = &v1alpha1.SecretReference{Name: "nowhere"}
		})
		Eventually(ctx, now(cloud)).Should(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "SecretMissing",
				`Secret "nowhere" does not exist in namespace "`+operatorNamespace+`": create it with token, or with username and password`),
			testkit.HaveCondition("Authenticated", metav1.ConditionFalse, "SecretMissing"),
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "SecretMissing"),
		))
	}
	all.show(ctx)
})

var access = theme{"the way to a cloud", cases{
	"is open to a session, which is renewed as it expires without anybody noticing": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Username: "operator", Password: password},
			withSecret(ctx, map[string]string{"username": "operator", "password": password}))
		s.ready(ctx, "before")
		s.ExpireSessions()
		s.ready(ctx, "after")

		Expect(s.CountCalls("POST", "/sessions")).To(Equal(2))
		Expect(story(s.object)(ctx)).To(Equal([]string{"Connected"}))
	},

	"follows a token that is rotated": func(ctx SpecContext) {
		var secret *corev1.Secret
		s := newSite(ctx, mockcloud.Options{Token: token}, func(c *v1alpha1.Cloud) {
			secret = newSecret(ctx, map[string]string{"token": token})
			c.Spec.CredentialsSecretRef = &v1alpha1.SecretReference{Name: secret.Name}
		})
		Expect(read(ctx, s.object)).To(testkit.HaveCondition("Authenticated", metav1.ConditionTrue, "Accepted"))
		vm := s.ready(ctx, "web")

		s.SetToken(token + "-2")
		Eventually(ctx, now(s.object)).Should(testkit.HaveCondition("Authenticated", metav1.ConditionFalse, "AuthenticationFailed"))
		Expect(read(ctx, vm)).To(testkit.BeReady())
		edit(ctx, secret, func(secret *corev1.Secret) { secret.Data["token"] = []byte(token + "-2") })
		nudge(ctx, s.object)
		Eventually(ctx, now(s.object)).Should(SatisfyAll(testkit.BeReady(), testkit.HaveCondition("Authenticated", metav1.ConditionTrue, "Accepted")))
		s.ready(ctx, "web-2")
	},

	"follows a CA that is rotated": func(ctx SpecContext) {
		before, after := newAuthority(), newAuthority()
		server, present := serveTLS(newCloud(mockcloud.Options{}), before.certify("127.0.0.1", time.Now().Add(time.Hour)))
		secret := newSecret(ctx, map[string]string{"ca.crt": before.pem})
		cloud := openCloud(ctx, server.URL, func(c *v1alpha1.Cloud) {
			c.Spec.CredentialsSecretRef = &v1alpha1.SecretReference{Name: secret.Name}
		})
		Eventually(ctx, now(cloud)).Should(testkit.BeReady())

		present(after.certify("127.0.0.1", time.Now().Add(time.Hour)))
		server.CloseClientConnections()
		Eventually(ctx, now(cloud)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Untrusted"))
		edit(ctx, secret, func(secret *corev1.Secret) { secret.Data["ca.crt"] = []byte(after.pem) })
		nudge(ctx, cloud)
		Eventually(ctx, now(cloud)).Should(testkit.BeReady())
	},

	"follows a Secret that appears, and an endpoint that is corrected": func(ctx SpecContext) {
		_, endpoint := serveCloud(mockcloud.Options{Token: token})
		cloud := openCloud(ctx, "http://"+freeAddress(), func(c *v1alpha1.Cloud) {
			c.Spec.CredentialsSecretRef = &v1alpha1.SecretReference{Name: "appears"}
		})
		Eventually(ctx, now(cloud)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "SecretMissing"))
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "appears"}, StringData: map[string]string{"token": token}}
		Expect(env.Client.Create(ctx, secret)).To(Succeed())
		nudge(ctx, cloud)
		Eventually(ctx, now(cloud)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unreachable"))
		edit(ctx, cloud, func(c *v1alpha1.Cloud) { c.Spec.Endpoint = endpoint })
		Eventually(ctx, now(cloud)).Should(testkit.BeReady())
	},
}}

// expectNoSecret looks through all that people and machines can read.
func expectNoSecret(ctx SpecContext) {
	GinkgoHelper()
	var clouds v1alpha1.CloudList
	var vms v1alpha1.VMList
	var events eventsv1.EventList
	Expect(env.Client.List(ctx, &clouds)).To(Succeed())
	Expect(env.Client.List(ctx, &vms)).To(Succeed())
	Expect(env.Client.List(ctx, &events)).To(Succeed())
	for name, what := range map[string]any{"Clouds": clouds, "VMs": vms, "events": events} {
		text, err := json.Marshal(what)
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Contains(string(text), never)).To(BeFalse(), "a secret is in the %s: %s", name, text)
	}
	for line := range strings.Lines(operatorLog.String()) {
		Expect(strings.Contains(line, never)).To(BeFalse(), "a secret is in the log: %s", line)
	}
}

func newSecret(ctx SpecContext, data map[string]string) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, GenerateName: "cloud-"}, StringData: data}
	Expect(env.Client.Create(ctx, secret)).To(Succeed())
	return secret
}

// withSecret has a Cloud log in with what data says; nil leaves it without a Secret.
func withSecret(ctx SpecContext, data map[string]string) func(*v1alpha1.Cloud) {
	return func(c *v1alpha1.Cloud) {
		if data != nil {
			c.Spec.CredentialsSecretRef = &v1alpha1.SecretReference{Name: newSecret(ctx, data).Name}
		}
	}
}

func newCore() *httptest.Server {
	GinkgoHelper()
	s := &site{Cloud: newCloud(mockcloud.Options{Profile: mockcloud.Core})}
	s.plug("127.0.0.1:0")
	return s.server
}

// freeAddress is one where nobody answers.
func freeAddress() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	Expect(listener.Close()).To(Succeed())
	return listener.Addr().String()
}
