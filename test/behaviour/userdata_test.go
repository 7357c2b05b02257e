package behaviour_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloudinit"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

const (
	userData  = "#cloud-config\npassword: user-data-" + secretPart + "\n"
	publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFfAJs9P2Yp5ZWAkZjCYZiXy8sOYoHwKqJJ+V1VjVmC5 ann@example.com"
)

// fromSecret makes a VM use the Secret boot, and a key.
func fromSecret(vm *pcapi.VM) {
	vm.Spec.Bootstrap = &pcapi.VMBootstrap{CloudInit: pcapi.VMCloudInit{
		UserDataSecretRef: &pcapi.SecretKeyReference{Name: "boot"}, SSHAuthorizedKeys: []pcapi.SSHAuthorizedKey{publicKey},
	}}
}

// createUserData creates the Secret boot in a namespace.
func createUserData(t *T, namespace string, change ...func(*corev1.Secret)) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "boot", Labels: map[string]string{pcapi.UserDataLabel: "true"}},
		Data:       map[string][]byte{"user-data": []byte(userData)},
	}
	for _, apply := range change {
		apply(secret)
	}
	t.Expect(env.Client.Create(t.Context(), secret)).To(Succeed())
	return secret
}

// allowSecrets allows the operator to read the Secret boot of a namespace, as the docs say.
func allowSecrets(t *T, namespace string) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "user-data"}
	role := &rbacv1.Role{
		ObjectMeta: meta,
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"boot"}, Verbs: []string{"get"}}},
	}
	t.Expect(env.Client.Create(t.Context(), role)).To(Succeed())
	t.Expect(env.Client.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: testkit.OperatorUser(operatorNamespace)}},
	})).To(Succeed())
}

// sha256Of returns what the mock cloud shows of the user data that a VM from a Secret gets.
func sha256Of(data string) string {
	return fmt.Sprintf("%x", sha256.Sum256(cloudinit.Compose([]byte(data), []string{publicKey})))
}

