// Package metricsapi_test reads the metrics API as a HorizontalPodAutoscaler does:
// through the aggregation layer of a real API server, with the manifests of config/.
package metricsapi_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/internal/testkit"
)

const (
	// operatorNamespace is the operator's namespace in config/.
	operatorNamespace = "private-cloud-operator-system"
	// name is the name of the ServiceAccount, the Service and the Deployment of the metrics API.
	name = "private-cloud-operator-metrics-api"
)

var (
	env *testkit.Env
	// port is where the metrics API listens, on 127.0.0.1.
	port int
)

func TestMetricsAPI(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Metrics API behind a real API server")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()

	var err error
	env, err = testkit.Start(testkit.Options{APIServerFlags: aggregationFlags(GinkgoT().TempDir())})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(env.Stop()).To(Succeed()) })
	Eventually(ctx, func(ctx context.Context) (map[string]string, error) {
		var published corev1.ConfigMap
		err := env.Client.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "extension-apiserver-authentication"}, &published)
		return published.Data, err
	}).Should(HaveKey("requestheader-client-ca-file"), "the API server publishes the CA of its front proxy")

	address, err := testkit.FreeAddress()
	Expect(err).NotTo(HaveOccurred())
	port = address.Port
	install(ctx)
	serve()
})

// aggregationFlags are the flags by which an API server proves to extension API
// servers who it is and which user sends a request, as kubeadm sets them.
func aggregationFlags(folder string) map[string][]string {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	// One certificate is its own CA and the proxy's.
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "front-proxy"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	Expect(err).NotTo(HaveOccurred())
	private, err := x509.MarshalECPrivateKey(key)
	Expect(err).NotTo(HaveOccurred())
	file := func(name, kind string, content []byte) []string {
		path := filepath.Join(folder, name)
		Expect(os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600)).To(Succeed())
		return []string{path}
	}
	crt := file("front-proxy.crt", "CERTIFICATE", certificate)
	return map[string][]string{
		"requestheader-client-ca-file":       crt,
		"requestheader-allowed-names":        {"front-proxy"},
		"requestheader-username-headers":     {"X-Remote-User"},
		"requestheader-group-headers":        {"X-Remote-Group"},
		"requestheader-extra-headers-prefix": {"X-Remote-Extra-"},
		"proxy-client-cert-file":             crt,
		"proxy-client-key-file":              file("front-proxy.key", "EC PRIVATE KEY", private),
	}
}

// install applies the overlay. There are no pods here, so its Service leads to this
// machine, by an external name: the API server refuses loopback addresses.
func install(ctx context.Context) {
	GinkgoHelper()
	Expect(env.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}})).To(Succeed())
	kubectl(ctx, "apply", "--server-side", "-k", "config/overlays/autoscaling")
	kubectl(ctx, "delete", "service", name, "-n", operatorNamespace)
	kubectl(ctx, "create", "service", "externalname", name, "-n", operatorNamespace, "--external-name=localhost")
	for _, version := range []string{"v1beta1", "v1beta2"} {
		kubectl(ctx, "patch", "apiservice", version+".custom.metrics.k8s.io", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"service":{"port":%d}}}`, port))
	}
}

// serve runs the metrics API with the rights of its service account until the end
// of the suite.
func serve() {
	GinkgoHelper()
	binary, err := gexec.Build("github.com/privatecloud/operator/cmd/metrics-api")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(gexec.CleanupBuildArtifacts)
	kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(testkit.WriteKubeconfig(kubeconfig,
		&clientcmdapi.Cluster{Server: env.Config.Host, CertificateAuthorityData: env.Config.CAData},
		&clientcmdapi.AuthInfo{
			ClientCertificateData: env.Config.CertData, ClientKeyData: env.Config.KeyData,
			Impersonate: "system:serviceaccount:" + operatorNamespace + ":" + name,
			// The groups of every service account.
			ImpersonateGroups: []string{"system:serviceaccounts", "system:authenticated"},
		},
	)).To(Succeed())

	session, err := gexec.Start(exec.Command(binary,
		"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port),
		"--lister-kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
	), GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Eventually(session.Terminate()).Should(gexec.Exit(0), "it ends without an error")
	})
}

func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	output, err := env.Kubectl(ctx, "", args...)
	Expect(err).NotTo(HaveOccurred())
	return output
}
