package plugin_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/privatecloud/operator/internal/plugin/plugintest"
	"github.com/privatecloud/operator/internal/testkit"
)

// kubeconfig writes a kubeconfig of the test's API server that is changed.
func kubeconfig(t *testing.T, change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) string {
	t.Helper()
	cluster := &clientcmdapi.Cluster{Server: env.Config.Host, CertificateAuthorityData: env.Config.CAData}
	user := &clientcmdapi.AuthInfo{ClientCertificateData: env.Config.CertData, ClientKeyData: env.Config.KeyData}
	change(cluster, user)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := testkit.WriteKubeconfig(path, cluster, user); err != nil {
		t.Fatal(err)
	}
	return path
}

// silent returns the address of a server that accepts connections and never answers.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return "http://" + listener.Addr().String()
}

func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	as := func(change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) plugintest.Setup {
		return plugintest.Setup{Kubeconfig: kubeconfig(t, change)}
	}
	unchanged := as(func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo) {})
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		setup plugintest.Setup
		args  []string
	}{
		"no cluster":            {plugintest.Setup{}, []string{"brake"}},
		"no such kubeconfig":    {plugintest.Setup{Kubeconfig: "none"}, []string{"brake"}},
		"a kubeconfig to mend":  {plugintest.Setup{Kubeconfig: broken}, []string{"brake"}},
		"wrong context":         {unchanged, []string{"brake", "--context=other"}},
		"refused connection":    {as(func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = "http://127.0.0.1:1" }), []string{"brake"}},
		"another certificate":   {as(func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.CertificateAuthorityData = nil }), []string{"brake"}},
		"unauthorized":          {as(func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { *u = clientcmdapi.AuthInfo{Token: "wrong"} }), []string{"brake"}},
		"no right":              {unchanged, []string{"brake", "--as=nobody"}},
		"no right in namespace": {unchanged, []string{"top", "groups", "--as=nobody", "-n", "team-a"}},
		"no such Cloud":         {unchanged, []string{"brake", "none"}},
		"no such command":       {unchanged, []string{"brakes"}},
		"no answer":             {as(func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = silent(t) }), []string{"brake", "--request-timeout=1s"}},
	} {
		t.Run(name, func(t *testing.T) {
			plugintest.Golden(t, "errors/"+name, []plugintest.Result{tc.setup.Run(t.Context(), tc.args...)}, broken, "<kubeconfig>")
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		ctx, interrupt := context.WithTimeout(t.Context(), time.Second)
		defer interrupt()
		s := as(func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = silent(t) })
		plugintest.Golden(t, "errors/interrupted", []plugintest.Result{s.Run(ctx, "brake")})
	})
}

// TestErrorsOfOperatorsThatAreMissingOrOld has a cluster without CRDs, and then with those of
// Clouds alone, as an operator that is older than the other kinds.
func TestErrorsOfOperatorsThatAreMissingOrOld(t *testing.T) {
	t.Parallel()
	empty, err := testkit.Start(testkit.Options{WithoutCRDs: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = empty.Stop() })
	s := plugintest.Setup{Kubeconfig: empty.Kubeconfig()}
	plugintest.Golden(t, "errors/no operator", []plugintest.Result{s.Run(t.Context(), "brake"), s.Run(t.Context(), "top")})

	folder, err := testkit.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	crds, err := envtest.InstallCRDs(empty.Config, envtest.CRDInstallOptions{Paths: []string{filepath.Join(folder, "config", "crd", "bases", "samplecontroller.k8s.io_clouds.yaml")}})
	if err != nil {
		t.Fatal(err)
	}
	if len(crds) != 1 || client.ObjectKeyFromObject(crds[0]).Name != "clouds.samplecontroller.k8s.io" {
		t.Fatalf("installed %v", crds)
	}
	plugintest.Golden(t, "errors/older operator", []plugintest.Result{s.Run(t.Context(), "brake"), s.Run(t.Context(), "top", "groups"), s.Run(t.Context(), "plan", "-f", "testdata/vm.yaml")})
}