func TestUserData(t *testing.T) {
	cases{
		"the operator may not read the Secret, then may, and the Secret is corrected: the VM waits, is created once, and a rotated Secret changes nothing": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			secret := createUserData(t, f.namespace, func(s *corev1.Secret) { s.Labels = nil })
			vm := f.createVM("web", fromSecret)
			waits := func(says string) {
				t.Eventually(latest(vm)).Should(SatisfyAll(
					testkit.HaveCondition("Ready", metav1.ConditionFalse, "UserDataUnavailable", says),
					testkit.HaveCondition("Created", metav1.ConditionFalse, "Pending", says),
				))
			}
			waits("cannot be read by the operator")
			allowSecrets(t, f.namespace)
			requestReconcile(t, vm)
			waits("lacks the label " + pcapi.UserDataLabel + "=true")
			t.Expect(f.createCalls()).To(BeZero())

			edit(t, secret, func(s *corev1.Secret) { s.Labels = map[string]string{pcapi.UserDataLabel: "true"} })
			requestReconcile(t, vm)
			ready := waitReady(t, vm)
			t.Expect(f.UserDataSHA256(ready.Status.VMID)).To(Equal(sha256Of(userData)))

			edit(t, secret, func(s *corev1.Secret) { s.Data["user-data"] = []byte("#!/bin/sh\n") })
			requestReconcile(t, vm)
			f.waitForPolls(2)
			t.Expect(f.createCalls()).To(Equal(1))
			t.Expect(get(t, vm)).To(SatisfyAll(testkit.BeReady(), HaveField("Status.VMID", ready.Status.VMID)))
			_, err := tryEdit(t, vm, func(vm *pcapi.VM) { vm.Spec.Bootstrap = nil })
			t.Expect(err).To(MatchError(ContainSubstring("bootstrap cannot be changed once the VM exists")))
		},

		"a VM in the operator's namespace names the credentials of a Cloud: they are not sent": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			credentials := newSecret(t, map[string]string{"token": token}, map[string]string{pcapi.CredentialsForLabel: f.object.Name})
			vm := testkit.VM(operatorNamespace, "thief-"+f.object.Name, func(vm *pcapi.VM) {
				vm.Spec.CloudRef = &pcapi.CloudReference{Name: f.object.Name}
				vm.Spec.Bootstrap = &pcapi.VMBootstrap{CloudInit: pcapi.VMCloudInit{UserDataSecretRef: &pcapi.SecretKeyReference{Name: credentials.Name, Key: "token"}}}
			})
			t.Expect(env.Client.Create(t.Context(), vm)).To(Succeed())
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "UserDataUnavailable", "lacks the label"))
			t.Expect(f.createCalls()).To(BeZero())
			deleteObject(t, vm)
			t.Eventually(isGone(vm)).Should(BeTrue(), "a VM that waits for its Secret is removed at once")
		},

		"the cloud quotes the user data in its refusal: conditions, events and the log have nothing of it": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			createUserData(t, f.namespace)
			allowSecrets(t, f.namespace)
			f.addFault(mockcloud.Fault{
				Match: mockcloud.Match{Method: http.MethodPost, Path: "/servers"}, Status: http.StatusBadRequest,
				Body: `{"code":"invalid","detail":"unexpected password: user-data-` + secretPart + `"}`,
			})
			vm := f.createVM("web", func(vm *pcapi.VM) {
				fromSecret(vm)
				vm.Spec.Bootstrap.CloudInit.SSHAuthorizedKeys = nil
			})
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Rejected", "unexpected …"))
		},

		"the answer to a create is lost and the Secret rotated: one server": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			secret := createUserData(t, f.namespace)
			allowSecrets(t, f.namespace)
			lost := f.addFault(mockcloud.Fault{Match: mockcloud.Match{Method: http.MethodPost, Path: "/servers"}, Answer: mockcloud.After, Reset: true})
			vm := f.createVM("web", fromSecret)
			t.Eventually(func() []string { return f.serversNamed("web") }).Should(HaveLen(1))
			edit(t, secret, func(s *corev1.Secret) { s.Data["user-data"] = []byte("#!/bin/sh\n") })
			t.Expect(f.RemoveFault(lost)).To(Succeed())
			ready := waitReady(t, vm)
			t.Expect(f.serversNamed("web")).To(Equal([]string{ready.Status.VMID}))
			t.Expect(f.UserDataSHA256(ready.Status.VMID)).To(Equal(sha256Of(userData)))
		},

		"the keys of a group change: its members are replaced": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			group := f.createGroup("pool", 1, func(g *pcapi.VmGroup) {
				g.Spec.Bootstrap = &pcapi.VMBootstrap{CloudInit: pcapi.VMCloudInit{SSHAuthorizedKeys: []pcapi.SSHAuthorizedKey{publicKey}}}
			})
			t.Eventually(latest(group)).Should(testkit.BeReady())
			before := f.Servers()
			t.Expect(before).To(HaveLen(1))
			t.Expect(f.UserDataSHA256(before[0].ID)).To(Equal(sha256Of("")))
			edit(t, group, func(g *pcapi.VmGroup) { g.Spec.Bootstrap.CloudInit.SSHAuthorizedKeys[0] += "-2" })
			t.Eventually(f.Servers).Should(And(HaveLen(1), Not(ContainElement(HaveField("ID", before[0].ID)))))
			t.Eventually(latest(group)).Should(testkit.BeReady())
		},

		"the cloud has no user data: Unsupported": func(t *T) {
			f := newFixture(t, mockcloud.Options{Capabilities: map[mockcloud.Capability]bool{mockcloud.UserData: false}})
			vm := f.createVM("web", fromSecret)
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Unsupported", "this cloud cannot set bootstrap"))
		},
	}.run(t)
}
