package behaviour_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// deletedTogether returns a case of a Secret, its Cloud and a VM on it that are deleted in an order, before the operator
// deletes the server.
func deletedTogether(order ...string) func(*T) {
	return func(t *T) {
		var secret *corev1.Secret
		f := newFixture(t, mockcloud.Options{Token: token}, withNewSecret(t, map[string]string{"token": token}, &secret))
		vm := f.readyVM("web")
		annotate(t, vm, pcapi.PausedAnnotation, "true")
		objects := map[string]client.Object{"Secret": secret, "Cloud": f.object, "VM": vm}
		without := SatisfyAny(
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "SecretMissing", `Secret "`+secret.Name+`" does not exist in namespace "`+operatorNamespace+`": create it`),
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "InUse", `Secret "`+secret.Name+`" does not exist any more`),
		)
		for _, kind := range order {
			deleteObject(t, objects[kind])
			if kind == "Secret" {
				touch(t, f.object)
				t.Eventually(latest(f.object)).Should(without, "the operator sees that the Secret is gone")
			}
		}
		annotate(t, vm, pcapi.PausedAnnotation, "")
		t.Eventually(isGone(vm)).Should(BeTrue())
		t.Eventually(isGone(f.object)).Should(BeTrue())
		t.Expect(f.serversNamed("web")).To(BeEmpty())
	}
}

func TestSecretCloudAndVMAreDeletedInAnyOrder(t *testing.T) {
	all := cases{}
	for _, order := range [][]string{
		{"Secret", "Cloud", "VM"}, {"Secret", "VM", "Cloud"}, {"Cloud", "Secret", "VM"},
		{"Cloud", "VM", "Secret"}, {"VM", "Secret", "Cloud"}, {"VM", "Cloud", "Secret"},
	} {
		all[strings.Join(order, ", ")] = deletedTogether(order...)
	}
	all.run(t)
}
