package behaviour_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// TestExistenceIsNotRevealed compares all that users see of an object whose Cloud or VMClass does not
// exist with that of one whose Cloud or VMClass the namespace may not use.
func TestExistenceIsNotRevealed(t *testing.T) {
	ofCloud := func(name string) *pcapi.CloudReference { return &pcapi.CloudReference{Name: name} }
	kinds := map[string]func(namespace, name, cloud, class string) client.Object{
		"VM": func(namespace, name, cloud, _ string) client.Object {
			return testkit.VM(namespace, name, func(vm *pcapi.VM) { vm.Spec.CloudRef = ofCloud(cloud) })
		},
		"VM that imports": func(namespace, name, cloud, _ string) client.Object {
			return testkit.VM(namespace, name, func(vm *pcapi.VM) {
				vm.Spec.CloudRef, vm.Spec.Import = ofCloud(cloud), &pcapi.VMImport{VMID: "s1"}
			})
		},
		"VmGroup": func(namespace, name, cloud, _ string) client.Object {
			return testkit.VmGroup(namespace, name, func(g *pcapi.VmGroup) { g.Spec.CloudRef = ofCloud(cloud) })
		},
		"Network": func(namespace, name, cloud, _ string) client.Object {
			return testkit.Network(namespace, name, func(n *pcapi.Network) { n.Spec.CloudRef = ofCloud(cloud) })
		},
		"GPUInfo": func(namespace, name, cloud, _ string) client.Object {
			return &pcapi.GPUInfo{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: pcapi.GPUInfoSpec{DesAccTime: 1, CloudRef: ofCloud(cloud)},
			}
		},
		"VM of a class": func(namespace, name, _, class string) client.Object {
			return testkit.VM(namespace, name, func(vm *pcapi.VM) { vm.Spec.ClassName = class })
		},
	}
	all := cases{}
	for name, kind := range kinds {
		all[name] = func(t *T) {
			f := newFixture(t, mockcloud.Options{}, restricted)
			closed := f.createClass("closed", 1, 1, func(c *pcapi.VMClass) {
				c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"cloud": "yes"}}
			})
			if name == "VM of a class" {
				open := newFixture(t, mockcloud.Options{})
				f.setDefaultCloud(open.object.Name)
			}
			see := func(cloud, class string) string {
				created := kind(f.namespace, "web", cloud, class)
				t.Expect(env.Client.Create(t.Context(), created)).To(Succeed())
				t.Eventually(latest(created)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "", "does not exist, or namespace"))
				t.Eventually(eventReasons(created)).ShouldNot(BeEmpty())
				f.waitForPolls(2)
				text := readable(t, get(t, created), f.namespace)
				deleteObject(t, created)
				t.Eventually(isGone(created)).Should(BeTrue())
				return strings.NewReplacer(class, "CLASS", cloud, "CLOUD").Replace(text)
			}
			missing := see("absent-"+f.object.Name, f.className("missing"))
			t.Expect(see(f.object.Name, closed.Name)).To(Equal(missing))
		}
	}
	all.run(t)
}

// readable returns what users can read of an object that the operator has written, without times and
// what differs between any two objects.
func readable(t *T, object client.Object, namespace string) string {
	t.Helper()
	text, err := json.Marshal(object)
	t.Expect(err).NotTo(HaveOccurred())
	var fields struct {
		Metadata struct {
			Finalizers  []string
			Annotations map[string]string
		}
		Status map[string]any
	}
	t.Expect(json.Unmarshal(text, &fields)).To(Succeed())
	conditions, _ := fields.Status["conditions"].([]any)
	for _, c := range conditions {
		delete(c.(map[string]any), "lastTransitionTime")
	}
	delete(fields.Status, "selector") // of a group: made of its UID
	var list eventsv1.EventList
	t.Expect(env.Client.List(t.Context(), &list, client.InNamespace(namespace))).To(Succeed())
	var events []string
	for i := range list.Items {
		if e := &list.Items[i]; e.Regarding.UID == object.GetUID() {
			events = append(events, fmt.Sprintln(e.Type, e.Reason, e.Action, e.Note))
		}
	}
	slices.SortFunc(events, cmp.Compare[string])
	text, err = json.MarshalIndent(fields, "", " ")
	t.Expect(err).NotTo(HaveOccurred())
	return string(text) + "\n" + strings.Join(events, "")
}
