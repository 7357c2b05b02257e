package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

func TestStartServesTheCRDs(t *testing.T) {
	env, err := Start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			_ = env.Stop()
		}
	})

	if err := env.Client.List(t.Context(), &pcapi.VMList{}); err != nil {
		t.Errorf("listing VMs: %v", err)
	}
	kubectl := exec.CommandContext(t.Context(), filepath.Join(env.Assets, "kubectl"), "get", "vms,clouds", "--all-namespaces")
	kubectl.Env = append(os.Environ(), "KUBECONFIG="+env.Kubeconfig())
	if output, err := kubectl.CombinedOutput(); err != nil {
		t.Errorf("kubectl get vms,clouds: %v\n%s", err, output)
	}

	stopped = true
	if err := env.Stop(); err != nil {
		t.Errorf("stopping: %v", err)
	}
	if _, err := os.Stat(env.Kubeconfig()); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig still exists: %v", err)
	}
}

func TestStartWithoutBinariesFailsWithTheCommandToGetThem(t *testing.T) {
	t.Setenv(assetsVariable, t.TempDir())

	_, err := Start(Options{})

	want := "no [etcd kube-apiserver kubectl] in " + os.Getenv(assetsVariable) +
		": run through make test, or export KUBEBUILDER_ASSETS=$(hack/kube-assets.sh)"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
