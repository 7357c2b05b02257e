package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

const (
	rightToken    = "right-token-4711"
	wrongToken    = "wrong-token-4712"
	rightPassword = "right-password-4713"
	wrongPassword = "wrong-password-4714"
)

var _ = Describe("Credentials", func() {
	It("are told nowhere, whatever happens to them", func(ctx SpecContext) {
		metrics := freeAddress()
		w := openWorld(ctx, setting{
			profile: profile{name: "with credentials", exact: true, mock: mockcloud.Options{Token: rightToken}},
			spec:    v1alpha1.CloudSpec{CredentialsSecretRef: &v1alpha1.SecretReference{Name: "credentials"}},
		})
		give(ctx, w, map[string]string{"token": rightToken})
		_, err := w.start("--metrics-bind-address="+metrics, "--metrics-secure=false", "--zap-log-level=9")
		Expect(err).NotTo(HaveOccurred())
		Expect(w.take(ctx, create("by-token"))).To(Succeed())

		By("having the cloud quote the token in its refusals")
		for _, status := range []int{http.StatusInternalServerError, http.StatusBadRequest, http.StatusUnauthorized} {
			quote(w, "/servers", status, "the token "+rightToken+" was sent")
			name := fmt.Sprintf("quoted-%d", status)
			Expect(create(name)(ctx, w)).To(Succeed())
			Eventually(ctx, w.conditionsOf(name)).Should(ContainSubstring("was sent"), "the refusal is told")
			w.mock.ClearFaults()
			Expect(remove(name, gone)(ctx, w)).To(Succeed())
		}
		Expect(w.until(ctx, w.reached)).To(Succeed())

		By("giving a wrong token, then a password, and a wrong one")
		give(ctx, w, map[string]string{"token": wrongToken})
		Eventually(ctx, w.authenticated(ctx)).Should(BeFalse())
		w.mock.SetCredentials("operator", rightPassword)
		give(ctx, w, map[string]string{"username": "operator", "password": rightPassword})
		Eventually(ctx, w.authenticated(ctx)).Should(BeTrue())
		Expect(w.take(ctx, create("by-session"))).To(Succeed())
		w.mock.ExpireSessions()
		Expect(w.take(ctx, create("by-another-session"))).To(Succeed())
		quote(w, "/sessions", http.StatusBadRequest, "the password "+wrongPassword+" was sent")
		give(ctx, w, map[string]string{"username": "operator", "password": wrongPassword})
		Eventually(ctx, w.authenticated(ctx)).Should(BeFalse())

		secrets := []string{rightToken, wrongToken, rightPassword, wrongPassword}
		for _, credential := range w.cloud.seenCredentials() {
			secrets = append(secrets, strings.TrimPrefix(credential, "Bearer "))
		}
		Expect(len(secrets)).To(BeNumerically(">=", 8), "both tokens and two sessions came by")
		for where, text := range w.told(ctx, metrics) {
			Expect(text).To(ContainSubstring(w.name), "%s were read", where)
			for _, secret := range secrets {
				Expect(strings.Contains(text, secret)).To(BeFalse(), "%s hold %s", where, secret)
			}
		}
	})
})

// give puts credentials into the Cloud's Secret.
func give(ctx context.Context, w *world, data map[string]string) {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: "credentials"}, StringData: data}
	Expect(client.IgnoreNotFound(w.lab.client.Delete(ctx, secret.DeepCopy()))).To(Succeed())
	Expect(w.lab.client.Create(ctx, secret)).To(Succeed())
}

// quote has POSTs fail with a reason of the test's choice.
func quote(w *world, path string, status int, reason string) {
	GinkgoHelper()
	body, err := json.Marshal(map[string]any{"status": status, "title": reason, "detail": reason})
	Expect(err).NotTo(HaveOccurred())
	_, err = w.mock.AddFault(mockcloud.Fault{
		Match:  mockcloud.Match{Method: http.MethodPost, Path: path},
		Status: status, Body: string(body), ContentType: "application/problem+json",
	})
	Expect(err).NotTo(HaveOccurred())
}

func (w *world) conditionsOf(name string) func() string {
	return func() string {
		if vm := w.recorder.vm(name); vm != nil {
			return brief(vm)
		}
		return ""
	}
}

func (w *world) authenticated(ctx context.Context) func(Gomega) bool {
	return func(g Gomega) bool {
		var c v1alpha1.Cloud
		g.Expect(w.lab.client.Get(ctx, client.ObjectKey{Name: w.name}, &c)).To(Succeed())
		return meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.AuthenticatedCondition)
	}
}

// told is all that the operator ever says to anybody but the cloud.
func (w *world) told(ctx context.Context, metrics string) map[string]string {
	GinkgoHelper()
	told := map[string]string{"logs": w.log.String()}
	for where, list := range map[string]client.ObjectList{
		"events": &eventsv1.EventList{}, "VMs": &v1alpha1.VMList{}, "Clouds": &v1alpha1.CloudList{},
	} {
		Expect(w.lab.client.List(ctx, list)).To(Succeed())
		text, err := json.Marshal(list)
		Expect(err).NotTo(HaveOccurred())
		told[where] = string(text)
	}
	resp, err := http.Get("http://" + metrics + "/metrics")
	Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	Expect(err).NotTo(HaveOccurred())
	told["metrics"] = string(text)
	return told
}

func freeAddress() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().String()
}
