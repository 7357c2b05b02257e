package drain_test

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/plugin/plugintest"
)

func TestDrain(t *testing.T) {
	for name, args := range map[string][]string{
		"no policy":                       {},
		"plan":                            {"--policy=delete"},
		"plan of a namespace":             {"--policy=orphan", "--namespace=b"},
		"plan of a namespace that is not": {"--policy=orphan", "--namespace=c"},
		"plan of a Cloud":                 {"--policy=delete", "--cloud=east"},
		"drained":                         {"--policy=delete", "--yes"},
		"an argument":                     {"everything", "--policy=delete"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := plugintest.Setup{Client: plugintest.NewClient(t,
					&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "b"}},
					&pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "one"}},
					&pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "two"}, Spec: pcapi.VMSpec{CloudRef: &pcapi.CloudReference{Name: "east"}}},
					&pcapi.VmGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"}},
					&pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "east"}},
				)}
				plugintest.Golden(t, name, []plugintest.Result{s.Run(t.Context(), append([]string{"drain"}, args...)...)})
			})
		})
	}
}
