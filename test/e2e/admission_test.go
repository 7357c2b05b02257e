package e2e_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// admission describes what decides whether the API server calls the webhooks: the
// registrations with their CAs, the certificates, the pods that serve, and the
// calls that failed.
func admission(ctx context.Context) string {
	var text strings.Builder
	describeRegistrations(ctx, &text)
	for _, args := range []string{
		"get csv -n " + operatorNamespace,
		"get pods,services,endpointslices -o wide -n " + operatorNamespace,
		"describe clouds",
		"get vm taboo -o yaml -n " + samples,
		"logs --tail=20 --prefix -l control-plane=controller-manager -n " + operatorNamespace,
	} {
		output, err := tryKubectl(ctx, "", strings.Fields(args)...)
		fmt.Fprintf(&text, "--- kubectl %s (%v)\n%s", args, err, output)
	}
	metrics, _ := tryKubectl(ctx, "", "get", "--raw", "/metrics")
	log, _ := os.ReadFile(os.Getenv("E2E_APISERVER_LOG"))
	for _, webhook := range []string{"vmname", "allowednamespaces"} {
		for title, lines := range map[string][]string{
			"metrics of the API server":         matching(metrics, "apiserver_admission_webhook_", webhook),
			"log of the API server, last calls": matching(string(log), "webhook", webhook),
		} {
			fmt.Fprintf(&text, "--- %s, %s\n%s\n", title, webhook, strings.Join(lines[max(0, len(lines)-20):], "\n"))
		}
	}
	return text.String()
}

// describeRegistrations writes which CA each registration trusts, and which of
// them issued which certificate.
func describeRegistrations(ctx context.Context, text *strings.Builder) {
	var hooks admissionregistrationv1.ValidatingWebhookConfigurationList
	var secrets corev1.SecretList
	if err := cluster.List(ctx, &hooks); err != nil {
		fmt.Fprintln(text, err)
	}
	if err := cluster.List(ctx, &secrets, client.InNamespace(operatorNamespace)); err != nil {
		fmt.Fprintln(text, err)
	}
	for i := range hooks.Items {
		for _, hook := range hooks.Items[i].Webhooks {
			fmt.Fprintf(text, "--- %s, created %s, labels %v\n    webhook %s, CA %s\n", hooks.Items[i].Name, hooks.Items[i].CreationTimestamp,
				hooks.Items[i].Labels, hook.Name, fingerprint(hook.ClientConfig.CABundle))
			for _, secret := range secrets.Items {
				if secret.Type != corev1.SecretTypeTLS {
					continue
				}
				fmt.Fprintf(text, "    Secret %s, created %s, owners %v: CA %s, the same %t, certificate valid %v\n", secret.Name, secret.CreationTimestamp,
					secret.OwnerReferences, fingerprint(secret.Data["olmCAKey"]), bytes.Equal(secret.Data["olmCAKey"], hook.ClientConfig.CABundle),
					verify(secret.Data["tls.crt"], hook.ClientConfig.CABundle))
			}
		}
	}
}

// fingerprint returns the serial number of the first certificate in PEM.
func fingerprint(data []byte) string {
	if certificate, err := parseCertificate(data); err == nil {
		return certificate.SerialNumber.Text(16)
	}
	return "none"
}

// verify returns why a certificate is not trusted by a CA, or nil.
func verify(certificate, ca []byte) error {
	parsed, err := parseCertificate(certificate)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	_, err = parsed.Verify(x509.VerifyOptions{Roots: roots})
	return err
}

func parseCertificate(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("no PEM in %d bytes", len(data))
	}
	return x509.ParseCertificate(block.Bytes)
}

// matching returns the lines of a text that contain all words.
func matching(text string, words ...string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		found := true
		for _, word := range words {
			found = found && strings.Contains(line, word)
		}
		if found {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}
