package plugin_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/plugin/plugintest"
	"github.com/privatecloud/operator/internal/testkit"
)

const (
	planApplication = `
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: VmGroup
metadata: {name: workers}
spec: {replicas: 7, cpu: 1, memory: 1, template: debian-12, networkRef: {name: backend}}
---
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: VM
metadata: {name: db}
spec: {vmname: db, cpu: 2, memory: 4, networkRef: {name: backend}, powerState: Suspended, tags: {team: erp}}
---
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: Network
metadata: {name: backend}
spec: {cidr: 10.0.0.0/24, gateway: 10.0.0.1}
---
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: VMSnapshot
metadata: {name: before-upgrade}
spec: {vmName: db}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: of-another-kind}
`
	planInvalid = `
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: VM
metadata: {name: invalid}
spec: {vmname: " x"}
---
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: VM
metadata: {name: valid}
spec: {vmname: valid}
`
	planWaiting = `
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: VM
metadata: {name: unclassed}
spec: {vmname: unclassed, className: missing}
---
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: VM
metadata: {name: clouded}
spec: {vmname: clouded, cloudRef: {name: missing}}
---
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: VM
metadata: {name: paused, annotations: {samplecontroller.k8s.io/paused: "true"}}
spec: {vmname: paused}
`
	planMisspelled = `
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: VM
metadata: {name: web}
spec: {vmname: web, cpus: 2}
`
	planWeb = `
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: VM
metadata: {name: web}
spec: {vmname: web, cpu: %d, memory: 1, powerState: %q}
`
)

// planned runs the command plan on manifests as the user of a kubeconfig.
type planned struct {
	*fixture

	folder, kubeconfig string
}

func (p planned) run(manifests string, args ...string) plugintest.Result {
	p.Helper()
	file := filepath.Join(p.folder, "manifests.yaml")
	p.Expect(os.WriteFile(file, []byte(manifests), 0o600)).To(Succeed())
	args = append([]string{"plan", "-n", p.namespace, "-f", file}, args...)
	return plugintest.Setup{Kubeconfig: p.kubeconfig}.Run(p.Context(), args...)
}

func (p planned) golden(t *testing.T, name string, results ...plugintest.Result) {
	t.Helper()
	plugintest.Golden(t, name, results, p.folder, "FOLDER", p.namespace, "NAMESPACE")
}

func TestPlan(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "plan", nil)
	p := planned{fixture: f, folder: t.TempDir(), kubeconfig: env.Kubeconfig()}
	p.golden(t, "plan create", p.run(planApplication), p.run(planApplication, "-o", "json"))
	p.golden(t, "plan invalid", p.run(planInvalid))
	p.golden(t, "plan waiting", p.run(planWaiting))
	none := plugintest.Setup{Kubeconfig: env.Kubeconfig()}
	p.golden(t, "plan without manifests", none.Run(t.Context(), "plan"), none.Run(t.Context(), "plan", "-f", filepath.Join(p.folder, "missing.yaml")))

	web := fmt.Sprintf(planWeb, 1, "On")
	_, err := env.Kubectl(t.Context(), web, "apply", "-n", f.namespace, "-f", "-")
	f.Expect(err).NotTo(HaveOccurred())
	vm := &pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "web"}}
	f.Eventually(func(ctx context.Context) (*pcapi.VM, error) {
		return vm, env.Client.Get(ctx, client.ObjectKeyFromObject(vm), vm)
	}).Should(testkit.BeReady())
	version := vm.ResourceVersion
	p.golden(t, "plan change",
		p.run(web),
		p.run(fmt.Sprintf(planWeb, 2, "On")),
		p.run(fmt.Sprintf(planWeb, 2, "Off")),
		p.run(web, "--delete"),
		p.run(planApplication, "--delete"),
	)
	f.Expect(env.Client.Get(t.Context(), client.ObjectKeyFromObject(vm), vm)).To(Succeed())
	f.Expect(vm.ResourceVersion).To(Equal(version), "a plan writes nothing")
	f.Expect(f.cloud.Ledger()).To(HaveLen(1), "the create of web")
}

// TestPlanOfFields plans as kubectl apply decides about fields: those that no CRD has, those that a manifest has no
// longer, and those of another field manager.
func TestPlanOfFields(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "plan-fields", nil)
	p := planned{fixture: f, folder: t.TempDir(), kubeconfig: env.Kubeconfig()}
	created := p.run(planMisspelled)
	stopped, running := fmt.Sprintf(planWeb, 1, "Off"), fmt.Sprintf(planWeb, 1, "On")
	apply := func(manifest string, args ...string) {
		_, err := env.Kubectl(t.Context(), manifest, append([]string{"apply", "-n", f.namespace, "-f", "-"}, args...)...)
		f.Expect(err).NotTo(HaveOccurred())
		f.Eventually(func(ctx context.Context) (*pcapi.VM, error) {
			var vm pcapi.VM
			return &vm, env.Client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: "web"}, &vm)
		}).Should(testkit.BeReady())
	}
	apply(stopped)
	p.golden(t, "plan unknown field", created, p.run(planMisspelled), p.run(planMisspelled, "--server-side", "--force-conflicts"))
	withoutPowerState := strings.ReplaceAll(stopped, `, powerState: "Off"`, "")
	p.golden(t, "plan removed field", p.run(withoutPowerState))

	apply(stopped, "--server-side", "--field-manager=gitops", "--force-conflicts")
	p.golden(t, "plan field manager",
		p.run(running, "--server-side"),
		p.run(running, "--server-side", "--force-conflicts"),
		p.run(withoutPowerState, "--server-side", "--field-manager=gitops"),
	)
}

// TestPlanWithTheRightsOfADeveloper: the plan assumes what the developer may not read, and
// names the right that a dry run lacks.
func TestPlanWithTheRightsOfADeveloper(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "plan-rights", nil)
	developer, viewer := "developer-"+f.namespace, "viewer-"+f.namespace
	for user, verbs := range map[string][]string{developer: {"get", "list", "create", "patch"}, viewer: {"get", "list"}} {
		f.Expect(env.Client.Create(t.Context(), &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: user},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{pcapi.GroupVersion.Group}, Resources: []string{"vms", "vmgroups", "networks", "vmsnapshots"}, Verbs: verbs}},
		})).To(Succeed())
		f.Expect(env.Client.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		})).To(Succeed())
	}
	p := planned{fixture: f, folder: t.TempDir(), kubeconfig: env.Kubeconfig()}
	p.golden(t, "plan rights", p.run(planApplication, "--as", developer), p.run(planApplication, "--as", viewer))
}
