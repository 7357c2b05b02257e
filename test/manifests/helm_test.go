package manifests_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const chart = "charts/private-cloud-operator"

// prepareHelm builds the pinned helm, unless the cache has it, and reads what it reads.
var prepareHelm = sync.OnceValue(func() error {
	if err := readFolder(chart); err != nil {
		return err
	}
	command := exec.CommandContext(context.Background(), "hack/tool.sh", "helm")
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("hack/tool.sh helm: %w\n%s", err, output)
	}
	return nil
})

// helm runs helm in the project's root folder on the cluster of the tests.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	if err := prepareHelm(); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	command := exec.CommandContext(t.Context(), "bin/helm", args...)
	command.Dir = root
	command.Env = append(os.Environ(), "KUBECONFIG="+env.Kubeconfig(),
		"HELM_CACHE_HOME="+folder, "HELM_CONFIG_HOME="+folder, "HELM_DATA_HOME="+folder)
	output, err := command.CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("helm %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return string(output), nil
}

// render returns the objects of a release of the chart.
func render(t *testing.T, release, in string, args ...string) []*unstructured.Unstructured {
	t.Helper()
	output, err := helm(t, append([]string{"template", release, chart, "-n", in}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, output)
}
