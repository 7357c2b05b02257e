package manifests_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
)

// ownCertificate enables the webhook with a certificate that is not issued by cert-manager, whose kinds are not installed.
const ownCertificate = "webhook.enabled=true,webhook.certManager.enabled=false,webhook.secretName=own,webhook.caBundle=-----BEGIN CERTIFICATE-----"

// newColumn is a column of VMs that only newerChart has.
const newColumn = "NEWER"

// newerChart returns the folder of a chart with another CRD.
func newerChart(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "chart")
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(root, chart))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "files", "operator.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "name: VM ID", "name: "+newColumn, 1)
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestUpgradeUpdatesCRDsAndUninstallKeepsThemWithTheirObjects(t *testing.T) {
	if err := installDefault(); err != nil {
		t.Fatal(err)
	}
	const release, in = "released", "released"
	if err := env.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in}}); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		output, err := helm(t, append(args, "-n", in)...)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(output, "Warning") || strings.Contains(output, "WARNING") {
			t.Errorf("helm %s:\n%s", args[0], output)
		}
		return output
	}
	values := "mockCloud.enabled=true,metricsAPI.enabled=true,claimAtCreation.enabled=true," + ownCertificate
	// The CRDs exist already.
	notes := run("install", release, chart, "--take-ownership", "--set", values)
	for _, part := range []string{"docs/install.md#uninstall", "docs/install.md#drain", "its namespace\nto " + in, "loses nothing", "is installed as " + release + " in " + in} {
		if !strings.Contains(notes, part) {
			t.Errorf("the notes do not contain %q:\n%s", part, notes)
		}
	}
	vm := testkit.VM(in, "kept", func(vm *pcapi.VM) { vm.Finalizers = []string{pcapi.VMFinalizer} })
	if err := env.Client.Create(t.Context(), vm); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		vm.Finalizers = nil
		ctx := context.WithoutCancel(t.Context())
		if err := errors.Join(env.Client.Update(ctx, vm), env.Client.Delete(ctx, vm)); err != nil {
			t.Error(err)
		}
	})
	run("upgrade", release, newerChart(t), "--reuse-values", "--set", "claimAtCreation.enabled=false")
	columns, err := kubectl("get", "crd", "vms.samplecontroller.k8s.io", "-o", "jsonpath={.spec.versions[*].additionalPrinterColumns[*].name}")
	if err != nil || !strings.Contains(columns, newColumn) {
		t.Errorf("columns of the CRD after the upgrade: %q, %v, want %s among them", columns, err, newColumn)
	}

	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: release + "-private-cloud-operator-manager-role"}}
	for range 2 {
		if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(role), role); err != nil {
			t.Fatal(err)
		}
		if output := run("uninstall", release); strings.Count(output, "[CustomResourceDefinition]") != 8 {
			t.Errorf("helm uninstall does not list eight CRDs that it keeps:\n%s", output)
		}
		if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(role), role); !apierrors.IsNotFound(err) {
			t.Errorf("the ClusterRole of the operator: %v, want not found", err)
		}
		if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(vm), vm); err != nil || !vm.DeletionTimestamp.IsZero() {
			t.Errorf("the VM: %v, deletion requested at %v, want none", err, vm.DeletionTimestamp)
		}
		// The same release owns the CRDs that it has kept.
		run("install", release, chart)
	}
	run("uninstall", release)
}

func TestNotesWarnOfCRDsThatAreNotKept(t *testing.T) {
	notes, err := helm(t, "install", "warned", chart, "--dry-run=client", "--take-ownership", "--set", "crds.keep=false,defaultCloudEndpoint=https://cloud.example.com")
	if err != nil {
		t.Fatal(err)
	}
	_, notes, _ = strings.Cut(notes, "\nNOTES:\n")
	for part, want := range map[string]bool{
		"WARNING: crds.keep is false": true, "first run helm upgrade with crds.keep=true": true, "loses nothing": false,
		`creates the Cloud "default" with https://cloud.example.com`: true, "mock cloud": false,
	} {
		if strings.Contains(notes, part) != want {
			t.Errorf("the notes contain %q: %t, want %t\n%s", part, !want, want, notes)
		}
	}
}
