// Package metricsapi_test asks the metrics API as a HorizontalPodAutoscaler
// does: through the aggregation layer of a real API server, by what config/ says.
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
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/internal/testkit"
)

const (
	// home is the operator's namespace in config/.
	home = "private-cloud-operator-system"
	// account is that of the metrics API there, and its Service and its Deployment.
	account = "private-cloud-operator-metrics-api"
)

var (
	root string
	env  *testkit.Env
	// port is where the metrics API listens, on 127.0.0.1.
	port int
)

func TestMetricsAPI(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "the metrics API behind a real API server")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()

	var err error
	root, err = testkit.ModuleRoot()
	Expect(err).NotTo(HaveOccurred())
	env, err = testkit.Start(testkit.Options{APIServerFlags: aggregationFlags(GinkgoT().TempDir())})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(env.Stop()).To(Succeed()) })
	Eventually(ctx, func(ctx context.Context) (map[string]string, error) {
		var published corev1.ConfigMap
		err := env.Client.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "extension-apiserver-authentication"}, &published)
		return published.Data, err
	}).Should(HaveKey("requestheader-client-ca-file"), "the API server says by which CA it is known to others")

	port = freePort()
	install(ctx)
	serve()
})

// aggregationFlags are those by which an API server shows others who it is and
// for whom it asks, as kubeadm sets them.
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

// install applies the overlay. There are no pods here, so its Service leads to
// this process, by a name: addresses of the machine itself are refused.
func install(ctx context.Context) {
	GinkgoHelper()
	Expect(env.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}})).To(Succeed())
	kubectl(ctx, "apply", "--server-side", "-k", "config/overlays/autoscaling")
	kubectl(ctx, "delete", "service", account, "-n", home)
	kubectl(ctx, "create", "service", "externalname", account, "-n", home, "--external-name=localhost")
	for _, version := range []string{"v1beta1", "v1beta2"} {
		kubectl(ctx, "patch", "apiservice", version+".custom.metrics.k8s.io", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"service":{"port":%d}}}`, port))
	}
}

// serve runs the metrics API with the rights of its service account, until the
// end of the tests.
func serve() {
	GinkgoHelper()
	binary, err := gexec.Build("github.com/privatecloud/operator/cmd/metrics-api")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(gexec.CleanupBuildArtifacts)
	kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["env"] = &clientcmdapi.Cluster{Server: env.Config.Host, CertificateAuthorityData: env.Config.CAData}
	config.AuthInfos["env"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: env.Config.CertData, ClientKeyData: env.Config.KeyData,
		Impersonate: "system:serviceaccount:" + home + ":" + account,
		// What every service account is.
		ImpersonateGroups: []string{"system:serviceaccounts", "system:authenticated"},
	}
	config.Contexts["env"] = &clientcmdapi.Context{Cluster: "env", AuthInfo: "env"}
	config.CurrentContext = "env"
	Expect(clientcmd.WriteToFile(*config, kubeconfig)).To(Succeed())

	session, err := gexec.Start(exec.Command(binary,
		"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port),
		"--lister-kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
	), GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Eventually(session.Terminate()).Should(gexec.Exit(0), "it ends by itself, and without an error")
	})
}

func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	output, err := tryKubectl(ctx, args...)
	Expect(err).NotTo(HaveOccurred(), "kubectl %s: %s", strings.Join(args, " "), output)
	return output
}

func tryKubectl(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, filepath.Join(env.Assets, "kubectl"), args...)
	command.Dir, command.Env = root, append(os.Environ(), "KUBECONFIG="+env.Kubeconfig())
	output, err := command.CombinedOutput()
	return string(output), err
}

func freePort() int {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
