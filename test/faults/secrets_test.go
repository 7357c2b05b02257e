package faults

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

const (
	rightToken    = "right-token-4711"
	wrongToken    = "wrong-token-4712"
	rightPassword = "right-password-4713"
	wrongPassword = "wrong-password-4714"
)

func TestCredentialsAreNotShown(t *testing.T) {
	t.Parallel()
	for name, check := range credentialCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(newT(t))
		})
	}
}

var credentialCases = map[string]func(*testkit.T){
	"the cloud quotes the token with status 500": quotedToken(http.StatusInternalServerError, "the cloud does not answer or cannot serve requests"),
	"the cloud quotes the token with status 400": quotedToken(http.StatusBadRequest, "was sent"),
	"the cloud quotes the token with status 401": quotedToken(http.StatusUnauthorized, "the cloud refuses the operator's credentials"),

	"the token is wrong, replaced by a password with sessions, and the password is wrong": func(t *testkit.T) {
		w, metrics := worldWithToken(t)
		setSecret(t, w, map[string]string{"token": wrongToken})
		t.Eventually(w.authenticated).Should(BeFalse())
		w.mock.SetCredentials("operator", rightPassword)
		setSecret(t, w, map[string]string{"username": "operator", "password": rightPassword})
		t.Eventually(w.authenticated).Should(BeTrue())
		t.Expect(w.perform(t.Context(), create("by-session"))).To(Succeed())
		w.mock.ExpireSessions()
		t.Expect(w.perform(t.Context(), create("by-another-session"))).To(Succeed())
		quote(t, w, "/sessions", http.StatusBadRequest, "the password "+wrongPassword+" was sent")
		setSecret(t, w, map[string]string{"username": "operator", "password": wrongPassword})
		t.Eventually(w.authenticated).Should(BeFalse())

		t.Expect(len(w.cloud.seenCredentials())).To(BeNumerically(">=", 4), "both tokens and two sessions were sent")
		expectNoSecret(t, w, metrics)
	},
}

// quotedToken returns a case of a cloud that quotes the token in its refusal of a
// create, which the VM reports with these words. Those of a cloud that fails are the
// operator's own, those of a refusal are the cloud's.
func quotedToken(status int, reported string) func(*testkit.T) {
	return func(t *testkit.T) {
		w, metrics := worldWithToken(t)
		quote(t, w, "/servers", status, "the token "+rightToken+" was sent")
		t.Expect(create("quoted")(t.Context(), w)).To(Succeed())
		t.Eventually(w.conditionsOf("quoted")).Should(ContainSubstring(reported), "the refusal is reported")
		w.mock.ClearFaults()
		t.Expect(remove("quoted", gone)(t.Context(), w)).To(Succeed())
		t.Expect(w.until(t.Context(), w.reached)).To(Succeed())
		expectNoSecret(t, w, metrics)
	}
}

// worldWithToken is a world whose Cloud uses a token, with one VM that is ready,
// and the address of the manager's metrics.
func worldWithToken(t *testkit.T) (w *world, metrics string) {
	t.Helper()
	address, err := testkit.FreeAddress()
	t.Expect(err).NotTo(HaveOccurred())
	w = openWorld(t, setting{
		profile: profile{name: "with credentials", exact: true, mock: mockcloud.Options{Token: rightToken}},
		spec:    pcapi.CloudSpec{CredentialsSecretRef: &pcapi.SecretReference{Name: "credentials"}, InsecureAllowHTTP: true},
	})
	setSecret(t, w, map[string]string{"token": rightToken})
	_, err = w.start("--metrics-bind-address="+address.String(), "--metrics-secure=false", "--zap-log-level=9")
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(w.perform(t.Context(), create("by-token"))).To(Succeed())
	return w, address.String()
}

// expectNoSecret fails if a credential is in the operator's output.
func expectNoSecret(t *testkit.T, w *world, metrics string) {
	t.Helper()
	secrets := []string{rightToken, wrongToken, rightPassword, wrongPassword}
	for _, credential := range w.cloud.seenCredentials() {
		secrets = append(secrets, strings.TrimPrefix(credential, "Bearer "))
	}
	for where, text := range output(t, w, metrics) {
		t.Expect(text).To(ContainSubstring(w.name), "%s were read", where)
		for _, secret := range secrets {
			t.Expect(strings.Contains(text, secret)).To(BeFalse(), "%s contain %s", where, secret)
		}
	}
}

// setSecret creates or replaces the Secret of the Cloud, which is never absent in
// between: without it, the Cloud is not authenticated either.
func setSecret(t *testkit.T, w *world, data map[string]string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.name, Name: "credentials", Labels: map[string]string{pcapi.CredentialsForLabel: w.name},
	}, StringData: data}
	err := w.env.client.Create(t.Context(), secret.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		err = w.env.client.Update(t.Context(), secret)
	}
	t.Expect(err).NotTo(HaveOccurred())
}

// quote makes POSTs to a path fail with a reason.
func quote(t *testkit.T, w *world, path string, status int, reason string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"status": status, "title": reason, "detail": reason})
	t.Expect(err).NotTo(HaveOccurred())
	_, err = w.mock.AddFault(mockcloud.Fault{
		Match:  mockcloud.Match{Method: http.MethodPost, Path: path},
		Status: status, Body: string(body), ContentType: "application/problem+json",
	})
	t.Expect(err).NotTo(HaveOccurred())
}

func (w *world) conditionsOf(name string) func() string {
	return func() string {
		if vm := w.recorder.vm(name); vm != nil {
			return describe(vm)
		}
		return ""
	}
}

func (w *world) authenticated(ctx context.Context) (bool, error) {
	var c pcapi.Cloud
	err := w.env.client.Get(ctx, client.ObjectKey{Name: w.name}, &c)
	return meta.IsStatusConditionTrue(c.Status.Conditions, pcapi.AuthenticatedCondition), err
}

// output returns all that the operator writes anywhere but to the cloud.
func output(t *testkit.T, w *world, metrics string) map[string]string {
	t.Helper()
	texts := map[string]string{"logs": w.log.String()}
	// Not those of all runs, which are too many for one answer.
	for where, of := range map[string]struct {
		list client.ObjectList
		opt  client.ListOption
	}{
		"events":           {&eventsv1.EventList{}, client.InNamespace(w.name)},
		"events of Clouds": {&eventsv1.EventList{}, client.MatchingFields{"regarding.name": w.name}},
		"VMs":              {&pcapi.VMList{}, client.InNamespace(w.name)},
		"Clouds":           {&pcapi.CloudList{}, client.MatchingFields{"metadata.name": w.name}},
	} {
		t.Expect(w.env.client.List(t.Context(), of.list, of.opt)).To(Succeed())
		text, err := json.Marshal(of.list)
		t.Expect(err).NotTo(HaveOccurred())
		texts[where] = string(text)
	}
	resp, err := http.Get("http://" + metrics + "/metrics")
	t.Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	t.Expect(err).NotTo(HaveOccurred())
	texts["metrics"] = string(text)
	return texts
}
